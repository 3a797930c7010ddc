"""What an instruction needs, held against what an item's pages have shown.

Everything here follows from the instruction's words and the public state, as a shopper has them: which needs an item
bears out, which value of each option is asked for, and what the price tag says. The goal behind the instruction is
never read. So it is an estimate; `reward` has the rule.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dreamgym_envs.core.types import JSON
from dreamgym_envs.domains.webshop.instructions import kind, phrases, price_limit, without_price
from dreamgym_envs.domains.webshop.words import word_set

__all__ = ["Fit", "asked_values", "fit", "plain", "prices"]

_MARKS = re.compile(r"[^\w.]+|\.(?!\d)|(?<!\d)\.")
_PRICE = re.compile(r"\$([\d,]+(?:\.\d+)?)")
_NAMED = re.compile(r"([a-z ]+): ")
_JOINED = re.compile(r".*\b(?:with|and) ")
_FUNCTION = word_set("function words")


@dataclass(frozen=True, slots=True)
class Fit:
    """How well an item answers an instruction, as far as its pages were seen.

    Attributes:
        kind: Share of the words for the kind of product that its title has, from 0 to 1.
        met: Pieces of the instruction that its pages bear out.
        missing: Pieces that they do not bear out, at least not yet.
        values: Asked value by name of the option.
        lacking: Names of options that the instruction speaks of and of which the item has no asked value.
        price: Whether the price is within the limit; of a range the middle counts.
    """

    kind: float
    met: tuple[str, ...]
    missing: tuple[str, ...]
    values: Mapping[str, str]
    lacking: tuple[str, ...]
    price: bool

    @property
    def score(self) -> float:
        """The reward that buying it with the asked values may bring, an estimate in [0, 1]."""
        met = len(self.met) + len(self.values) + self.price
        return (0.5 + 0.5 * self.kind) * met / (met + len(self.missing) + len(self.lacking) + (not self.price))

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing and not self.lacking and self.price


def fit(instruction: str, item: Mapping[str, JSON]) -> Fit:
    """Return how well an item of the state answers an instruction.

    Example:
        >>> fit("i need a dress shirt that is machine wash, in black", item).missing  # doctest: +SKIP
        ('machine wash',)
    """
    values = asked_values(instruction, item["options"])
    names = tuple(option["name"] for option in item["options"])
    shown = " ".join((item["title"], *item["attributes"]))
    words = _words(instruction)
    # A piece that names an option or its value is no attribute: "in color black", "the size should be small".
    settled = {word for name, value in values.items() for word in (*plain(name), *plain(value))}
    settled |= {word for name in names for word in plain(name)}
    met: list[str] = []
    missing: list[str] = []
    have = set(plain(shown))
    for piece in phrases(instruction):
        left = [word for word in plain(piece) if word not in settled and word not in _FUNCTION]
        if left:
            (met if have.issuperset(left) else missing).append(piece)
    asked = _named(instruction) if item["status"] == "opened" else frozenset()
    lacking = tuple(name for name in names if name not in values and set(plain(name)) <= words)
    lacking += tuple(sorted(asked.difference(names)))
    title = set(plain(item["title"]))
    sort = [word for word in plain(kind(instruction)) if word not in _FUNCTION]
    share = sum(word in title or word.removesuffix("s") in title for word in sort) / len(sort) if sort else 1.0
    limit, tag = price_limit(instruction), prices(item["price"])
    within = limit is None or (bool(tag) and sum(tag) / len(tag) <= limit)
    return Fit(share, tuple(met), tuple(missing), values, lacking, within)


def asked_values(instruction: str, options: Sequence[Mapping[str, JSON]]) -> dict[str, str]:
    """Return which value of each option an instruction asks for: its longest that stands there, nearest to its name.

    Example:
        >>> asked_values("a shirt in color black", [{"name": "color", "values": ("black", "red")}])
        {'color': 'black'}
    """
    text = f" {' '.join(plain(without_price(instruction)))} "
    found = {}
    for option in options:
        name = text.find(f" {' '.join(plain(option['name']))} ")
        best: tuple[int, int, str] | None = None
        for value in option["values"]:
            words = " ".join(plain(value))
            place = text.find(f" {words} ") if words else -1
            if place >= 0:
                after = text.find(f" {words} ", name) if name >= 0 else -1
                near = -abs((after if after >= 0 else place) - name) if name >= 0 else 0
                best = max(best or (0, 0, ""), (len(words), near, value))
        if best is not None:
            found[option["name"]] = best[2]
    return found


def prices(tag: str) -> tuple[float, ...]:
    """Return the prices of a tag in dollars: one, both ends of a range, or none.

    Example:
        >>> prices("$20.66 to $29.2"), prices("$1,024.00")
        ((20.66, 29.2), (1024.0,))
    """
    return tuple(float(number.replace(",", "")) for number in _PRICE.findall(tag))


def plain(text: str) -> Iterable[str]:
    """Return a text's words, lower case, without marks; the possessive 's is cut, so that "men's" is "men"."""
    return _plain(text)


@lru_cache(maxsize=1 << 15)
def _plain(text: str) -> tuple[str, ...]:
    return tuple(_MARKS.sub(" ", text.lower().replace("'s ", " ").removesuffix("'s")).split())


@lru_cache(maxsize=8192)
def _named(instruction: str) -> frozenset[str]:
    """Return the names of options before a colon: "with color: red, and size: small" has two."""
    return frozenset(_JOINED.sub("", name).strip() for name in _NAMED.findall(without_price(instruction)))


def _words(instruction: str) -> set[str]:
    return set(plain(without_price(instruction)))
