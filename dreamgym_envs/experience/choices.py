"""What the decoding grammar can choose from, as far as the codec alone decides: built once, shared by every parser."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.symbols import CLOSE, DELTA, END, OPEN, holes, walk


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """The tokens that may come next.

    Attributes:
        ids: Allowed token ids.
        mask: float32 [vocabulary], 0 where allowed and -inf elsewhere; added to the logits.
        sampled: Whether the token is drawn (what is hidden is invented) or the likeliest one is taken.
        judged: Whether the token belongs to the reasoning or the verdict.
    """

    ids: tuple[int, ...]
    mask: NDArray[np.float32]
    sampled: bool = False
    judged: bool = False


class GrammarTables:
    """Choices that depend on the codec alone, built once and shared by every parser."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.delta = codec.structure[DELTA]
        self.end = codec.structure[END]
        self.open = codec.structure[OPEN]
        self.close = codec.structure[CLOSE]
        self.slot_of = {token: slot for slot, token in enumerate(codec.slot_ids) if slot}
        self.number_of = {token: number for number, token in enumerate(codec.number_ids) if number}
        self.kind_of = {token: kind for kind, token in codec.kind_ids.items()}
        self.outcome_of = {token: outcome for outcome, token in codec.outcome_ids.items()}
        self.lower = {
            token: max((other for other in self.outcome_of.items() if other[1][0] < reward), key=lambda o: o[1])[0]
            for token, (reward, _) in self.outcome_of.items()
            if reward >= 1.0 and any(less < reward for less, _ in self.outcome_of.values())
        }
        """The outcome next below each success."""
        self.text_of = {
            path: {token: text for text, token in table.items()} for path, table in codec.lexicon_ids.items()
        }
        self.order = {name: index for index, name in enumerate(codec.schema.root.children)}
        self.operations = [(token, *_operation(codec, operation)) for operation, token in codec.operation_ids.items()]
        self.operation_of = {token: (op, names, nodes) for token, op, names, nodes in self.operations}
        self.at_reset, self.at_step = (
            [
                (self.rank(op, names[0]), token, op, names, nodes)
                for token, op, names, nodes in self.operations
                if nodes[0].private == private
            ]
            for private in (True, False)
        )
        self.outcomes = tuple(self.outcome_of)
        self.reveals = {
            ".".join((*names[:-1], nodes[-1].known[0])): (token, nodes[-1].known[1])
            for token, op, names, nodes in self.operations
            if op == "set" and nodes[-1].known is not None
        }
        self.holes = {token: holes(text) for table in self.text_of.values() for token, text in table.items()}
        self.phrase_of = {token: phrase for phrase, token in codec.phrase_ids.items()}
        self.integers = {
            path: {token: int(text) for token, text in self.text_of.get(path, {}).items()}
            for path, node in walk(codec.schema.root)
            if node.kind == "integer"
        }
        self.choice = lru_cache(maxsize=8192)(self._choice)
        self.texts = lru_cache(maxsize=4096)(self._texts)
        self.spelt = lru_cache(maxsize=1024)(self._spelt)
        self._letters = lru_cache(maxsize=64)(self._of_letters)
        self.continued = lru_cache(maxsize=16384)(self._continued)
        self.kinds = lru_cache(maxsize=4096)(self._kinds)
        self.collectors = {
            unique: {
                name: collect
                for name, node in codec.schema.root.children.items()
                if (collect := _collector(node, unique)) is not None
            }
            for unique in {node.unique for node in codec.schema.nodes() if node.unique is not None}
        }

    def rank(self, op: str, name: str) -> int:
        """Return the place of an edit in a delta: removals first, then the schema's order of properties."""
        return self.order[name] + (0 if op == "remove" else len(self.order))

    def _choice(self, ids: tuple[int, ...], sampled: bool = False, judged: bool = False) -> Choice:
        mask = np.full(self.codec.vocabulary.size, -np.inf, dtype=np.float32)
        mask[list(ids)] = 0.0
        return Choice(ids, mask, sampled, judged)

    def slots(self, count: int, mentioned: int) -> tuple[int, ...]:
        """Return the tokens of the first slots and of the first things that the instruction names."""
        ids = self.codec.slot_ids
        return (*ids[1 : count + 1], *self.codec.mention_ids[:mentioned])

    def _texts(self, path: str, count: int, mentioned: int) -> tuple[int, ...]:
        """Return what a new text can begin with: its lexicon, as far as slots fill the holes, or the opening quote.

        Where texts were seen to be strings of the query, slots too.
        """
        first = self.codec.tables.slots
        filled = {*range(1, count + 1), *range(first + 1, first + mentioned + 1)}
        known = tuple(token for token in self.text_of.get(path, {}) if self.holes[token] <= filled)
        slots = self.slots(count, mentioned) if path in self.codec.tables.references else ()
        return (*known, *slots, self.open)

    def _spelt(self, path: str, mentioned: int, count: int, sampled: bool) -> Choice:
        """Return what may follow within quotes: what spells, words, slots and the closing quote."""
        slots = () if self.codec.tables.mentions else self.slots(count, 0)
        return self.choice((*self.spelling, *self._words(path), *slots, *self.slots(0, mentioned), self.close), sampled)

    def _continued(self, path: str, pattern: str, text: str, sampled: bool) -> Choice:
        """Return what may follow within quotes where the whole text has to match a pattern."""
        match = regex.compile(pattern).fullmatch
        pieces = dict(self._letters(path))
        pieces |= {token: f" {self.phrase_of[token]}" if text else self.phrase_of[token] for token in self._words(path)}
        found = [token for token, piece in pieces.items() if match(text + piece, partial=True)]
        return self.choice((*found, *((self.close,) if match(text) else ())), sampled)

    def _of_letters(self, path: str) -> dict[int, str]:
        """Return what spells with the characters that were seen in texts of a path."""
        letters = set(self.codec.tables.letters.get(path, ""))
        return {token: piece for token, piece in self.pieces.items() if letters.issuperset(piece)}

    def _words(self, path: str) -> tuple[int, ...]:
        return tuple(self.codec.phrase_ids[word] for word in self.codec.tables.words.get(path, ()))

    def _kinds(self, banned: tuple[str, ...]) -> tuple[int, ...]:
        """Return the tokens of all kinds but some."""
        return tuple(token for kind, token in self.codec.kind_ids.items() if kind not in banned)

    @cached_property
    def pieces(self) -> dict[int, str]:
        """The text of each token that spells."""
        return {token: self.codec.vocabulary.decode((token,)) for token in self.spelling}

    @cached_property
    def spelling(self) -> tuple[int, ...]:
        """Tokens that spell text."""
        return self.codec.vocabulary.text_ids


def _operation(codec: Codec, operation: str) -> tuple[str, tuple[str, ...], tuple[Node, ...]]:
    op, _, dotted = operation.partition(" ")
    names = tuple(dotted.split("."))
    nodes: list[Node] = []
    node = codec.schema.root
    for name in names:
        inner = node.items if node.kind == "array" else node
        assert inner is not None
        node = inner.children[name]
        nodes.append(node)
    return op, names, tuple(nodes)


def _collector(node: Node, unique: str) -> Callable[[JSON, set[str]], None] | None:
    """Return a function that adds the strings of a unique kind below a node to a set; None if there can be none."""
    if node.kind == "string":
        return (lambda value, names: names.add(value)) if node.unique == unique else None
    if node.kind == "object":
        parts = [
            (name, collect)
            for name, child in node.children.items()
            if (collect := _collector(child, unique)) is not None
        ]

        def collect_object(value: JSON, names: set[str]) -> None:
            for name, collect in parts:
                collect(value[name], names)

        return collect_object if parts else None
    inner = _collector(node.items, unique) if node.items is not None else None
    if inner is None:
        return None

    def collect_array(value: JSON, names: set[str]) -> None:
        for element in value:
            inner(element, names)

    return collect_array
