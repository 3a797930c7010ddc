"""Actions: ALFWorld's commands, read and proposed.

`parse` accepts every command of the engine, and "put O in/on R" of older ALFWorld data as another spelling of
"move O to R". `candidates` proposes less: what a policy that chooses from a list should have to choose from.
"""

import re
from functools import lru_cache

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Action

__all__ = ["FAILURE", "LAMPS", "MAX_CANDIDATES", "STATIONS", "candidates", "canonical", "kind", "parse"]

FAILURE = "Nothing happens."
"""The engine's answer to whatever is impossible."""

MAX_CANDIDATES = 96
"""Most candidates of a state. The official games offer at most 71 while everything is where it was at first; the rest
is room for an agent that piles things up."""

STATIONS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""Verb to the kind of receptacle that it takes."""

LAMPS = frozenset({"desklamp", "floorlamp"})
"""Kinds of objects with a switch; ALFWorld's games have no others."""

_THING = r"([a-z]+ \d+)"
_TEMPLATES = {
    "go": "go to {}",
    "open": "open {}",
    "close": "close {}",
    "take": "take {} from {}",
    "move": "move {} to {}",
    "clean": "clean {} with {}",
    "heat": "heat {} with {}",
    "cool": "cool {} with {}",
    "use": "use {}",
    "slice": "slice {} with {}",
    "examine": "examine {}",
    "inventory": "inventory",
    "look": "look",
    "help": "help",
}
_RULES = {verb: re.compile(template.format(_THING, _THING)) for verb, template in _TEMPLATES.items()}
_PUT = re.compile(rf"put {_THING} (?:in/on|in|on) {_THING}")


def kind(name: str) -> str:
    """Return what sort of thing a name means: "mug" for "mug 1"."""
    return name.partition(" ")[0]


@lru_cache(maxsize=1 << 14)
def parse(text: str) -> Action | None:
    """Return a command's verb and what it names, whatever its case and spacing; None if it is no command.

    Example:
        >>> parse("put Mug 1 in/on  desk 2")
        Action(verb='move', arguments=('mug 1', 'desk 2'))
    """
    text = " ".join(text.lower().split())
    if found := _PUT.fullmatch(text):
        return Action("move", found.groups())
    rule = _RULES.get(kind(text))
    found = rule.fullmatch(text) if rule is not None else None
    return Action(kind(text), found.groups()) if found else None


def canonical(text: str) -> str | None:
    """Return a command in the engine's own wording, None if it is no command.

    Example:
        >>> canonical("Put mug 1 on desk 2")
        'move mug 1 to desk 2'
    """
    action = parse(text)
    return None if action is None else _TEMPLATES[action.verb].format(*action.arguments)


def candidates(task: Task, state: State) -> tuple[str, ...]:
    """Return the actions worth considering, from the public state alone: at most `MAX_CANDIDATES`, in a fixed order.

    First "go to" every receptacle that is not within reach, in the state's order; then, for each receptacle within
    reach, what can be done there. A receptacle known to be within reach that nobody has looked at (going to it failed,
    since one stands in front of it already) can be examined or opened.

    Left out, because they only cost a step: "inventory" and "look", whose answers the state holds already; "examine"
    of what is known, and of objects, whose flags the state holds; "slice", which no task of the six families asks for;
    "help"; "take" of a lamp, which cannot be moved. The grammar accepts them all the same.
    """
    public = state.public
    location, rows = public["location"], public["receptacles"]
    away = _ways(tuple([row["name"] for row in rows]))
    if not location:
        return tuple(away.values())[:MAX_CANDIDATES] or ("look",)
    actions = [action for name, action in away.items() if name not in location]
    held = public["holding"][0]["name"] if public["holding"] else None
    for row in rows:
        name = row["name"]
        if name not in location:
            continue
        status, contents = row["status"], row["contents"]
        if status == "unseen":
            actions += (f"examine {name}", f"open {name}")
        elif status == "closed" or status == "shut":
            actions.append(f"open {name}")
        elif held is not None:
            actions.append(f"move {held} to {name}")
        else:
            actions += [f"take {item['name']} from {name}" for item in contents if kind(item["name"]) not in LAMPS]
        if held is not None and (verb := _AT_STATION.get(kind(name))):
            actions.append(f"{verb} {held} with {name}")
        if status == "open":
            actions.append(f"close {name}")
        if status == "open" or status == "surface":
            actions += [f"use {item['name']}" for item in contents if kind(item["name"]) in LAMPS]
    return tuple(actions[:MAX_CANDIDATES]) or ("look",)


_AT_STATION = {station: verb for verb, station in STATIONS.items()}


@lru_cache(maxsize=4096)
def _ways(names: tuple[str, ...]) -> dict[str, str]:
    """Return the way to each receptacle: most of a state's candidates, and the same for all of a house's states."""
    return {name: f"go to {name}" for name in names}
