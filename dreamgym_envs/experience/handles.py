"""Handles: arbitrary names of new things ("x-handle"), given out and not written by a model."""

import hashlib
from collections.abc import Collection, Sequence
from itertools import count

import numpy as np

__all__ = ["fresh"]

_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def fresh(pattern: str, taken: Collection[str], seed: Sequence[int], rng: np.random.Generator | None) -> str:
    """Return a name that follows a pattern and is not taken.

    Args:
        pattern: Its question marks are filled with letters and digits.
        taken: Names that exist.
        seed: What the name follows from without `rng`, such as a prompt's token ids.
        rng: Where it is drawn from.

    Example:
        >>> fresh("b0????????", (), [1, 2, 3], None)
        'b0wpr695ax'
    """
    for attempt in count():
        if rng is not None:
            digits = rng.integers(len(_CHARACTERS), size=len(pattern)).tolist()
        else:
            digits = list(hashlib.blake2b(repr((list(seed), attempt)).encode(), digest_size=len(pattern)).digest())
        name = "".join(
            _CHARACTERS[digit % len(_CHARACTERS)] if letter == "?" else letter
            for letter, digit in zip(pattern, digits, strict=True)
        )
        if name not in taken:
            return name
    raise AssertionError("unreachable")
