"""What an action can touch, and which products an episode reveals that were there all along.

A dream commits at reset to a few products: one that satisfies the instruction and near misses, so that a good search
can succeed. A commitment holds for the whole episode: what its item's pages have not borne out yet, and whether a
purchase of it is paid, follows from it to the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dreamgym_envs.core.types import JSON, State, Task, Trajectory
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.instructions import evidence, price_limit
from dreamgym_envs.domains.webshop.needs import Fit, asked_values, fit, prices
from dreamgym_envs.domains.webshop.pages import SUB_PAGES
from dreamgym_envs.domains.webshop.verdict import TELLING, shown, verdicts
from dreamgym_envs.domains.webshop.views import open_item, results, results_row, target

__all__ = ["MOST", "comparisons", "disclosed", "focus", "hindsight", "owed", "plausible"]

MOST = 3
"""Most commitments of a start; the schema's "maxItems"."""

_RECENT = 20
"""Items shown last that a page of results can show again."""

_LEFT_OUT = 4
"""One in so many bought items is not committed to."""

_Row = Mapping[str, JSON]


def focus(task: Task, state: State, action: Action | None) -> Mapping[str, JSON]:
    """Return the part of the state that an action can touch or depends on; see `Domain.focus`.

    Where an action turns to a page of results that was shown before, that page is all it takes. To a new one belong
    the items that may come again, and the commitments that were not found yet.
    """
    public = state.public
    page = public["page"]
    if action is None:
        return {"page": page}
    verb = action.verb
    if verb == "search":
        return {**_part(public, "page", "open", "chosen"), **_turned(state, target(state, action))}
    if verb == "back":
        return _part(public, "page", "open", "chosen")
    if page == "results":
        return {**_part(public, "page", "page_number", "query"), **_among_results(state, action)}
    if page == "item":
        return _on_item(state, action)
    return _part(public, "page", "open")


def _turned(state: State, name: str | None, *others: _Row) -> dict[str, JSON]:
    """Return what tells a page of results of a name; `others` are pages to show beside it."""
    known = results_row(state, name) if name is not None else None
    rows = others if known is None else (*others, known)
    part: dict[str, JSON] = {"results": _picked(rows, "name", "total")}
    if name is None or known is not None:
        return part
    items = state.public["items"]
    found = {item["id"] for item in items}
    left = [entry for entry in state.private.get("hidden", ()) if entry["id"] not in found]
    part["items"] = _picked(items[-_RECENT:], "id", "title")
    return {**part, "hidden": _picked(left, "id", "title", "price")} if left else part


def _among_results(state: State, action: Action) -> dict[str, JSON]:
    here = results(state)
    if action.verb in ("next", "prev"):
        return _turned(state, target(state, action), here)
    keys = action.arguments
    listed = tuple(key for key in keys if key in here["items"])
    rows = tuple(item for item in state.public["items"] if item["id"] in keys)
    return {"results": ({"name": here["name"], "items": listed},), "items": rows, **_promised(state, keys)}


def _on_item(state: State, action: Action) -> dict[str, JSON]:
    public, verb = state.public, action.verb
    rows = [item for item in public["items"] if item["id"] in public["open"]]
    if verb in SUB_PAGES:
        part = {**_part(public, "page", "open"), "items": _picked(rows, "id", "title", "attributes", "read")}
        return {**part, **_promised(state, public["open"])}
    part = _part(public, "page", "open", "chosen")
    if verb == "prev":
        return {**part, "page_number": public["page_number"]}
    if verb == "buy":
        part["items"] = _picked(rows, "id", "title", "price", "attributes", "read")
        return {**part, **_promised(state, public["open"])}
    if verb != "click":
        return part
    values = action.arguments
    options = (option for row in rows for option in row["options"] if set(values) & set(option["values"]))
    having = tuple({"name": option["name"], "values": values} for option in options)
    return {**part, "items": tuple({"id": row["id"], "options": having} for row in rows)}


def _part(public: Mapping[str, JSON], *names: str) -> dict[str, JSON]:
    return {name: public[name] for name in names}


def _picked(rows: Iterable[_Row], *names: str) -> tuple[_Row, ...]:
    return tuple(_part(row, *names) for row in rows)


def _promised(state: State, keys: Iterable[str]) -> dict[str, JSON]:
    entries = tuple(entry for entry in state.private.get("hidden", ()) if entry["id"] in keys)
    return {"hidden": entries} if entries else {}


def owed(state: State, action: Action) -> Mapping[tuple[str, ...], Sequence[str]]:
    """Return the promised attributes that a sub-page has to show, by path, since the other one that could is read.

    See `Domain.owed`.
    """
    item = open_item(state)
    if action.verb not in TELLING or state.public["page"] != "item" or item is None:
        return {}
    promised = [words for entry in _promised(state, (item["id"],)).get("hidden", ()) for words in entry["attributes"]]
    if not promised or {*item["read"], action.verb} < TELLING or action.verb in item["read"]:
        return {}
    missing = tuple(words for words in dict.fromkeys(promised) if not shown(item, words))
    return {("items", item["id"], "attributes"): missing} if missing else {}


def comparisons(task: Task, state: State, action: Action | None) -> tuple[str, ...]:
    """Return how the open item's price tag compares with the instruction's limit; see `Domain.comparisons`.

    Only a purchase needs it.
    """
    item = open_item(state)
    if action is None or action.verb != "buy" or state.public["page"] != "item" or item is None:
        return ()
    limit, tag = price_limit(task.instruction), prices(item["price"])
    if limit is None:
        return ("no limit",)
    if not tag:
        return ()
    if max(tag) <= limit:
        return ("price within",)
    return ("price above",) if min(tag) > limit else ("price spans the limit",)


def hindsight(trajectory: Trajectory) -> list[Mapping[str, JSON]]:
    """Return the products that the whole episode reveals, the same before each step; see `Domain.hindsight`.

    They are items that were opened: the bought one first, then those that fit the instruction best; one to three, by
    the length of the episode, so that a model also learns to open what it has not committed to. What was
    bought has also the goal's attributes that its reward says it has, though none of its pages was open that shows
    them: so the reward follows from the commitment. Where the pages say all, it is left out now and then, so that a
    model also learns to judge a purchase that it has not committed to.
    """
    if not trajectory.steps:
        return []
    instruction, last = trajectory.task.instruction, trajectory.steps[-1].state.public
    bought = last["open"] if last["page"] == "done" else ()
    left_out = bought if _left_out(trajectory) else ()
    opened = [row for row in last["items"] if row["status"] == "opened" and row["id"] not in left_out]
    opened.sort(key=lambda row: (row["id"] not in bought, -fit(instruction, row).score))
    hidden = tuple(_commitment(instruction, row) for row in opened[: 1 + len(trajectory.steps) % MOST])
    if bought and hidden and not left_out:
        first = hidden[0]
        hidden = ({**first, "attributes": (*first["attributes"], *(_paid(trajectory) or ()))}, *hidden[1:])
    return [{"hidden": hidden} for _ in trajectory.steps]


def _commitment(instruction: str, row: _Row) -> dict[str, Any]:
    asked = asked_values(instruction, row["options"]).items()
    options = tuple({"name": name, "values": (value,)} for name, value in asked)
    return {**_part(row, "id", "title", "price"), "options": options, "attributes": row["attributes"]}


def _paid(trajectory: Trajectory) -> tuple[str, ...] | None:
    """Return the goal's attributes that the bought item has by its reward, and that no page has shown.

    None says that nobody knows: nothing was bought, or the goal is unknown.
    """
    last = trajectory.steps[-1]
    item, verdict = open_item(last.state), next(verdicts(trajectory.task, last.state, last.reward), None)
    if item is None or verdict is None:
        return None
    return tuple(words for words, met in verdict.attributes.items() if met and not shown(item, words))


def _left_out(trajectory: Trajectory) -> bool:
    """Return whether no commitment tells of what was bought: of one item in four, if its pages say all."""
    last = trajectory.steps[-1].state.public
    if last["page"] != "done" or not last["open"]:
        return False
    return sum(last["open"][0].encode()) % _LEFT_OUT == 1 and _paid(trajectory) == ()


def disclosed(trajectory: Trajectory) -> float:
    """Return 1 if the commitments tell of a product that satisfies the task, else 0; see `Domain.disclosed`."""
    return float(trajectory.success and not _left_out(trajectory))


def plausible(instruction: str, state: State) -> bool:
    """Return whether a start leaves the task open and solvable as far as one can tell.

    Nothing was bought yet; all commitments are new items with a price that promise nothing but what the instruction
    asks for; and one of them is of the kind, within the price limit, and lacks no more than one piece of the
    instruction, since a piece such as "for my sister" is nothing that an item can have.
    """
    hidden = state.private.get("hidden", ())
    known = {row["id"] for row in state.public["items"]}
    if state.public["page"] == "done" or any(e["id"] in known or not e["price"].startswith("$") for e in hidden):
        return False
    fits = [fit(instruction, {**entry, "status": "opened"}) for entry in hidden]
    if not all(_is_asked(instruction, entry, found) for entry, found in zip(hidden, fits, strict=True)):
        return False
    return any(f.kind > 0 and f.price and len(f.missing) + len(f.lacking) <= 1 for f in fits)


def _is_asked(instruction: str, entry: _Row, found: Fit) -> bool:
    """Return whether the instruction asks for all that a commitment promises."""
    named = all(words in evidence(instruction, words) for words in entry["attributes"])
    return named and all(option["values"] == (found.values.get(option["name"]),) for option in entry["options"])
