"""The codec's symbols, and how strings are cut so that few symbols go a long way.

Structure, slots, marks, kinds, numbers, operations, outcomes, properties, enum values, the lexicon of frequent strings
with holes where slots go, and for prose frequent groups of words and references to what the instruction names.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from dreamgym_envs.core.schema import Node

TASK, HISTORY, DEMONSTRATION, ACTION, OUTPUT, DELTA, END = (
    "<task>",
    "<history>",
    "<demonstration>",
    "<action>",
    "<output>",
    "<delta>",
    "<end>",
)
OPEN, CLOSE = '<">', '</">'
NEW = "<new>"
STRUCTURE = (TASK, HISTORY, DEMONSTRATION, ACTION, OUTPUT, DELTA, END, OPEN, CLOSE)

NUMBERED = re.compile(r"^(.*\D) (\d+)$")
HOLE = re.compile(r"⟦(\d+)⟧")


@lru_cache(maxsize=65536)
def split_number(name: str) -> tuple[str, int | None]:
    """Return kind and number of a name: ("mug", 1) for "mug 1", ("Mug", None) for "Mug"."""
    match = NUMBERED.match(name)
    return (match.group(1), int(match.group(2))) if match else (name, None)


@dataclass(frozen=True)
class Tables:
    """What the codec learned from data; everything that codec.json holds.

    Attributes:
        domain: Name of the domain.
        verbs: Names of the action rules.
        kinds: Kinds of numbered names ("mug"), most frequent first.
        numbers: Largest number that is one token.
        slots: How many strings of a query can be referred to.
        marks: How many places of an instruction can be marked.
        operations: Edits seen, as "op path".
        outcomes: (reward, terminated) pairs seen.
        lexicon: Frequent strings with their slots abstracted, by the path of the property ("reasoning" for reasoning
            lines, "instruction" for pieces of instructions).
        most_elements: Most elements that an array was seen to be set to, or to get at once, by path.
        history: How many past steps a prompt shows.
        demonstrations: Most demonstrations that a prompt shows.
        mentions: How many things that an instruction names can be referred to; 0 where names tell kinds.
        phrases: Frequent words and groups of words of prose.
        idle: Words of instructions that name nothing.
        references: Paths at which an output was seen to refer to a string of the query.
        longest: Most characters that a new text was seen to have, by path.
        words: Phrases seen in new texts, by path.
        letters: Characters seen in new texts that follow a pattern, by path.
    """

    domain: str
    verbs: tuple[str, ...]
    kinds: tuple[str, ...]
    numbers: int
    slots: int
    marks: int
    operations: tuple[str, ...]
    outcomes: tuple[tuple[float, bool], ...]
    lexicon: Mapping[str, tuple[str, ...]]
    most_elements: Mapping[str, int] = field(default_factory=dict)
    history: int = 0
    demonstrations: int = 0
    mentions: int = 0
    phrases: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    longest: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    letters: Mapping[str, str] = field(default_factory=dict)

    def symbols(self, root: Node) -> tuple[str, ...]:
        """Return every symbol that these tables need, in a fixed order."""
        names = [*STRUCTURE]
        names += [f"<${i}>" for i in range(1, self.slots + 1)]
        names += [f"<#{i}>" for i in range(self.marks + 1)]
        names += [f"<n{i}>" for i in range(1, self.numbers + 1)]
        names += [f"<do {verb}>" for verb in self.verbs]
        names += [f"<kind {kind}>" for kind in self.kinds]
        names += [f"<{operation}>" for operation in self.operations]
        names += [f"<reward {reward:g}{' end' if end else ''}>" for reward, end in self.outcomes]
        names += [f"<{path}>" for path, _ in walk(root)]
        names += sorted(
            {f"<{path.rpartition('.')[2]}={value}>" for path, node in walk(root) for value in enum_values(node)}
        )
        phrases = frozenset(self.phrases)
        names += [f"<{path}: {text}>" for path, texts in self.lexicon.items() for text in texts if text not in phrases]
        if any(node.handle is not None for _, node in walk(root)):
            names.append(NEW)
        names += [f"<@{i}>" for i in range(1, self.mentions + 1)]
        names += [f"<phrase {phrase}>" for phrase in self.phrases]
        return tuple(names)


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield (dotted path, node) for every property below a node, through the elements of arrays."""
    for name, child in node.children.items():
        below = f"{path}.{name}" if path else name
        yield below, child
        yield from walk(child.items if child.items is not None else child, below)


def enum_values(node: Node) -> tuple[str, ...]:
    """Return the values of an enum or of an array of enums; a value's symbol is shared by properties of one name."""
    return node.items.values if node.items is not None else node.values


def abstracted(text: str, slots: Mapping[str, int]) -> str:
    """Return the text with every whole-word occurrence of a slot's string replaced by its hole."""
    inside = sorted((name for name in slots if name and name in text), key=len, reverse=True)
    if not inside:
        return text
    names = "|".join(map(re.escape, inside))
    return re.sub(rf"(?<!\w)(?:{names})(?!\w)", lambda match: f"⟦{slots[match.group()]}⟧", text)


def expanded(text: str, strings: Mapping[int, str]) -> str:
    """Return a lexicon text with its holes filled."""
    return HOLE.sub(lambda match: strings[int(match.group(1))], text)


def holes(text: str) -> frozenset[int]:
    """Return the slots that a lexicon text refers to."""
    return frozenset(int(number) for number in HOLE.findall(text))


def split_instruction(instruction: str, kinds: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (piece of text, kind that follows it); the last kind may be empty.

    A kind is the longest run of whole words, at most three, that is known as a kind.
    """
    words = instruction.rstrip(" .").split()
    piece: list[str] = []
    position = 0
    while position < len(words):
        for length in (3, 2, 1):
            phrase = " ".join(words[position : position + length]).strip(",.").lower()
            if phrase in kinds and position + length <= len(words):
                yield " ".join(piece), phrase
                piece, position = [], position + length
                break
        else:
            piece.append(words[position])
            position += 1
    if piece:
        yield " ".join(piece), ""
