"""From the shop's pages to the abstract state.

`initial_state` reads the first page of an episode, `observe` every later one; a page is the shop's own or was read from
a text of the original (`pages.read`). The page is the authority on what it shows. What the original's text does not
show, the action tells: which item or sub-page was opened and which options are chosen.

The state remembers what was shown of the items: of this search all that were listed, of earlier ones those whose page
was open. So a return to an earlier page of results, or to an item, shows nothing new.
"""

from collections.abc import Mapping
from typing import Any

from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.grammar import FAILURE, parse
from dreamgym_envs.domains.webshop.instructions import evidence
from dreamgym_envs.domains.webshop.pages import PAGE_SIZE, SUB_PAGES, Page
from dreamgym_envs.domains.webshop.records import clean

__all__ = ["START", "initial_state", "observe"]

START = "You enter the shop."
"""Feedback of the initial state."""

_EMPTY: Mapping[str, JSON] = {
    "page": "search",
    "query": "",
    "page_number": 0,
    "total": 0,
    "items": (),
    "open": (),
    "chosen": (),
    "text": "",
    "feedback": START,
}
_LONGEST_QUERY = 512
_LONGEST_TEXT = 4096


def initial_state(page: Page) -> State:
    """Return the state at an episode's first page.

    Raises:
        ValueError: It is not the search page.
    """
    if page.kind != "search":
        raise ValueError(f"an episode starts on the search page, not on a page of kind {page.kind!r}")
    return State(_EMPTY)


def observe(state: State, action: str, page: Page) -> State:
    """Return the state after an action that the shop answered with a page.

    Args:
        state: The state in which the action was taken; its private part is kept.
        action: The agent's text.
        page: What the shop shows now.

    Raises:
        ValueError: The page is no answer to the action in this state.

    Example:
        >>> state = observe(state, "search[red shirt]", page)          # doctest: +SKIP
        >>> state.public["page"], state.public["feedback"]             # doctest: +SKIP
        ('results', 'You see page 1 of the results.')
    """
    command = parse(action)
    public = dict(state.public)
    change = _change(public, command, page) if command is not None else None
    if change is None:
        if page.kind != _kind(public["page"]):
            raise ValueError(f"{action!r} is not possible on the {public['page']} page, yet {page.kind} is shown")
        change = {"feedback": FAILURE}
    return State({**public, **change}, state.private)


def _kind(page: str) -> str:
    return "detail" if page in SUB_PAGES else page


def _change(public: Mapping[str, JSON], command: Action, page: Page) -> dict[str, Any] | None:
    """Return what an action changes, None if the open page has nothing of the kind to be clicked."""
    verb, here = command.verb, public["page"]
    if here == "done":
        return None
    if verb == "search":
        _expect(page, "results", command)
        kept = tuple({**item, "listed": 0} for item in public["items"] if item["status"] == "opened")
        query = clean(command.arguments[0], _LONGEST_QUERY)
        return {**_EMPTY, "query": query, **_results({**public, "items": kept}, page)}
    if verb == "back":
        if here == "search":
            return None
        _expect(page, "search", command)
        kept = tuple({**item, "listed": 0} for item in public["items"] if item["status"] == "opened")
        return {**_EMPTY, "items": kept, "feedback": "You are back at the search."}
    if here == "results":
        return _on_results(public, command, page)
    if here == "item":
        return _on_item(public, command, page)
    if here in SUB_PAGES and verb == "prev":
        _expect(page, "item", command)
        return {"page": "item", "text": "", "feedback": "You are back at the item."}
    return None


def _expect(page: Page, kind: str, command: Action) -> None:
    if page.kind != kind:
        raise ValueError(f"{command.verb} leads to a page of kind {kind!r}, yet {page.kind!r} is shown")


def _results(public: Mapping[str, JSON], page: Page) -> dict[str, Any]:
    """Return a page of results: items not seen before come behind the others."""
    rows = {item["id"]: item for item in public["items"]}
    for listing in page.listings:
        key = listing.asin.lower()
        shown = {"id": key, "title": listing.title, "price": listing.price, "listed": page.number}
        rows[key] = {**rows.get(key, {"status": "listed", "options": (), "attributes": (), "read": ()}), **shown}
    return {
        "page": "results",
        "page_number": page.number,
        "total": page.total,
        "items": tuple({name: row[name] for name in _ROW} for row in rows.values()),
        "feedback": f"You see page {page.number} of the results." if page.total else "Nothing is found.",
    }


_ROW = ("id", "title", "price", "listed", "status", "options", "attributes", "read")


def _on_results(public: Mapping[str, JSON], command: Action, page: Page) -> dict[str, Any] | None:
    number, verb = public["page_number"], command.verb
    more = number * PAGE_SIZE < public["total"]
    if (verb == "next" and more) or (verb == "prev" and number > 1):
        _expect(page, "results", command)
        return _results(public, page)
    if verb != "click":
        return None
    key = command.arguments[0]
    item = next((item for item in public["items"] if item["id"] == key and item["listed"] == number), None)
    if item is None:
        return None
    _expect(page, "item", command)
    seen = _merged(page.instruction, item, page.title)
    options = tuple({"name": name, "values": values} for name, values in page.options)
    opened = {**item, "title": page.title, "price": page.price, "status": "opened", "options": options, **seen}
    return {
        "page": "item",
        "items": _replaced(public, opened),
        "open": (key,),
        "chosen": (),
        "feedback": f"You open {key}.",
    }


def _on_item(public: Mapping[str, JSON], command: Action, page: Page) -> dict[str, Any] | None:
    verb, key = command.verb, public["open"][0]
    item = next(item for item in public["items"] if item["id"] == key)
    if verb == "prev":
        _expect(page, "results", command)
        back = {"open": (), "chosen": (), "feedback": "You are back at the results."}
        return {**_results(public, page), **back}
    if verb in SUB_PAGES:
        _expect(page, "detail", command)
        text = clean(" ".join(page.lines), _LONGEST_TEXT)
        read = tuple(name for name in SUB_PAGES if name in (*item["read"], verb))
        # Only what the shop says of an item counts for the reward, not what customers say.
        seen = _merged(page.instruction, item, text) if verb != "reviews" else {}
        return {
            "page": verb,
            "items": _replaced(public, {**item, "read": read, **seen}),
            "text": text,
            "feedback": f"You read the {verb}.",
        }
    if verb == "buy":
        _expect(page, "done", command)
        return {"page": "done", "feedback": f"You buy {key}."}
    if verb != "click":
        return None
    value = command.arguments[0]
    names = [option["name"] for option in item["options"] if value in option["values"]]
    if not names:
        return None
    _expect(page, "item", command)
    chosen = {entry["option"]: entry["value"] for entry in public["chosen"]} | {names[-1]: value}
    return {
        "chosen": tuple({"option": name, "value": chosen[name]} for name in chosen),
        "feedback": f"You choose {value}.",
    }


def _merged(instruction: str, item: Mapping[str, JSON], text: str) -> dict[str, Any]:
    """Return an item's attributes with what else of the instruction a text bears out, new ones last."""
    known = item["attributes"]
    new = tuple(words for words in evidence(instruction, text) if words not in known)
    return {"attributes": (*known, *new)} if new else {}


def _replaced(public: Mapping[str, JSON], changed: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    return tuple(changed if item["id"] == changed["id"] else item for item in public["items"])
