"""Prose: free text as frequent groups of words, references to what the instruction names, and the rest spelt.

A title, a query or a page that says "low calorie" where the instruction asks for it refers to the instruction instead
of repeating the words: whether something is borne out is then a comparison of two tokens, for words never seen in
training as for others. Other groups of words that often come together ("spice blend") are one token each.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

__all__ = ["MOST_WORDS", "collocations", "fillers", "segments", "units"]

MOST_WORDS = 4
"""Most words of a group."""

_TRAILING = ",.:;!?"
_NUMBER = re.compile(r"[\d$.,%]+")


def segments(text: str, *tables: Mapping[str, int]) -> list[int | str]:
    """Return a text cut into known groups of words and what lies between.

    Args:
        text: The text, words separated by single spaces.
        *tables: Token ids of groups; the longest group wins, of equal ones that of the first table.

    Returns:
        Token ids of groups, which stand for their words and the space before them, and the text in between as it is.

    Example:
        >>> segments("a spice blend, salt free", {"spice blend": 7, "salt free": 9})
        ['a', 7, ',', 9]
    """
    words = text.split(" ")
    found: list[int | str] = []
    run = ""
    place = 0
    while place < len(words):
        # Before a group there is a space, or nothing at all; a text that begins with spaces begins with text.
        hit = _group(words, place, tables) if place == 0 or found or run else None
        if hit is None:
            run += words[place] if place == 0 else f" {words[place]}"
            place += 1
            continue
        token, count, tail = hit
        if run:
            found.append(run)
        found.append(token)
        run = tail
        place += count
    return [*found, run] if run else found


def _group(words: list[str], place: int, tables: tuple[Mapping[str, int], ...]) -> tuple[int, int, str] | None:
    """Return (token, number of words, punctuation behind) of the longest group at a place."""
    for count in range(min(MOST_WORDS, len(words) - place), 0, -1):
        phrase = " ".join(words[place : place + count])
        core = phrase.rstrip(_TRAILING)
        for table in tables:
            if core in table:
                return table[core], count, phrase[len(core) :]
    return None


def units(instruction: str, groups: Mapping[str, int], idle: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Yield (words, whether they name something) of an instruction, in order.

    What it names are known groups of words, and every other word that is not idle.

    Example:
        >>> list(units("find me spice blend in red", {"spice blend": 7}, frozenset({"find", "me", "in"})))
        [('find me', False), ('spice blend', True), ('in', False), ('red', True)]
    """
    words = instruction.lower().split()
    run: list[str] = []
    place = 0
    while place < len(words):
        hit = _group(words, place, (groups,))
        if hit is not None and hit[1] == 1 and words[place].rstrip(_TRAILING) in idle:
            hit = None
        count = 1 if hit is None else hit[1]
        phrase = " ".join(words[place : place + count])
        core = phrase.rstrip(_TRAILING)
        place += count
        if not core or (hit is None and core in idle):
            run.append(phrase)
            continue
        if run:
            yield " ".join(run), False
        yield core, True
        run = [phrase[len(core) :]] if phrase != core else []
    if run:
        yield " ".join(run), False


def fillers(instructions: Iterable[str], share: float = 0.06) -> frozenset[str]:
    """Return the words that name nothing, because more than a share of all instructions has them."""
    counts: Counter[str] = Counter()
    total = 0
    for instruction in instructions:
        counts.update({word.rstrip(_TRAILING) for word in instruction.lower().split()})
        total += 1
    return frozenset(w for w, count in counts.items() if w and count > share * total and not _NUMBER.fullmatch(w))


def collocations(
    texts: Iterable[str], least: int, idle: frozenset[str] = frozenset(), joints: frozenset[str] = frozenset()
) -> list[str]:
    """Return the words, and groups of at most `MOST_WORDS`, that occur at least `least` times.

    A pair is a group if the rarer of its two has the other beside it in 40 % of its occurrences, or in 80 % if one of
    them is idle ("dairy free", but not "in beige"). Groups grow from pairs of groups.

    Args:
        texts: Texts, each once.
        least: Least count.
        idle: Words that name nothing by themselves.
        joints: Words that begin no group, such as "for" and "a".
    """
    merged = [tuple(line.split()) for text in texts for line in re.split(r"[,.:;!?]\s*", text) if line]
    words = Counter(word for line in merged for word in line)
    single = {word for word, count in words.items() if count >= least and not _NUMBER.fullmatch(word)}
    groups: set[str] = set()
    for _ in range(2):
        counts = Counter(unit for line in merged for unit in line)
        pairs = Counter(pair for line in merged for pair in pairwise(line))
        together = {
            pair
            for pair, count in pairs.items()
            if count >= least
            and pair[0].split()[0] not in joints
            and count > (0.8 if idle.intersection(pair) else 0.4) * min(counts[pair[0]], counts[pair[1]])
            and len(f"{pair[0]} {pair[1]}".split()) <= MOST_WORDS
        }
        groups |= {" ".join(pair) for pair in together}
        merged = [_joined(line, together) for line in merged]
    return sorted(single | groups)


def _joined(line: tuple[str, ...], together: set[tuple[str, str]]) -> tuple[str, ...]:
    """Return a line with its pairs that come together joined, from the left."""
    result: list[str] = []
    place = 0
    while place < len(line):
        if line[place : place + 2] in together:
            result.append(" ".join(line[place : place + 2]))
            place += 2
        else:
            result.append(line[place])
            place += 1
    return tuple(result)
