"""Goals: what a shopper is sent to buy, and how much it may cost.

As in the original, goals come from the human instructions if a catalogue has any, else from the attribute file's
instructions, one goal for each choice of options. A price limit is drawn for each: the larger of two of the four next
multiples of ten above the product's price. Here the goal's id is the seed, so that a goal is the same in every shop;
and all goals are equally likely, where the original draws those of the attribute file by how rare their attributes are.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from zlib import crc32

from dreamgym_envs.domains.webshop.products import Instruction, Product

__all__ = ["NO_LIMIT", "SPLITS", "Goal", "goal_ids", "goals_of", "split_of"]

SPLITS = ("train", "valid", "test")

NO_LIMIT = 1_000_000.0
"""Price limit of a goal whose product costs too much for one to be drawn (980 dollars or more)."""

_LIMITS = tuple(10.0 * step for step in range(1, 100))


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be bought.

    Attributes:
        id: The product's id and the goal's number among those of the product.
        product: The product that the instruction was written for. Others may satisfy it as well.
        instruction: The task in words, with the price limit.
        attributes: What the bought product must be.
        options: Values that must be chosen.
        option_names: Names of the options, where the instruction says them (attribute file), else empty.
        price_upper: What the bought product may cost, in dollars.
    """

    id: str
    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    option_names: tuple[str, ...]
    price_upper: float

    @property
    def kind(self) -> str:
        """What the goal asks for beside a kind of product: "attributes", "attributes+options+price" and so on."""
        parts = ["attributes"]
        if self.options:
            parts.append("options")
        if self.price_upper < NO_LIMIT:
            parts.append("price")
        return "+".join(parts)


def split_of(asin: str) -> str:
    """Return the split of a product: of ten products eight are for training, one each for validation and test.

    It depends on the id alone, so that it stays when a catalogue grows.
    """
    place = crc32(f"split {asin}".encode()) % 10
    return SPLITS[0] if place < 8 else SPLITS[place - 7]


def goals_of(item: Product, human: bool) -> Iterator[Goal]:
    """Yield a product's goals.

    Args:
        item: The product.
        human: Whether goals come from human instructions, else from the attribute file: one for each choice of options.
    """
    return _human_goals(item) if human else _choice_goals(item)


def goal_ids(item: Product, human: bool) -> list[str]:
    """Return the ids of a product's goals, in order, without making the goals."""
    if human:
        count = len(item.instructions)
    else:
        count = prod(map(len, item.options.values())) if item.template is not None else 0
    return [f"{item.asin}-{number}" for number in range(count)]


def _human_goals(item: Product) -> Iterator[Goal]:
    for number, instruction in enumerate(item.instructions):
        yield _goal(item, number, instruction, instruction.options, ())


def _choice_goals(item: Product) -> Iterator[Goal]:
    if item.template is None:
        return
    names = tuple(sorted(item.options))
    choices = product(*(item.options[name] for name in names))
    for number, values in enumerate(choices):
        wanted = ", and ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
        text = f"{item.template.text} with {wanted}" if wanted else item.template.text
        yield _goal(item, number, Instruction(text, item.template.attributes), values, names)


def _goal(item: Product, number: int, asked: Instruction, options: tuple[str, ...], names: tuple[str, ...]) -> Goal:
    identity = f"{item.asin}-{number}"
    above = [limit for limit in _LIMITS if limit > item.price][:4]
    limit, text = NO_LIMIT, asked.text
    if len(above) >= 2:
        limit = max(random.Random(identity).sample(above, 2))
        text = f"{text}, and price lower than {limit:.2f} dollars"
    return Goal(identity, item, text, asked.attributes, options, names, limit)
