"""What a purchase met: the goal's requirements held against what the state shows, and against the reward.

The rule of `reward` needs the product, which a state shows in part. What it shows decides; what it leaves open (an
attribute on a page that nobody read, the kind of product, a price out of a range) is what explains the reward.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from dreamgym_envs.core.types import JSON, State, Task
from dreamgym_envs.domains.webshop.needs import fit, plain, prices
from dreamgym_envs.domains.webshop.views import chosen_of, open_item

__all__ = ["Verdict", "satisfied", "shown", "verdicts"]

_FACTORS = (1.0, 0.5, 0.1, 0.0)
_NEARLY = 1e-6


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
    """Return whether what was bought satisfies the task, as far as the state shows.

    With the goal's metadata its attributes and options count, else the pieces of the instruction. The price of a range
    is taken to be its middle.
    """
    item = open_item(state)
    if state.public["page"] != "done" or item is None:
        return False
    found = fit(task.instruction, item)
    if not found.price or found.kind == 0.0:
        return False
    goal = task.metadata
    if {"attributes", "options"} <= goal.keys():
        from dreamgym_envs.domains.webshop.reward import option_met

        chosen = chosen_of(state).values()
        attributes = all(shown(item, attribute) for attribute in goal["attributes"])
        return attributes and all(option_met(chosen, value) for value in goal["options"])
    return found.complete and found.values.items() <= chosen_of(state).items()


def shown(item: Mapping[str, JSON], attribute: str) -> bool:
    """Return whether what was seen of an item has all words of an attribute."""
    return set(plain(" ".join((item["title"], *item["attributes"])))).issuperset(plain(attribute))
