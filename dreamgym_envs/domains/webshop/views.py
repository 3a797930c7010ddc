"""What a state shows at the moment: the page of results, the open item and its chosen options.

A state remembers every page of results by a name, "page 2 of red shirt". Here stands how the name is made, and which
page an action leads to.
"""

from collections.abc import Mapping

from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.pages import PAGE_SIZE
from dreamgym_envs.domains.webshop.records import clean

__all__ = [
    "chosen_of",
    "has_next",
    "listed",
    "open_item",
    "place",
    "query_of",
    "results",
    "results_name",
    "results_row",
    "target",
]

_LONGEST_QUERY = 512

_Row = Mapping[str, JSON]


def query_of(keywords: str) -> str:
    """Return keywords as a state has them: on one line, cut to what the schema allows."""
    return clean(keywords, _LONGEST_QUERY)


def results_name(query: str, number: int) -> str:
    """Return the name of a page of results.

    Example:
        >>> results_name("red shirt", 2)
        'page 2 of red shirt'
    """
    return f"page {number} of {query}"


def results_row(state: State, name: str) -> _Row | None:
    """Return a page of results by its name, None if it was never shown."""
    return next((row for row in state.public["results"] if row["name"] == name), None)


def results(state: State) -> _Row:
    """Return the page of results that is shown or was left for an item; one without items if there is none."""
    name = results_name(state.public["query"], state.public["page_number"])
    return results_row(state, name) or {"name": name, "total": 0, "items": ()}


def listed(state: State) -> tuple[_Row, ...]:
    """Return the items on this page of results, best match first."""
    keys = results(state)["items"]
    rows = {item["id"]: item for item in state.public["items"] if item["id"] in keys}
    return tuple(rows[key] for key in keys if key in rows)


def has_next(state: State) -> bool:
    """Return whether more results follow on another page."""
    return bool(state.public["page_number"] * PAGE_SIZE < results(state)["total"])


def place(state: State, key: str) -> int:
    """Return the number of the page of this search on which an item was shown, 0 if on none."""
    query = state.public["query"]
    number = 1
    while (row := results_row(state, results_name(query, number))) is not None:
        if key in row["items"]:
            return number
        number += 1
    return 0


def target(state: State, action: Action) -> str | None:
    """Return the name of the page of results that an action turns to, None if it turns to none."""
    public = state.public
    number = public["page_number"]
    if action.verb == "search":
        return results_name(query_of(action.arguments[0]), 1)
    if public["page"] == "results" and action.verb == "next" and has_next(state):
        return results_name(public["query"], number + 1)
    if public["page"] == "results" and action.verb == "prev" and number > 1:
        return results_name(public["query"], number - 1)
    return None


def open_item(state: State) -> _Row | None:
    """Return the item whose page is open or that was bought, None on other pages."""
    key = state.public["open"]
    return next((item for item in state.public["items"] if item["id"] in key), None) if key else None


def chosen_of(state: State) -> dict[str, str]:
    """Return the chosen values by name of the option."""
    return {entry["option"]: entry["value"] for entry in state.public["chosen"]}
