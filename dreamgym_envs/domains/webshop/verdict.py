"""What a purchase met: the goal's requirements held against what the state shows, and against the reward.

The rule of `reward` needs the product, which a state shows in part. What it shows decides; what it leaves open (an
attribute on a page that nobody read, the kind of product, a price out of a range) is what explains the reward.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from dreamgym_envs.core.types import JSON, State, Task
from dreamgym_envs.domains.webshop.colours import normalise
from dreamgym_envs.domains.webshop.instructions import price_limit
from dreamgym_envs.domains.webshop.needs import fit, plain, prices
from dreamgym_envs.domains.webshop.views import chosen_of, open_item

__all__ = ["TELLING", "Verdict", "satisfied", "shown", "verdicts"]

_FACTORS = (1.0, 0.5, 0.1, 0.0)
_NEARLY = 1e-6
TELLING = frozenset({"features", "description"})
"""Sub-pages that show attributes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One way in which a purchase can have come to its reward.

    Attributes:
        type_factor: 0, 0.1, 0.5 or 1.
        attributes: Whether it has each of the goal's attributes.
        options: Whether each of the goal's options was chosen.
        price: Whether its price is within the limit.
    """

    type_factor: float
    attributes: Mapping[str, bool]
    options: Mapping[str, bool]
    price: bool

    @property
    def parts(self) -> int:
        """How many requirements there are, the price included."""
        return len(self.attributes) + len(self.options) + 1

    @property
    def total(self) -> float:
        """The reward."""
        met = sum(self.attributes.values()) + sum(self.options.values()) + self.price
        return self.type_factor * (met / self.parts)


def verdicts(task: Task, state: State, reward: float) -> Iterator[Verdict]:
    """Yield the verdicts that give a reward, the one with the best type first; none without the goal's metadata.

    Args:
        task: The task; its metadata has attributes, options and price limit, as `WebShopEngine` gives them.
        state: The state in which the open item was bought, or the one after it.
        reward: What was paid.

    Raises:
        ImportError: The extra "webshop" is not installed.
    """
    item, goal = open_item(state), task.metadata
    if item is None or not {"attributes", "options", "price_upper"} <= goal.keys():
        return
    from dreamgym_envs.domains.webshop.reward import option_met

    chosen = chosen_of(state)
    options = {value: option_met(chosen.values(), value) for value in goal["options"]}
    seen = {attribute: shown(item, attribute) for attribute in goal["attributes"]}
    within = {price <= goal["price_upper"] for price in prices(item["price"])}
    open_ones = [attribute for attribute, is_shown in seen.items() if not is_shown]
    for factor in _FACTORS:
        # Unseen attributes count as missing first: that is what the state says of them.
        for price, *rest in product(sorted(within), *([False, True] for _ in open_ones)):
            found = Verdict(factor, {**seen, **dict(zip(open_ones, rest, strict=True))}, options, price)
            if abs(found.total - reward) < _NEARLY:
                yield found


def satisfied(task: Task, state: State) -> bool:
    """Return whether something was bought and nothing that the state shows speaks against it.

    Against it speak a title without a word of the kind, a price of which not even the lowest is within the limit, an
    option that was not chosen, and an attribute that neither features nor description have borne out, once both were
    read. With the goal's metadata its attributes and options count, else the pieces of the instruction.
    """
    item = open_item(state)
    if state.public["page"] != "done" or item is None:
        return False
    found, limit, tag = fit(task.instruction, item), price_limit(task.instruction), prices(item["price"])
    if found.kind == 0.0 or (limit is not None and tag and min(tag) > limit):
        return False
    goal, chosen, all_read = task.metadata, chosen_of(state), set(item["read"]) >= TELLING
    if {"attributes", "options"} <= goal.keys():
        missing = any(not shown(item, attribute) for attribute in goal["attributes"])
        met = all(_is_chosen(chosen.values(), value) for value in goal["options"])
    else:
        missing = bool(found.missing)
        met = not found.lacking and found.values.items() <= chosen.items()
    return met and not (missing and all_read)


def _is_chosen(chosen: Iterable[str], value: str) -> bool:
    """Return whether a chosen value has the wanted one's words, or the other way round, colours reduced to their names.

    It is `reward.option_met` but for misspellings, which need the extra "webshop".
    """
    wanted = set(plain(normalise(value)))
    return any(wanted <= own or own <= wanted for own in (set(plain(normalise(text))) for text in chosen) if own)


def shown(item: Mapping[str, JSON], attribute: str) -> bool:
    """Return whether what was seen of an item has all words of an attribute."""
    return set(plain(" ".join((item["title"], *item["attributes"])))).issuperset(plain(attribute))
