"""How texts match an instruction: what a policy reads of texts that are ever new, such as titles in a shop.

Words that a policy has never seen tell it nothing, however often it saw others. How many words of the instruction a
text has, and which of them are still to be found, means the same for every text.
"""

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache

from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON

__all__ = ["NOTHING", "Request", "has_text", "is_invented", "stems", "texts_of"]

_TOKEN = re.compile(r"\d+(?:\.\d+)?|[a-z]+")
_NUMERIC = re.compile(r"\W?\d[\d,.]*(?:\s*(?:to|-)\s*\W?\d[\d,.]*)?")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@lru_cache(maxsize=1 << 14)
def stems(text: str) -> frozenset[str]:
    """Return the words and numbers of a text, words without a plural's s.

    Example:
        >>> sorted(stems("2 Red Mugs"))
        ['2', 'mug', 'red']
    """
    return frozenset(map(_stem, _TOKEN.findall(text.lower())))


@dataclass(frozen=True, slots=True)
class Request:
    """What the words of an instruction ask for.

    Attributes:
        words: Its words and numbers as `stems` gives them, without those that name nothing and without the limit.
        text: All its words, between spaces.
        limit: Its last number, which bounds what a number may be; None without numbers.
    """

    words: frozenset[str]
    text: str
    limit: float | None

    @classmethod
    def read(cls, instruction: str, ignored: Set[str]) -> "Request":
        """Return what an instruction asks for, apart from the words `ignored`."""
        tokens = _TOKEN.findall(instruction.lower())
        last = max((place for place, token in enumerate(tokens) if token[0].isdigit()), default=None)
        asked = (token for place, token in enumerate(tokens) if place != last and token not in ignored)
        limit = float(tokens[last]) if last is not None else None
        return cls(frozenset(map(_stem, asked)), _spaced(instruction), limit)

    def left(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the words that none of the texts has."""
        return self.words.difference(*map(stems, texts))

    def said(self, text: str) -> int:
        """Return how many words a text has that the instruction says as it stands; 0 if it does not say it.

        Example:
            >>> Request.read("a mug in dark blue", {"a", "in"}).said("dark blue")
            2
        """
        spaced = _spaced(text)
        return spaced.count(" ") - 1 if len(spaced) > 2 and spaced in self.text else 0

    def compared(self, text: str) -> str:
        """Return "<" or ">" for a text that is a number, or a range of which the middle counts, "" for any other.

        Example:
            >>> Request.read("a mug below 20 dollars", {"a"}).compared("$10.50 to $12")
            '<'
        """
        if self.limit is None or text[:1].isalpha() or not _NUMERIC.fullmatch(text):
            return ""
        numbers = [float(number.replace(",", "").rstrip(".")) for number in _NUMBER.findall(text)]
        return "<" if sum(numbers) / len(numbers) <= self.limit else ">"


@lru_cache(maxsize=1 << 14)
def _spaced(text: str) -> str:
    return f" {' '.join(_TOKEN.findall(text.lower()))} "


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


NOTHING = Request(frozenset(), "", None)
"""What no words ask for."""


def is_invented(node: Node) -> bool:
    """Return whether something in a part of the state is invented (schema keyword "x-invented"): its texts are new."""
    below = (*node.children.values(), *([node.items] if node.items is not None else []))
    return node.invented or any(map(is_invented, below))


def has_text(node: Node, key: str | None) -> bool:
    """Return whether records have a string of their own beside their name."""
    return any(child.kind == "string" and name != key and child.unique is None for name, child in node.children.items())


def texts_of(node: Node, record: JSON, *, within: bool) -> Iterator[str]:
    """Yield the known strings of a record; handles and references, which are arbitrary names, are left out.

    Args:
        node: What records look like.
        record: The record.
        within: Whether to yield those of records within it, too.
    """
    for name, child in node.children.items():
        value = record[name]
        if child.known is not None and not child.known_when(record):
            continue
        if child.kind == "string" and child.handle is None and child.ref is None:
            yield value
        elif child.kind == "array" and child.items is not None:
            if child.items.kind == "string" and child.items.ref is None:
                yield from value
            elif child.items.kind == "object" and within:
                for element in value:
                    yield from texts_of(child.items, element, within=True)
