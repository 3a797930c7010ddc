"""From the engine's texts to the abstract state.

`initial_state` and `instruction` read the first text of an episode, `observe` every later one. The texts of older
ALFWorld data ("On the desk 1, you see", "You put the mug 1 in/on the desk 1.") give the same states as the engine's.

The text is the authority: whatever it lists replaces what was believed before. It also tells where the agent stands:
receptacles may share a place, from which the agent reaches all of them; to go to another one of them fails, since one
is there already, and what works on one of them shows that it is within reach.

In a third of the official games some thing is in two receptacles at once, such as a mug on the countertop and in the
coffee machine that stands there. A state has every thing in one place: in the hand if it is held, else where it was
listed last.

Contents and flags go to the state, so the feedback leaves them out and has few, regular forms.
"""

import re
from collections.abc import Callable, Mapping

from dreamgym_envs.core.types import State
from dreamgym_envs.domains.alfworld.grammar import FAILURE, parse
from dreamgym_envs.domains.alfworld.view import KNOWN, View
from dreamgym_envs.domains.base import Action

__all__ = ["START", "initial_state", "instruction", "observe"]

START = "You are in the middle of a room."
"""Feedback of the initial state."""

_EFFECTS = {"clean": ("clean", None), "heat": ("hot", "cool"), "cool": ("cool", "hot")}
"""Verb to the flag that it sets and the one that it clears."""

_THING = r"[a-z]+ \d+"
_SEEN = re.compile(rf"\ban? ({_THING})\b")
_TASK = re.compile(r"Your task is to: (.+)")
_ROOM = re.compile(r"Looking quickly around you, you see (.+?)\.")
_ARRIVAL = re.compile(rf"^You arrive at {_THING}\. ")  # older data has a place here ("loc 12") or nothing at all
_FACING = re.compile(rf"You are facing the ({_THING}(?:, (?:and )?{_THING})*)\. Next to it, you see (.+)\.")
_LISTING = re.compile(
    rf"(?:On the (?P<surface>{_THING}), you see|The (?P<open>{_THING}) is open\. In it, you see) (?P<things>.+)\."
)


def instruction(observation: str) -> str:
    """Return the task of an episode's first text, such as "put a clean mug in shelf.".

    Raises:
        ValueError: There is none.
    """
    found = _TASK.search(observation)
    if found is None:
        raise ValueError(f"no 'Your task is to: ...' in the first text of an episode: {observation!r:.300}")
    return found[1].strip()


def initial_state(observation: str) -> State:
    """Return the state at an episode's first text: the names of the receptacles, sorted, and nothing else is known.

    Raises:
        ValueError: The text lists no receptacles.
    """
    found = _ROOM.search(" ".join(observation.split()))
    names = _SEEN.findall(found[1]) if found else []
    if not names:
        raise ValueError(f"no receptacles in the first text of an episode: {observation!r:.300}")
    rows = tuple({"name": name, "status": "unseen", "contents": ()} for name in sorted(names, key=_order))
    return State({"location": (), "holding": (), "receptacles": rows, "feedback": START})


def observe(state: State, action: str, text: str) -> State:
    """Return the state after an action that the engine answered with a text.

    Args:
        state: The state in which the action was taken; its private part is kept.
        action: The command, in the wording of either grammar.
        text: The engine's answer.

    Raises:
        ValueError: The text is no answer to the action, or names a receptacle that is not there.

    Example:
        >>> state = observe(state, "go to desk 1", "You arrive at desk 1. On the desk 1, you see a pen 2.")
        >>> state.public["location"], state.public["feedback"]
        (('desk 1',), 'You arrive at desk 1.')
    """
    text = " ".join(text.split())
    command = parse(action)
    view = View(state)
    if text == FAILURE:
        if command is not None and command.verb == "go":
            view.reach(command.arguments[0])
        return view.state(FAILURE)
    feedback = _READERS[command.verb](view, command, text) if command is not None else None
    if feedback is None:
        raise ValueError(f"cannot read {text!r:.300} as the answer to {action!r}")
    return view.state(feedback)


def _order(name: str) -> tuple[str, int]:
    kind, _, number = name.rpartition(" ")
    return kind, int(number)


def _look_at(view: View, name: str, text: str) -> str | None:
    """Read what a receptacle shows; return whether it is "open", "closed" or a "surface", None if the text is another.

    A closed receptacle whose contents are known stays known.
    """
    if text == f"The {name} is closed.":
        view.update(name, status="shut" if view.row(name)["status"] in KNOWN else "closed")
        return "closed"
    found = _LISTING.fullmatch(text)
    if found is None or name not in (found["surface"], found["open"]):
        return None
    status = "surface" if found["surface"] else "open"
    view.list_contents(name, status, _SEEN.findall(found["things"]))
    return status


def _go(view: View, command: Action, text: str) -> str | None:
    (name,) = command.arguments
    status = _look_at(view, name, _ARRIVAL.sub("", text))
    if status is None:
        return None
    view.location = (name,)
    return f"You arrive at {name}." if status == "surface" else f"You arrive at {name}. The {name} is {status}."


def _open(view: View, command: Action, text: str) -> str | None:
    (name,) = command.arguments
    feedback = f"You open the {name}."
    if not text.startswith(f"{feedback} ") or _look_at(view, name, text.removeprefix(f"{feedback} ")) != "open":
        return None
    view.reach(name)
    return feedback


def _close(view: View, command: Action, text: str) -> str | None:
    (name,) = command.arguments
    if text != f"You close the {name}.":
        return None
    view.update(name, status="shut")
    view.reach(name)
    return text


def _take(view: View, command: Action, text: str) -> str | None:
    thing, name = command.arguments
    if text != f"You pick up the {thing} from the {name}.":
        return None
    view.holding = (view.remove(thing),)
    view.reach(name)
    return text


def _move(view: View, command: Action, text: str) -> str | None:
    thing, name = command.arguments
    feedback = f"You move the {thing} to the {name}."
    if text not in (feedback, f"You put the {thing} in/on the {name}."):
        return None
    view.add(name, view.remove(thing))
    view.reach(name)
    return feedback


def _treat(view: View, command: Action, text: str) -> str | None:
    thing, name = command.arguments
    if text != f"You {command.verb} the {thing} using the {name}.":
        return None
    sets, clears = _EFFECTS[command.verb]
    view.flag(thing, lambda flags: flags - {clears} | {sets})
    view.reach(name)
    return text


def _use(view: View, command: Action, text: str) -> str | None:
    (thing,) = command.arguments
    if text != f"You turn on the {thing}.":  # a second time too: the engine never turns a lamp off
        return None
    view.flag(thing, lambda flags: flags | {"on"})
    return text


def _slice(view: View, command: Action, text: str) -> str | None:
    thing, knife = command.arguments
    if text != f"You sliced the {thing} with the {knife}.":
        return None
    view.flag(thing, lambda flags: flags | {"sliced"})
    return text


_DESCRIPTION = re.compile(r"This is a ((?:hot|cool|cold|clean|sliced|and| )+) [a-z]+ \d+\.")


def _examine(view: View, command: Action, text: str) -> str | None:
    (name,) = command.arguments
    if name in view.rows:
        status = _look_at(view, name, text)
        if status is not None:
            view.reach(name)
        return (
            None
            if status is None
            else f"You examine the {name}."
            if status == "surface"
            else f"The {name} is {status}."
        )
    if not re.search(rf"\b{name}\b", text):
        return None
    if found := _DESCRIPTION.fullmatch(text):
        told = frozenset(found[1].replace("cold", "cool").split())
        view.flag(name, lambda flags: told | flags & {"on"})
    elif text.startswith("There's nothing special"):
        view.flag(name, lambda flags: flags & {"on"})
    return text


def _inventory(view: View, command: Action, text: str) -> str | None:
    held = _SEEN.findall(text.removeprefix("You are carrying: ")) if text.startswith("You are carrying: ") else []
    if not held and text != "You are not carrying anything.":
        return None
    if held != [item["name"] for item in view.holding]:
        view.holding = tuple(view.remove(thing) for thing in held)
    return text


def _look(view: View, command: Action, text: str) -> str | None:
    feedback = "You look around."
    if text.startswith(START):
        return feedback
    found = _FACING.fullmatch(text)
    if found is None:
        return None
    for name in re.findall(_THING, found[1]):
        view.reach(name)
    return feedback if found[2] == "nothing" else f"{feedback} Next to it, you see {found[2]}."


def _help(view: View, command: Action, text: str) -> str | None:
    return "You read the list of commands." if text.startswith("Available commands:") else None


_READERS: Mapping[str, Callable[[View, Action, str], str | None]] = {
    "go": _go,
    "open": _open,
    "close": _close,
    "take": _take,
    "move": _move,
    "clean": _treat,
    "heat": _treat,
    "cool": _treat,
    "use": _use,
    "slice": _slice,
    "examine": _examine,
    "inventory": _inventory,
    "look": _look,
    "help": _help,
}
"""Verb to what reads its answer into a view and returns the feedback, or None for a text that is no such answer."""
