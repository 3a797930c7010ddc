"""Word lists of the shop, which ship as data: assets/words/webshop.json."""

import json
from functools import cache
from typing import Any

from dreamgym_envs.assets import asset

__all__ = ["word_list", "word_set"]


@cache
def word_list(name: str) -> Any:
    """Return a list by name, in its order."""
    return _lists()[name]


@cache
def word_set(name: str) -> frozenset[str]:
    """Return a list by name as a set."""
    return frozenset(_lists()[name])


@cache
def _lists() -> dict[str, Any]:
    path = asset("words", "webshop.json")
    lists: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return lists
