"""Reasoning templates: why a real transition came out as it did, as a checklist in fixed order.

Preconditions first; for a purchase then every requirement, with the reward as a running tally: the kind of product,
each attribute, each option, the price. A check that only the outcome can tell is read from the outcome (see `verdict`).
The lines are of few fixed forms, whose only free words are an action's argument, an option's name and what the goal
asks for. This makes training data; a dream never calls it.
"""

from collections.abc import Iterator

from dreamgym_envs.core.types import State, Transition
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.grammar import FAILURE, parse
from dreamgym_envs.domains.webshop.pages import PAGE_SIZE, SUB_PAGES
from dreamgym_envs.domains.webshop.verdict import Verdict, verdicts
from dreamgym_envs.domains.webshop.views import has_next, open_item, results, results_row, target

__all__ = ["explain"]


def explain(transition: Transition) -> str:
    """Return the checklist behind a transition, one check a line; see `Domain.explain`.

    Example:
        >>> print(explain(purchase))  # doctest: +SKIP
        on the item page: yes
        kind: yes
        machine wash seen: yes
        tally 1 of 3
        black chosen: yes
        tally 2 of 3
        price within: yes
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
    if (name := target(transition.state, action)) is not None:
        lines.append(f"seen before: {_yes(results_row(transition.state, name) is not None)}")
    if action.verb == "buy":
        lines += _purchase(transition)
    return "\n".join(lines)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _preconditions(action: Action, state: State) -> Iterator[tuple[str, bool]]:
    page, number = state.public["page"], state.public["page_number"]
    match action.verb:
        case "search":
            return
        case "back":
            yield "not on the search page", page != "search"
        case "next":
            yield "on the results", page == "results"
            yield f"more than {number * PAGE_SIZE} found", has_next(state)
        case "prev" if page == "results":
            yield "on the results", True
            yield f"page {number} is above 1", number > 1
        case "prev" if page in SUB_PAGES:
            yield "on a sub-page", True
        case "click" if page == "results":
            yield f"{action.arguments[0]} is on this page", action.arguments[0] in results(state)["items"]
        case "click" if page == "item":
            yield _value(action.arguments[0], state)
        case _:
            yield "on the item page", page == "item"


def _value(value: str, state: State) -> tuple[str, bool]:
    item = open_item(state)
    names = [option["name"] for option in item["options"] if value in option["values"]] if item is not None else []
    return (f"{value} is a value of {names[-1]}", True) if names else (f"{value} is a value", False)


def _purchase(transition: Transition) -> list[str]:
    """Return every requirement with the running tally; the reward alone where the goal is unknown."""
    verdict = next(verdicts(transition.task, transition.state, transition.reward), None)
    if verdict is None:
        return [f"reward {transition.reward:g}"]
    kind, share = _KINDS[verdict.type_factor]
    lines = [f"kind: {kind}"]
    tally = 0
    for line, holds in _requirements(verdict):
        tally += holds
        lines += [f"{line}: {_yes(holds)}", f"tally {tally} of {verdict.parts}"]
    return [*lines, f"reward {share}{tally} of {verdict.parts}"]


_KINDS = {1.0: ("yes", ""), 0.5: ("half", "half of "), 0.1: ("a tenth", "a tenth of "), 0.0: ("no", "none of ")}
"""Type factor in words, alone and before what it is a factor of."""


def _requirements(verdict: Verdict) -> Iterator[tuple[str, bool]]:
    for attribute, met in verdict.attributes.items():
        yield f"{attribute} seen", met
    for value, met in verdict.options.items():
        yield f"{value} chosen", met
    yield "price within", verdict.price
