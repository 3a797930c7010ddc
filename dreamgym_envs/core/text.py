"""The text space of observations and actions: a wide character set, fixed once for the package."""

import string
from copy import copy, deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

CHARSET = (
    string.printable
    + "".join(map(chr, range(0xA1, 0x250)))  # Latin letters with marks
    + "".join(map(chr, range(0x2010, 0x2040)))  # dashes, quotation marks, bullets
    + "€™→←"
)
"""Characters that observations may hold: printable ASCII, Latin letters, common punctuation."""


class FreeText(spaces.Text):
    """Text over `CHARSET`.

    It equals the `gymnasium.spaces.Text` of the same lengths and characters and works wherever that does. It differs in
    cost alone: Text copies its tables of 600 characters for every environment of a batch (0.7 s for 64 environments),
    checks membership in Python, character by character, and lists every character in its repr.

    Args:
        max_length: Most characters.
        min_length: Fewest characters.
        seed: Seed of `sample`.

    Example:
        >>> FreeText(40)
        FreeText(0, 40)
        >>> "go to fridge 1" in FreeText(40)
        True
    """

    def __init__(self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=min_length, charset=CHARSET, seed=seed)

    def contains(self, x: Any) -> bool:
        """Return whether x is a string of these lengths over `CHARSET`."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and self.character_set.issuperset(x)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FreeText":
        twin = copy(self)
        twin._np_random = deepcopy(self._np_random, memo)
        return twin

    def __repr__(self) -> str:
        return f"FreeText({self.min_length}, {self.max_length})"
