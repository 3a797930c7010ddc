"""What an instruction says, as far as its words alone tell: for queries, and for what an item's pages have shown.

An instruction is free text, and nothing here knows the goal behind it. It is cut at the words that join requirements
("with", "that is", commas), and the last piece before the first of the joining words other than a comma is taken for
the kind of product: "i need a long lasting, alcohol free shampoo for men" -> "alcohol free shampoo".
"""

import re
from functools import lru_cache

from dreamgym_envs.domains.webshop.words import word_set

__all__ = ["evidence", "kind", "phrases", "price_limit", "queries", "without_price"]

MOST_QUERIES = 8

_PRICE = re.compile(r",? and price lower than ([\d.]+) dollars\W*$")
_BRACKETS = re.compile(r"[\[\]]")
_LEAD = re.compile(
    r"^(?:hi|hello|please|,|\s)*"
    r"(?:(?:i am|i'm|im) (?:looking|searching|shopping|trying) (?:for|to (?:find|buy|get))"
    r"|(?:i|we) (?:would like|want|need|am in need of)(?: to (?:buy|find|get|order|purchase))?"
    r"|(?:can you )?(?:find|get|show|buy|order)(?: me)?|looking for|shop for)\s+",
)
_ARTICLE = re.compile(r"^(?:an?|some|the|my|any)\s+")
_OPTION = re.compile(r"^[a-z ]+: ")
_JOINT = re.compile(
    r"\s*[.;!?](?=\s|$)\s*|\s+(?:(?:with|which|that|in|for|from|made|having|is|are|has|should|be|comes)(?:\s+|$))+"
)
_COMMA = re.compile(r"\s*,(?:\s+and)?\s+|\s+and\s+")
_FUNCTION = word_set("function words")


def price_limit(instruction: str) -> float | None:
    """Return the most that the product may cost, in dollars; None without a limit.

    Example:
        >>> price_limit("find me a red shirt, and price lower than 40.00 dollars")
        40.0
    """
    found = _PRICE.search(instruction)
    return float(found[1]) if found else None


def without_price(instruction: str) -> str:
    """Return an instruction without its price limit, lower case, and without brackets, which no action can hold."""
    return " ".join(_BRACKETS.sub(" ", _PRICE.sub("", instruction.lower())).split()).strip(" .,")


@lru_cache(maxsize=8192)
def phrases(instruction: str) -> tuple[str, ...]:
    """Return the pieces of an instruction, lower case; the kind of product is one of them, named options are not.

    Example:
        >>> phrases("Find me machine wash men's shirts with long sleeve with color: red")
        ("machine wash men's shirts", 'long sleeve')
    """
    head, rest = _cut(instruction)
    pieces = [*head, *(piece for part in rest for piece in _COMMA.split(part))]
    pieces = [_ARTICLE.sub("", piece.strip(" .,")) for piece in pieces if not _OPTION.match(piece)]
    return tuple(dict.fromkeys(piece for piece in pieces if not _FUNCTION.issuperset(piece.split())))


@lru_cache(maxsize=8192)
def kind(instruction: str) -> str:
    """Return the kind of product that an instruction asks for, with what stands right before it.

    Example:
        >>> kind("i need a long lasting, alcohol free shampoo for men")
        'alcohol free shampoo'
    """
    return _cut(instruction)[0][-1]


@lru_cache(maxsize=8192)
def queries(instruction: str) -> tuple[str, ...]:
    """Return queries worth a try, in a fixed order, at most `MOST_QUERIES`.

    As the original's baseline for reinforcement learning has them: the kind of product, the kind with one requirement,
    the whole instruction; but from the instruction's words, where the baseline took kind and requirements from the
    hidden goal.
    """
    what, pieces, whole = kind(instruction), phrases(instruction), without_price(instruction)
    found = [what, " ".join(_cut(instruction)[0]), " ".join(pieces)]
    found += [f"{piece} {what}" for piece in pieces if piece != what]
    found = [query for query in dict.fromkeys(found) if query and query != whole]
    return (*found[: MOST_QUERIES - 1], whole) if whole else ()


def evidence(instruction: str, text: str) -> tuple[str, ...]:
    """Return the words of an instruction that a text bears out, in the instruction's order.

    Of each piece of the instruction the longest runs of at least two words that the text has, or the whole piece.

    Example:
        >>> evidence("find me machine wash shirts with long sleeve", "Shirt. Machine wash cold. Long sleeve.")
        ('machine wash', 'long sleeve')
    """
    text = f" {' '.join(text.lower().split())}"
    found: list[str] = []
    for piece in phrases(instruction):
        words = piece.split()
        start = 0
        while start < len(words):
            end = len(words)
            while end > start and f" {' '.join(words[start:end])}" not in text:
                end -= 1
            run = words[start:end]
            if (len(run) > 1 or len(run) == len(words)) and not _FUNCTION.issuperset(run):
                found.append(" ".join(run))
            start = max(end, start + 1)
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=8192)
def _cut(instruction: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the pieces up to the kind of product, and what follows; the former has at least one piece."""
    head, *rest = _JOINT.split(_LEAD.sub("", without_price(instruction)))
    pieces = [_ARTICLE.sub("", piece.strip(" .,")) for piece in _COMMA.split(head)]
    return tuple(piece for piece in pieces if piece) or (head,), tuple(rest)
