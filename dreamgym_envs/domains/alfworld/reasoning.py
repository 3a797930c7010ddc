"""Reasoning templates: why a real transition came out as it did, as a checklist in fixed order.

Preconditions first, each on a line that names its evidence; then, where the action can end the task, the goal's
conditions with a running tally; the verdict last. A check that only the outcome can tell (does the object fit, can it
be cleaned) is read from the outcome. This makes training data; a dream never calls it.
"""

from collections.abc import Iterator

from dreamgym_envs.core.types import State, Transition
from dreamgym_envs.domains.alfworld.focus import kind
from dreamgym_envs.domains.alfworld.goal import Goal, parse_goal
from dreamgym_envs.domains.alfworld.grammar import FAILURE, STATIONS, parse
from dreamgym_envs.domains.base import Action


def explain(transition: Transition) -> str:
    """Return the checklist behind a transition, one check a line; see `Domain.explain`."""
    action = parse(transition.action)
    if action is None:
        return "not in the grammar: nothing happens"
    failed = transition.next_state.public["feedback"] == FAILURE
    lines = list(_checks(action, transition.state, failed))
    if failed:
        return "\n".join([*lines, "nothing happens"])
    goal = parse_goal(transition.task.instruction)
    if goal is not None:
        lines += _goal_checks(goal, action, transition)
    return "\n".join(lines)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _checks(action: Action, state: State, failed: bool) -> Iterator[str]:
    """Yield the preconditions up to the first that does not hold; the last one tells what only the outcome can tell."""
    known = list(_preconditions(action, state))
    for line, holds in known:
        yield f"{line}: {_yes(holds)}"
        if failed and not holds:
            return
    last = _UNSEEN_CHECK.get(action.verb)
    if last is not None:
        yield f"{last}: {_yes(not failed)}"


_UNSEEN_CHECK = {
    "go": "elsewhere",
    "open": "opens",
    "close": "closes",
    "take": "can be taken",
    "move": "fits",
    "clean": "can be cleaned",
    "heat": "can be heated",
    "cool": "can be cooled",
    "use": "has a switch",
    "slice": "can be sliced so",
}


def _preconditions(action: Action, state: State) -> Iterator[tuple[str, bool]]:
    public = state.public
    location = public["location"]
    rows = {row["name"]: row for row in public["receptacles"]}
    held = {item["name"] for item in public["holding"]}
    arguments = action.arguments
    match action.verb:
        case "go":
            yield f"{arguments[0]} is here", arguments[0] in location
        case "open" | "close":
            row = rows.get(arguments[0])
            yield f"at {arguments[0]}", arguments[0] in location
            wanted = ("open",) if action.verb == "close" else ("closed", "shut")
            yield f"{'open' if action.verb == 'close' else 'closed'}", row is not None and row["status"] in wanted
        case "take":
            row = rows.get(arguments[1])
            yield f"at {arguments[1]}", arguments[1] in location
            yield "accessible", row is not None and row["status"] in ("open", "surface")
            yield f"{arguments[0]} there", row is not None and any(o["name"] == arguments[0] for o in row["contents"])
            yield "hand empty", not held
        case "move":
            row = rows.get(arguments[1])
            yield f"holding {arguments[0]}", arguments[0] in held
            yield f"at {arguments[1]}", arguments[1] in location
            yield "accessible", row is not None and row["status"] in ("open", "surface")
        case "clean" | "heat" | "cool":
            yield f"holding {arguments[0]}", arguments[0] in held
            yield f"at {arguments[1]}", arguments[1] in location
            yield f"{arguments[1]} is for it", kind(arguments[1]) == STATIONS[action.verb]
        case "use":
            within = [rows[name] for name in location if name in rows]
            yield f"{arguments[0]} within reach", any(o["name"] == arguments[0] for r in within for o in r["contents"])
        case "slice":
            yield f"holding {arguments[1]}", arguments[1] in held
        case _:
            return


def _goal_checks(goal: Goal, action: Action, transition: Transition) -> list[str]:
    """Return the goal's conditions, evidence before verdict, for actions that could fulfil it."""
    if goal.lamp:
        lines = _lamp_checks(goal, action, transition)
    elif action.verb == "move":
        lines = _place_checks(goal, action, transition)
    else:
        return []
    return [*lines, "task done" if transition.terminated else "task not done"] if lines else []


def _place_checks(goal: Goal, action: Action, transition: Transition) -> list[str]:
    moved, place = action.arguments
    lines = [f"{moved} is what is wanted: {_yes(kind(moved) == goal.object)}"]
    if kind(moved) != goal.object:
        return lines
    lines.append(f"{place} is where: {_yes(kind(place) == goal.receptacle)}")
    if kind(place) != goal.receptacle:
        return lines
    if goal.flag:
        held = transition.state.public["holding"]
        flags = held[0]["flags"] if held else ()
        lines += [f"it is {flag}" for flag in flags]
        lines.append(f"{goal.flag}: {_yes(goal.flag in flags)}")
    if goal.count > 1:
        row = next(r for r in transition.state.public["receptacles"] if r["name"] == place)
        there = [o["name"] for o in row["contents"] if kind(o["name"]) == goal.object]
        lines.append(f"count {moved} 1")
        lines += [f"count {name} {number}" for number, name in enumerate(there[:3], start=2)]
    return lines


def _lamp_checks(goal: Goal, action: Action, transition: Transition) -> list[str]:
    """Return the two conditions of "look at it under the lamp", for actions that change either of them."""
    if action.verb not in ("use", "take", "go"):
        return []
    after = transition.next_state.public
    rows = {row["name"]: row for row in after["receptacles"]}
    lit = [
        item["name"]
        for name in after["location"]
        if name in rows
        for item in rows[name]["contents"]
        if kind(item["name"]) == goal.lamp and "on" in item["flags"]
    ]
    if not lit and action.verb != "use":
        return []
    held = [item["name"] for item in after["holding"]]
    lines = [f"{lit[0]} lit: yes" if lit else "lamp lit: no"]
    lines.append(f"holding {held[0]}" if held else "holding nothing")
    lines.append(f"it is what is wanted: {_yes(bool(held) and kind(held[0]) == goal.object)}")
    return lines
