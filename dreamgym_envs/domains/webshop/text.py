"""From the shop's pages to the abstract state.

`initial_state` reads the first page of an episode, `observe` every later one; a page is the shop's own or was read from
a text of the original (`pages.read`). The page is the authority on what it shows. What the original's text does not
show, the action tells: which item or sub-page was opened and which options are chosen.

The state remembers every page of results and every item that was shown. So a search that was done before, a return to
an earlier page or to an item shows nothing new. Titles and texts are in lower case: nothing depends on theirs.
"""

from collections.abc import Mapping
from typing import Any

from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.grammar import FAILURE, parse
from dreamgym_envs.domains.webshop.instructions import evidence
from dreamgym_envs.domains.webshop.pages import SUB_PAGES, Page
from dreamgym_envs.domains.webshop.records import LONGEST_TITLE, clean
from dreamgym_envs.domains.webshop.views import open_item, query_of, results, results_name, results_row, target

__all__ = ["START", "initial_state", "observe"]

START = "You enter the shop."
"""Feedback of the initial state."""

_EMPTY: Mapping[str, JSON] = {
    "page": "search",
    "query": "",
    "page_number": 0,
    "text": "",
    "items": (),
    "results": (),
    "open": (),
    "chosen": (),
    "feedback": START,
}
_CLOSED: Mapping[str, JSON] = {"text": "", "open": (), "chosen": ()}
"""What a state has of an item where none is open."""

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
    change = _change(state, command, page) if command is not None else None
    if change is None:
        here = state.public["page"]
        if page.kind != _kind(here):
            raise ValueError(f"{action!r} is not possible on the {here} page, yet {page.kind} is shown")
        change = {"feedback": FAILURE}
    return State({**state.public, **change}, state.private)


def _kind(page: str) -> str:
    return "detail" if page in SUB_PAGES else page


def _change(state: State, command: Action, page: Page) -> dict[str, Any] | None:
    """Return what an action changes, None if the open page has nothing of the kind to be clicked."""
    verb, here = command.verb, state.public["page"]
    if here == "done":
        return None
    if verb == "search":
        return {**_CLOSED, **_results(state, command, query_of(command.arguments[0]), page)}
    if verb == "back":
        if here == "search":
            return None
        _expect(page, "search", command)
        return {**_CLOSED, "page": "search", "query": "", "page_number": 0, "feedback": "You are back at the search."}
    if here == "results":
        return _on_results(state, command, page)
    if here == "item":
        return _on_item(state, command, page)
    if here in SUB_PAGES and verb == "prev":
        _expect(page, "item", command)
        return {"page": "item", "text": "", "feedback": "You are back at the item."}
    return None


def _expect(page: Page, kind: str, command: Action) -> None:
    if page.kind != kind:
        raise ValueError(f"{command.verb} leads to a page of kind {kind!r}, yet {page.kind!r} is shown")


def _results(state: State, command: Action, query: str, page: Page) -> dict[str, Any]:
    """Return what a page of results changes: it is remembered, with the items on it that were never shown before."""
    _expect(page, "results", command)
    public, name = state.public, results_name(query, page.number)
    shown = {listing.asin.lower(): listing for listing in page.listings}
    row = {"name": name, "total": page.total, "items": tuple(shown)}
    change = {
        "page": "results",
        "query": query,
        "page_number": page.number,
        "feedback": f"You see page {page.number} of the results." if page.total else "Nothing is found.",
    }
    old = results_row(state, name)
    if old == row:
        return change
    # A page of the same name shows something else only where two queries are alike once they are cut.
    pages = (*public["results"], row) if old is None else tuple(row if r is old else r for r in public["results"])
    known = {item["id"] for item in public["items"]}
    new = tuple(_item(key, shown[key].title, shown[key].price) for key in shown if key not in known)
    return {**change, "items": (*public["items"], *new), "results": pages}


def _item(key: str, title: str, price: str) -> Mapping[str, JSON]:
    """Return an item as a page of results shows it."""
    return {
        "id": key,
        "title": clean(title.lower(), LONGEST_TITLE),
        "price": price,
        "status": "listed",
        "options": (),
        "attributes": (),
        "read": (),
    }


def _on_results(state: State, command: Action, page: Page) -> dict[str, Any] | None:
    if command.verb in ("next", "prev"):
        return _results(state, command, state.public["query"], page) if target(state, command) is not None else None
    if command.verb != "click" or command.arguments[0] not in results(state)["items"]:
        return None
    _expect(page, "item", command)
    key = command.arguments[0]
    item = next(item for item in state.public["items"] if item["id"] == key)
    options = tuple({"name": name, "values": values} for name, values in page.options)
    seen = _merged(page.instruction, item, item["title"])
    return {
        "page": "item",
        "items": _replaced(state, {**item, "status": "opened", "options": options, **seen}),
        "open": (key,),
        "feedback": f"You open {key}.",
    }


def _on_item(state: State, command: Action, page: Page) -> dict[str, Any] | None:
    verb, item = command.verb, open_item(state)
    assert item is not None
    if verb == "prev":
        _expect(page, "results", command)
        return {**_CLOSED, "page": "results", "feedback": "You are back at the results."}
    if verb in SUB_PAGES:
        _expect(page, "detail", command)
        text = clean(" ".join(page.lines).lower(), _LONGEST_TEXT)
        read = tuple(name for name in SUB_PAGES if name in (*item["read"], verb))
        # Only what the shop says of an item counts for the reward, not what customers say.
        seen = _merged(page.instruction, item, text) if verb != "reviews" else {}
        return {
            "page": verb,
            "text": text,
            "items": _replaced(state, {**item, "read": read, **seen}),
            "feedback": f"You read the {verb}.",
        }
    if verb == "buy":
        _expect(page, "done", command)
        return {"page": "done", "feedback": f"You buy {item['id']}."}
    if verb != "click":
        return None
    value = command.arguments[0]
    names = [option["name"] for option in item["options"] if value in option["values"]]
    if not names:
        return None
    _expect(page, "item", command)
    chosen = {entry["option"]: entry["value"] for entry in state.public["chosen"]} | {names[-1]: value}
    return {
        "chosen": tuple({"option": name, "value": chosen[name]} for name in chosen),
        "feedback": f"You choose {value}.",
    }


def _merged(instruction: str, item: Mapping[str, JSON], text: str) -> dict[str, Any]:
    """Return an item's attributes with what else of the instruction a text bears out, new ones last."""
    known = item["attributes"]
    new = tuple(words for words in evidence(instruction, text) if words not in known)
    return {"attributes": (*known, *new)} if new else {}


def _replaced(state: State, changed: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    return tuple(changed if item["id"] == changed["id"] else item for item in state.public["items"])
