"""The reward of a purchase, by the original's formula.

reward = type factor * (attributes met + options met + price met) / (attributes + options + 1), in [0, 1]

The type factor says whether the right kind of thing was bought. With s the share of the nouns of the goal's title that
the bought title has:

    0    s is 0
    0.1  s is below 0.1
    1    same query, or two common departments, or s above 0.2
    0.5  otherwise

s comes from `nouns.nouns`, which stands in for spaCy's tagger; everything else is the original's rule to the letter.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dreamgym_envs.domains.webshop.colours import COLOURS, normalise
from dreamgym_envs.domains.webshop.goals import Goal
from dreamgym_envs.domains.webshop.nouns import nouns
from dreamgym_envs.domains.webshop.products import BELOW, Product

try:
    from rapidfuzz import fuzz
except ImportError as error:
    raise ImportError(
        f"the shop's rewards need the extra 'webshop' ({error}); run: pip install 'dreamgym-envs[webshop]'"
    ) from error

__all__ = ["Reward", "option_met", "reward", "similar", "title_score", "type_factor"]

THRESHOLD = 85
"""Two texts are the same if their similarity is above this."""

SCORE_WITHOUT_NOUNS = 0.2
"""Title score where the goal's title has no nouns."""

_MARKS = re.compile(r"\W")


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward and what it is made of.

    Attributes:
        type_factor: 0, 0.1, 0.5 or 1.
        attributes: For each attribute of the goal, in order, whether the product has it.
        options: For each option of the goal, in order, whether it was chosen.
        price: Whether the price is within the limit.
    """

    type_factor: float
    attributes: tuple[bool, ...]
    options: tuple[bool, ...]
    price: bool

    @property
    def total(self) -> float:
        """The reward in [0, 1]; 1 is success."""
        met = sum(self.attributes) + sum(self.options) + self.price
        return self.type_factor * (met / (len(self.attributes) + len(self.options) + 1))


def reward(goal: Goal, bought: Product, chosen: Mapping[str, str]) -> Reward:
    """Return the reward for buying a product.

    Args:
        goal: What was to be bought.
        bought: What was bought.
        chosen: Chosen values by name of the option.

    Example:
        >>> reward(goal, goal.product, {"color": "black", "size": "small"}).total  # doctest: +SKIP
        1.0
    """
    names = goal.option_names or (None,) * len(goal.options)
    return Reward(
        type_factor=type_factor(goal.product, bought),
        attributes=tuple(attribute_met(bought, attribute) for attribute in goal.attributes),
        options=tuple(
            option_met(chosen.values(), value, name) for value, name in zip(goal.options, names, strict=True)
        ),
        price=bought.price <= goal.price_upper,
    )


def title_score(wanted: str, bought: str) -> float:
    """Return the share of the nouns of the wanted title that the bought title has.

    Repeated nouns count once above and each time below the line, as in the original.
    """
    desired = nouns(wanted)
    if not desired:
        return SCORE_WITHOUT_NOUNS
    return len(set(desired) & set(nouns(bought))) / len(desired)


def type_factor(wanted: Product, bought: Product) -> float:
    """Return how far a product is of the wanted kind: 0, 0.1, 0.5 or 1."""
    score = title_score(wanted.title, bought.title)
    if score == 0.0:
        return 0.0
    if score < 0.1:
        return 0.1
    same = bought.query == wanted.query or score > 0.2 or len(_departments(bought) & _departments(wanted)) >= 2
    return 1.0 if same else 0.5


def attribute_met(product: Product, attribute: str) -> bool:
    """Return whether a product has an attribute: among its own, or word for word in title, bullet points or text."""
    return (
        any(similar(own, attribute) for own in product.attributes)
        or attribute in product.title.lower()
        or attribute in " ".join(product.bullets).lower()
        or attribute in product.description.lower()
    )


def option_met(chosen: Iterable[str], value: str, name: str | None = None) -> bool:
    """Return whether one of the chosen values is the wanted one.

    Where the instruction names its options (goals of the attribute file) the original compares the chosen value, its
    colour normalised, with name and value together, whose colour is normalised only if the value is a colour and
    nothing else. A shade such as "navy blazer" can then be missed; it is the original's rule, and so it is here.
    """
    if name is None:
        wanted = normalise(value)
    else:
        wanted = next((colour for colour in COLOURS if colour in (name, value)), f"{name} {value}")
    return any(similar(normalise(own), wanted) for own in chosen)


@lru_cache(maxsize=1 << 16)
def similar(one: str, other: str) -> bool:
    """Return whether two texts share their words, or nearly: thefuzz's token_set_ratio above `THRESHOLD`.

    Punctuation is blanks and letters outside ASCII are left out before the comparison; the ratio is rounded.
    """
    return round(fuzz.token_set_ratio(_plain(one), _plain(other))) > THRESHOLD


def _plain(text: str) -> str:
    return _MARKS.sub(" ", text.encode("ascii", "ignore").decode().lower()).strip()


def _departments(product: Product) -> set[str]:
    return {part.strip() for part in product.product_category.split(BELOW.strip())}
