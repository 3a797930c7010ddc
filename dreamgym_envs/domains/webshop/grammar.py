"""Actions: search[keywords] and click[element], read and proposed.

An element is a button, an item's id or an option's value, in any case. Buttons have verbs of their own, so that what an
action does shows in its verb.
"""

import re
from functools import lru_cache

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.instructions import phrases, queries
from dreamgym_envs.domains.webshop.pages import SUB_PAGES
from dreamgym_envs.domains.webshop.views import has_next, open_item, results

__all__ = ["BUTTONS", "FAILURE", "MAX_CANDIDATES", "candidates", "click", "parse"]

FAILURE = "Nothing happens."
"""Feedback to whatever is impossible; the original answers with the same page."""

MAX_CANDIDATES = 80
"""Most candidates of a state. Of an item with more values of options those come first that share words with the
instruction."""

BUTTONS = {
    "back to search": "back",
    "next >": "next",
    "< prev": "prev",
    "description": "description",
    "features": "features",
    "reviews": "reviews",
    "buy now": "buy",
}
"""Button to the verb of a click on it."""

_RULE = re.compile(r"(.+)\[(.+)\]")


@lru_cache(maxsize=1 << 14)
def parse(text: str) -> Action | None:
    """Return what an action does, None if it is not in the grammar.

    The rule is the original's: verb and brackets, whatever follows the last bracket left out; what is clicked counts in
    lower case. Not actions: a search for nothing, and a click on "Search", which the original ignores.

    Example:
        >>> parse("search[Red shirt]"), parse("click[Buy Now]")
        (Action(verb='search', arguments=('red shirt',)), Action(verb='buy', arguments=()))
    """
    found = _RULE.match(text.strip())
    if found is None:
        return None
    verb, argument = found[1], found[2].lower()
    if verb == "search":
        return Action("search", (argument,))
    if verb != "click" or argument == "search":
        return None
    button = BUTTONS.get(argument)
    return Action("click", (argument,)) if button is None else Action(button)


def click(element: str) -> str:
    """Return the action that clicks an element."""
    return f"click[{element}]"


def candidates(task: Task, state: State) -> tuple[str, ...]:
    """Return the actions worth considering, from instruction and public state: at most `MAX_CANDIDATES`.

    On the search page these are queries made from the instruction. On a page of results, its items in order and the
    buttons. On an item's page the buttons, then the options' values that are not chosen yet.

    Left out, because they only cost a step: sub-pages that were read before, and searches from other pages than the
    search page. The grammar accepts them all the same.
    """
    public = state.public
    page = public["page"]
    if page == "search":
        return tuple(f"search[{query}]" for query in queries(task.instruction))
    if page == "results":
        found = [click(key) for key in results(state)["items"]]
        found += ["click[next >]"] * has_next(state) + ["click[< prev]"] * (public["page_number"] > 1)
        return (*found, "click[back to search]")
    item = open_item(state)
    if page != "item" or item is None:  # a sub-page; after a purchase nothing can be done, and this is as good as any
        return ("click[< prev]", "click[back to search]")
    found = ["click[buy now]"]
    found += [click(name) for name in SUB_PAGES if name not in item["read"]]
    found += ["click[< prev]", "click[back to search]"]
    taken = {entry["value"] for entry in public["chosen"]}
    values = [v for option in item["options"] for v in option["values"] if v not in taken and "[" not in v]
    if len(found) + len(values) > MAX_CANDIDATES:
        wanted = set(" ".join(phrases(task.instruction)).split())
        values.sort(key=lambda value: not wanted.intersection(value.split()))
    return tuple(dict.fromkeys([*found, *map(click, values)]))[:MAX_CANDIDATES]
