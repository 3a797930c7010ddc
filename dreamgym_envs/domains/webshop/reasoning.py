"""Reasoning templates: why a real transition came out as it did, as a checklist in fixed order.

Preconditions first; for a purchase then every requirement next to its evidence, with the reward as a running tally:
the kind of product, each attribute, each option, the price against its limit. A check that only the outcome can tell
is read from the outcome (see `verdict`). This makes training data; a dream never calls it.
"""

from collections.abc import Iterator

from dreamgym_envs.core.types import State, Transition
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.grammar import FAILURE, parse
from dreamgym_envs.domains.webshop.instructions import kind
from dreamgym_envs.domains.webshop.needs import chosen_of, open_item
from dreamgym_envs.domains.webshop.pages import PAGE_SIZE, SUB_PAGES
from dreamgym_envs.domains.webshop.verdict import Verdict, verdicts

__all__ = ["explain"]


def explain(transition: Transition) -> str:
    """Return the checklist behind a transition, one check a line; see `Domain.explain`.

    Example:
        >>> print(explain(purchase))  # doctest: +SKIP
        on the item page: yes
        kind dress shirt, title Fernhill Men's Slim Fit Dress Shirt: yes
        machine wash, seen machine wash: yes
        tally 1 of 3
        black, chosen black: yes
        tally 2 of 3
        price $24.50, limit 40.00: yes
        tally 3 of 3
        reward 3 of 3
    """
    action = parse(transition.action)
    if action is None:
        return "not in the grammar: nothing happens"
    lines = []
    for line, holds in _preconditions(action, transition.state):
        lines.append(f"{line}: {_yes(holds)}")
        if not holds:
            break
    if transition.next_state.public["feedback"] == FAILURE:
        return "\n".join([*lines, "nothing happens"])
    if action.verb == "buy":
        lines += _purchase(transition)
    else:
        lines += _findings(action, transition)
    return "\n".join(lines)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _preconditions(action: Action, state: State) -> Iterator[tuple[str, bool]]:
    public = state.public
    page, number = public["page"], public["page_number"]
    match action.verb:
        case "search":
            yield "the shop is open", page != "done"
        case "back":
            yield "not on the search page", page not in ("search", "done")
        case "next":
            yield "on the results", page == "results"
            yield f"more than {number * PAGE_SIZE} found", number * PAGE_SIZE < public["total"]
        case "prev":
            yield "on the results, an item or a sub-page", page not in ("search", "done")
            if page == "results":
                yield f"page {number} is above 1", number > 1
        case "buy":
            yield "on the item page", page == "item"
        case "click":
            yield "on the results or an item", page in ("results", "item")
            name = action.arguments[0]
            if page == "results":
                listed = any(item["id"] == name and item["listed"] == number for item in public["items"])
                yield f"{name} is on this page", listed
            else:
                item = open_item(state)
                names = [o["name"] for o in item["options"] if name in o["values"]] if item is not None else []
                yield f"{name} is a value of {names[-1] if names else 'an option'}", bool(names)
        case _:
            yield "on the item page", page == "item"


def _findings(action: Action, transition: Transition) -> list[str]:
    """Return what an item's page or sub-page has borne out that was not known before."""
    before, after = transition.state.public, transition.next_state.public
    if after["page"] not in ("item", *SUB_PAGES) or not after["open"]:
        return []
    known = {item["id"]: item["attributes"] for item in before["items"]}
    new = open_item(transition.next_state)
    if new is None or (action.verb == "click" and before["page"] == "item"):
        return []
    return [f"it says {words}" for words in new["attributes"] if words not in known.get(new["id"], ())]


def _purchase(transition: Transition) -> list[str]:
    """Return every requirement next to its evidence, with the running tally."""
    item = open_item(transition.state)
    verdict = next(verdicts(transition.task, transition.state, transition.reward), None)
    if item is None or verdict is None:
        return [f"reward {transition.reward:g}"]
    lines = [f"kind {kind(transition.task.instruction)}, title {item['title']}: {_KINDS[verdict.type_factor]}"]
    chosen = chosen_of(transition.state)
    tally = 0
    for line, holds in _requirements(verdict, transition, chosen):
        tally += holds
        lines += [f"{line}: {_yes(holds)}", f"tally {tally} of {verdict.parts}"]
    share = "" if verdict.type_factor == 1.0 else f"{verdict.type_factor:g} times "
    return [*lines, f"reward {share}{tally} of {verdict.parts}"]


_KINDS = {1.0: "yes", 0.5: "half", 0.1: "a tenth", 0.0: "no"}
"""Type factor in words."""


def _requirements(verdict: Verdict, transition: Transition, chosen: dict[str, str]) -> Iterator[tuple[str, bool]]:
    item = open_item(transition.state)
    assert item is not None
    for attribute, met in verdict.attributes.items():
        words = set(attribute.split())
        seen = [text for text in item["attributes"] if words & set(text.split())]
        yield f"{attribute}, seen {seen[0] if seen else 'nothing of it'}", met
    for value, met in verdict.options.items():
        yield f"{value}, chosen {' and '.join(chosen.values()) or 'nothing'}", met
    yield f"price {item['price']}, limit {transition.task.metadata['price_upper']:.2f}", verdict.price
