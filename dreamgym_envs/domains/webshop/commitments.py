"""What an action can touch, and which products an episode reveals that were there all along.

A dream commits at reset to a few products: one that satisfies the instruction and near misses, so that a good search
can succeed. A commitment is over once the item's page was open and has borne out what was promised.
"""

from collections.abc import Mapping, Sequence

from dreamgym_envs.core.types import JSON, State, Task, Trajectory
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.needs import Fit, asked_values, fit
from dreamgym_envs.domains.webshop.pages import SUB_PAGES

__all__ = ["MOST", "focus", "hindsight", "plausible", "settle"]

MOST = 3
"""Most commitments of a start; the schema's "maxItems"."""

_Row = Mapping[str, JSON]


def focus(task: Task, state: State, action: Action | None) -> Mapping[str, JSON]:
    """Return the part of the state that an action can touch; see `Domain.focus`.

    A new search and the way back to the search page touch every item that was shown, since those drop out of the
    list; everything else touches one page of results, or one item.
    """
    public, hidden = state.public, state.private.get("hidden", ())
    page = public["page"]
    if action is None:
        return {"page": page}
    verb, rows = action.verb, public["items"]
    part: dict[str, JSON] = {"page": page, "open": public["open"]}
    keys = set(public["open"])
    if verb in ("search", "back"):
        part |= {"chosen": public["chosen"], "items": _picked(rows, "id", "listed", "status")}
        return {**part, "hidden": hidden} if verb == "search" and hidden else part
    if verb in ("next", "prev") and page == "results":
        number = public["page_number"] + (1 if verb == "next" else -1)
        there = [row for row in rows if row["listed"] == number]
        part |= {name: public[name] for name in ("query", "page_number", "total")}
        part["items"] = _picked(there, "id")
        return part if there or not hidden else {**part, "hidden": hidden}
    if page == "results":
        keys = set(action.arguments)
        part["page_number"] = public["page_number"]
        part["items"] = tuple(row for row in rows if row["id"] in keys)
    elif verb == "click":
        part |= {"chosen": public["chosen"], "items": _picked([r for r in rows if r["id"] in keys], "id", "options")}
        return part
    else:
        shown = ("id", "title", "price", "attributes", "read") if verb in ("buy", *SUB_PAGES) else ("id",)
        part |= {"chosen": public["chosen"], "items": _picked([r for r in rows if r["id"] in keys], *shown)}
        if verb == "prev":
            return {**part, "page_number": public["page_number"]}
    promised = tuple(entry for entry in hidden if entry["id"] in keys)
    return {**part, "hidden": promised} if promised else part


def _picked(rows: Sequence[_Row], *names: str) -> tuple[_Row, ...]:
    return tuple({name: row[name] for name in names} for row in rows)


def hindsight(trajectory: Trajectory) -> list[Mapping[str, JSON]]:
    """Return the products before each step that the rest of the episode reveals; see `Domain.hindsight`.

    They are the items that were opened: the bought one first, then those that fit the instruction best.
    """
    if not trajectory.steps:
        return []
    instruction, last = trajectory.task.instruction, trajectory.steps[-1].state.public
    opened = [row for row in last["items"] if row["status"] == "opened"]
    bought = last["open"] if last["page"] == "done" else ()
    opened.sort(key=lambda row: (row["id"] not in bought, -fit(instruction, row).score))
    hidden = tuple(_commitment(instruction, row) for row in opened[:MOST])
    before = (trajectory.task.initial, *(step.state for step in trajectory.steps[:-1]))
    return [{"hidden": _left(hidden, state)} for state in before]


def _commitment(instruction: str, row: _Row) -> _Row:
    values = tuple(asked_values(instruction, row["options"]).values())
    return {**{name: row[name] for name in ("id", "title", "price")}, "values": values, "attributes": row["attributes"]}


def settle(state: State) -> State:
    """Return a state without the commitments that the items' pages have made good."""
    hidden = state.private.get("hidden", ())
    left = _left(hidden, state) if hidden else hidden
    return state if len(left) == len(hidden) else State(state.public, {**state.private, "hidden": left})


def _left(hidden: Sequence[_Row], state: State) -> tuple[_Row, ...]:
    opened = {row["id"]: set(row["attributes"]) for row in state.public["items"] if row["status"] == "opened"}
    return tuple(e for e in hidden if e["id"] not in opened or not opened[e["id"]].issuperset(e["attributes"]))


def plausible(instruction: str, state: State) -> bool:
    """Return whether a start leaves the task open and solvable as far as one can tell.

    Nothing was bought yet; all commitments are new items with a price; and one of them is of the kind and within the
    price limit.
    """
    hidden = state.private.get("hidden", ())
    known = {row["id"] for row in state.public["items"]}
    if state.public["page"] == "done" or any(e["id"] in known or not e["price"].startswith("$") for e in hidden):
        return False
    found = [_promised(instruction, entry) for entry in hidden]
    return any(promised.kind > 0 and promised.price for promised in found)


def _promised(instruction: str, entry: _Row) -> Fit:
    return fit(instruction, {**entry, "options": (), "status": "listed"})
