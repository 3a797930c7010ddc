"""Tokens of a state and its candidate actions: what a small policy reads instead of raw text.

An action is described by its verb and by what the state says about each of its arguments, found by a join that knows
no domain: an argument is looked up among the keys of the state's keyed arrays (schema keyword "x-key") and among its
strings. Where a name's words occur in the instruction it carries a mark, "m0" for the last content word of the
instruction, "m1" for the one before; so "take mug 1 from cabinet 3" under "put a clean mug in cabinet." becomes

    take  0~mug  take.0.m1  take.0.receptacles.contents  take.0.^m0  ...  1~cabinet  take.1.m0  ...  take~cabinet*clean

Facts from closed sets (enums, booleans, marks, membership) are joined with the verb, words are not. The last tokens
join verb and last argument with the instruction's content words: "go~microwave*hot" is learned from a few examples,
where a network that has to find the product itself needs hundreds (a clone of 150 episodes: 87 against 66 % success).

The context is told in the same language: the instruction's words, small arrays in full, large ones as counts. Tokens
are hashed (CRC-32) into a fixed number of buckets, so nothing has to be fitted and two processes agree; bucket 0 is
padding.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON
from dreamgym_envs.domains.base import Domain

IntArray = npt.NDArray[np.int16]

BUCKETS = 1 << 15
"""Default size of the vocabulary: what 16 bits hold."""
CANDIDATE_TOKENS = 24
CONTEXT_TOKENS = 64

_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
# fmt: off
_FUNCTION_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "find", "for", "from", "get", "give", "go", "have",
    "i", "in", "into", "is", "it", "its", "look", "looking", "me", "move", "my", "need", "of", "on", "one",
    "onto", "or", "place", "please", "put", "some", "than", "that", "the", "their", "them", "then", "there",
    "this", "to", "two", "under", "use", "using", "want", "with", "would", "you",
))
# fmt: on
"""English words that name nothing in an instruction."""

# How much of what is unbounded is told apart.
_MAX_MARK = 3
_MAX_WORDS = 8
_MAX_CROSSED = 4
_LARGE = 4
_POOL = 1 << 15
"""Most entries of a cache; beyond it, all are emptied."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What there is to say of one record of a keyed array: the facts about each name in it, its part of the context."""

    value: JSON
    mentions: dict[str, int]
    summary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Parsed:
    """An action with its parts, and these without the numbers in names."""

    verb: str
    arguments: tuple[str, ...]
    kinds: tuple[Any, ...]


@dataclass(slots=True)
class _Slot:
    """What is remembered of one episode: states share structure, so most records are unchanged from step to step."""

    instruction: str = ""
    words: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()
    ranks: dict[str, int] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    records: dict[tuple[str, JSON], _Record] = field(default_factory=dict)


class FeatureEncoder:
    """Turns (instruction, state, candidate actions) into fixed integer arrays.

    Args:
        domain: Whose schema and action grammar to read.
        candidates: K, most candidates; later ones are left out.
        buckets: Size of the hashed vocabulary, at most 32,768.
        candidate_tokens: T, most tokens of a candidate; later ones are left out.
        context_tokens: S, most tokens of instruction and state.

    Example:
        >>> encoder = FeatureEncoder(domain, candidates=64)  # doctest: +SKIP
        >>> arrays = encoder.encode(task.instruction, state.public, domain.candidates(task, state))  # doctest: +SKIP
        >>> arrays["candidates"].shape, arrays["context"].shape  # doctest: +SKIP
        ((64, 24), (64,))
    """

    def __init__(
        self,
        domain: Domain,
        *,
        candidates: int,
        buckets: int = BUCKETS,
        candidate_tokens: int = CANDIDATE_TOKENS,
        context_tokens: int = CONTEXT_TOKENS,
    ) -> None:
        if not 2 <= buckets <= BUCKETS:
            raise ValueError(f"buckets must be in [2, 32768] to fit in 16 bits, not {buckets}")
        self.domain = domain
        self.candidates = candidates
        self.buckets = buckets
        self.candidate_tokens = candidate_tokens
        self.context_tokens = context_tokens
        self._nodes = {name: domain.schema.root.children[name] for name in domain.schema.public_names}
        self._enums = {word for value in _enum_values(domain.schema.root) for word in _WORD.findall(value.lower())}
        self._hashes: dict[str, int] = {}
        self._facts: dict[tuple[str, ...], int] = {(): 0}
        self._fact_list: list[tuple[str, ...]] = [()]
        self._actions: dict[str, _Parsed] = {}
        self._rows: dict[tuple[Any, ...], int] = {}
        self._pool = np.zeros((1024, candidate_tokens), dtype=np.int16)
        self._used = 1
        self._slots: dict[int, _Slot] = {}

    def encode(
        self, instruction: str, state: Mapping[str, JSON], actions: Sequence[str], slot: int = 0
    ) -> dict[str, IntArray]:
        """Return "candidates" [K, T] and "context" [S], both int16; rows of absent candidates are all zero.

        Args:
            instruction: The task in words.
            state: The public state.
            actions: Candidate actions, in the domain's order.
            slot: Which of several episodes run side by side this is; only the speed depends on it.
        """
        out = {
            "candidates": np.zeros((self.candidates, self.candidate_tokens), dtype=np.int16),
            "context": np.zeros(self.context_tokens, dtype=np.int16),
        }
        self.encode_into(out["candidates"], out["context"], instruction, state, actions, slot)
        return out

    def encode_into(
        self,
        candidates: IntArray,
        context: IntArray,
        instruction: str,
        state: Mapping[str, JSON],
        actions: Sequence[str],
        slot: int = 0,
    ) -> None:
        """Write what `encode` returns into arrays of the caller, such as one row of a batch."""
        memory = self._slots.setdefault(slot, _Slot())
        if memory.instruction != instruction or not memory.words:
            memory = self._slots[slot] = self._new_slot(instruction)
        if max(self._used, len(self._fact_list), len(self._hashes), len(self._actions)) > _POOL:
            self._forget()
        index, tokens = self._read(memory, state)
        rows = [self._row(memory, index, action) for action in actions[: self.candidates]]
        candidates[len(rows) :] = 0
        if rows:
            candidates[: len(rows)] = self._pool[rows]
        context[:] = 0
        ids = [self._hash(token) for token in tokens[: self.context_tokens]]
        context[: len(ids)] = ids

    def explain(self, instruction: str, state: Mapping[str, JSON], action: str) -> list[str]:
        """Return an action's tokens before hashing, for people and tests."""
        memory = self._new_slot(instruction)
        return self._action_tokens(memory, self._read(memory, state)[0], self._parsed(action))

    def explain_context(self, instruction: str, state: Mapping[str, JSON]) -> list[str]:
        """Return the context's tokens before hashing, for people and tests."""
        return self._read(self._new_slot(instruction), state)[1]

    # --- the instruction -------------------------------------------------------------------------------------------

    def _new_slot(self, instruction: str) -> _Slot:
        words = tuple(_WORD.findall(instruction.lower()))
        content = [w for w in words if w not in _FUNCTION_WORDS and w not in self._enums and not w[0].isdigit()]
        ranks: dict[str, int] = {}
        for rank, word in enumerate(reversed(content)):
            ranks.setdefault(word, min(rank, _MAX_MARK))
        crossed = dict.fromkeys(w for w in words if w not in _FUNCTION_WORDS and not w[0].isdigit())
        return _Slot(instruction, words or ("",), tuple(crossed)[-_MAX_CROSSED:], ranks)

    def _mark(self, memory: _Slot, name: str) -> str:
        """Return how a name occurs in the instruction: "m<rank>" in full, "p<words>" in part, "" not at all."""
        mark = memory.marks.get(name)
        if mark is None:
            words = _kind(name)
            ranks = [memory.ranks[word] for word in words if word in memory.ranks]
            if not ranks:
                mark = ""
            elif len(ranks) == len(words):
                mark = f"m{min(ranks)}"
            else:
                mark = f"p{min(len(ranks), _MAX_MARK)}"
            memory.marks[name] = mark
        return mark

    # --- the state ---------------------------------------------------------------------------------------------------

    def _read(self, memory: _Slot, state: Mapping[str, JSON]) -> tuple[dict[str, int], list[str]]:
        """Return the number of the facts about each name in the state, and the context's tokens."""
        index: dict[str, int] = {}
        rest: dict[str, tuple[str, ...]] = {}
        tokens = [f"i~{word}" for word in memory.words]
        for name, node in self._nodes.items():
            value = state[name]
            if node.kind == "array" and node.items is not None and node.items.kind == "object":
                records = [self._record(memory, node, record, name, place) for place, record in enumerate(value)]
                for record in records:
                    index.update(record.mentions)
                tokens += self._array_tokens(name, node, records)
            else:
                self._mentions(memory, node, value, name, (), rest)
                tokens += self._value_facts(memory, node, value, name)
        for name, facts in rest.items():
            index[name] = self._join(index.get(name, 0), facts)
        return index, list(dict.fromkeys(tokens))

    def _record(self, memory: _Slot, node: Node, record: JSON, where: str, place: int) -> _Record:
        """Return what there is to say of a record; remembered by its key for as long as it does not change."""
        assert node.items is not None
        name = record[node.key] if node.key is not None else None
        key = (where, place if name is None else name)
        known = memory.records.get(key)
        if known is not None and (known.value is record or known.value == record):
            return known
        found: dict[str, tuple[str, ...]] = {}
        self._record_mentions(memory, node, record, where, (), found)
        facts = tuple(self._record_facts(memory, node.items, record, where, node.key))
        mark = self._mark(memory, name) if isinstance(name, str) else ""
        if _is_small(node):
            words = (f"{where}~{word}" for word in _kind(str(name or "")))
            summary = (*((f"{where}.{mark}",) if mark else ()), *words, *facts)
        else:
            closed = tuple(fact for fact in facts if "~" not in fact)
            marked = (f"{where}.{mark}", *(f"{where}.{mark}>{fact}" for fact in closed)) if mark else ()
            summary = (*marked, *closed)
        entry = _Record(record, {name: self._join(0, facts) for name, facts in found.items()}, summary)
        memory.records[key] = entry
        return entry

    def _record_mentions(
        self,
        memory: _Slot,
        node: Node,
        record: JSON,
        where: str,
        above: tuple[str, ...],
        found: dict[str, tuple[str, ...]],
    ) -> None:
        assert node.items is not None
        facts = tuple(self._record_facts(memory, node.items, record, where, node.key))
        below = tuple(f"^{fact}" for fact in facts if fact.count(".") == where.count(".") + 1 and "~" not in fact)
        name = record[node.key] if node.key is not None else None
        if isinstance(name, str):
            found[name] = (*found.get(name, ()), where, *facts, *above)
            mark = self._mark(memory, name)
            below = (f"^{mark}", *below) if mark else below
        for child_name, child in node.items.children.items():
            if child_name != node.key and not (child.known is not None and not child.known_when(record)):
                self._mentions(memory, child, record[child_name], f"{where}.{child_name}", below, found)

    def _mentions(
        self,
        memory: _Slot,
        node: Node,
        value: JSON,
        where: str,
        above: tuple[str, ...],
        found: dict[str, tuple[str, ...]],
    ) -> None:
        if node.kind == "array" and node.items is not None:
            if node.items.kind == "object":
                for record in value:
                    self._record_mentions(memory, node, record, where, above, found)
            elif node.items.kind == "string":
                for position, name in enumerate(value):
                    first = (f"{where}#0",) if position == 0 else ()
                    found[name] = (*found.get(name, ()), where, *first, *above)
        elif node.kind == "object":
            for name, child in node.children.items():
                self._mentions(memory, child, value[name], f"{where}.{name}", above, found)
        elif node.kind == "string":
            found[value] = (*found.get(value, ()), where, *above)

    def _record_facts(self, memory: _Slot, node: Node, record: JSON, where: str, key: str | None) -> Iterable[str]:
        for name, child in node.children.items():
            if name != key and not (child.known is not None and not child.known_when(record)):
                yield from self._value_facts(memory, child, record[name], f"{where}.{name}")

    def _value_facts(self, memory: _Slot, node: Node, value: JSON, where: str) -> Iterable[str]:
        match node.kind:
            case "string":
                mark = self._mark(memory, value)
                if mark:
                    yield f"{where}.{mark}"
                for word in _kind(value)[:_MAX_WORDS]:
                    yield f"{where}~{word}"
            case "integer" | "number":
                yield f"{where}={_bucket(value)}"
            case "object":
                yield from self._record_facts(memory, node, value, where, None)
            case "array":
                assert node.items is not None
                if not value:
                    yield f"{where}=none"
                elif node.items.kind == "object":
                    yield from self._marked_facts(memory, node, value, where)
                else:
                    for item in value[:_MAX_WORDS]:
                        yield from self._value_facts(memory, node.items, item, where)
            case _:
                yield f"{where}={value}"

    def _marked_facts(self, memory: _Slot, node: Node, records: JSON, where: str) -> Iterable[str]:
        """Yield facts of those records alone that the instruction names: how many, and what is known of them."""
        if node.key is None or node.items is None:
            return
        counts: dict[str, int] = {}
        for record in records:
            mark = self._mark(memory, str(record[node.key]))
            if not mark:
                continue
            counts[mark] = counts.get(mark, 0) + 1
            prefix = f"{where}.{mark}"
            yield prefix if counts[mark] == 1 else f"{prefix}x{min(counts[mark], _MAX_MARK)}"
            for fact in self._record_facts(memory, node.items, record, prefix, node.key):
                if not fact.endswith("=none"):
                    yield fact

    def _array_tokens(self, where: str, node: Node, records: Sequence[_Record]) -> list[str]:
        if not records:
            return [f"{where}=none"]
        tokens = [token for record in records for token in record.summary]
        return tokens if _is_small(node) else [f"{token}#{_bucket(n)}" for token, n in Counter(tokens).items()]

    # --- the actions -------------------------------------------------------------------------------------------------

    def _parsed(self, action: str) -> _Parsed:
        known = self._actions.get(action)
        if known is None:
            parsed = self.domain.parse(action)
            verb, arguments = ("?", (action,)) if parsed is None else (parsed.verb, parsed.arguments)
            known = _Parsed(verb, arguments, (verb, *(tuple(_kind(argument)) for argument in arguments)))
            self._actions[action] = known
        return known

    def _row(self, memory: _Slot, index: Mapping[str, int], action: str) -> int:
        """Return where in the pool an action's tokens are; actions that differ by numbers alone share them."""
        parsed = self._actions.get(action) or self._parsed(action)
        marks = memory.marks
        key: tuple[Any, ...] = (parsed.kinds, memory.crossed)
        for argument in parsed.arguments:
            mark = marks[argument] if argument in marks else self._mark(memory, argument)
            key += (mark, index.get(argument, 0))
        row = self._rows.get(key)
        if row is None:
            tokens = self._action_tokens(memory, index, parsed)
            row = self._rows[key] = self._add([self._hash(token) for token in tokens[: self.candidate_tokens]])
        return row

    def _action_tokens(self, memory: _Slot, index: Mapping[str, int], parsed: _Parsed) -> list[str]:
        verb, arguments = parsed.verb, parsed.arguments
        tokens = [verb]
        for position, argument in enumerate(arguments):
            mark = self._mark(memory, argument)
            if mark:
                tokens.append(f"{verb}.{position}.{mark}")
            for fact in self._fact_list[index.get(argument, 0)]:
                tokens.append(f"{position}.{fact}" if "~" in fact else f"{verb}.{position}.{fact}")
            tokens += [f"{position}~{word}" for word in _kind(argument)[:_MAX_WORDS]]
        kind = "_".join(_kind(arguments[-1])[:_MAX_WORDS]) if arguments else ""
        tokens += [f"{verb}~{kind}*{word}" for word in memory.crossed]
        return list(dict.fromkeys(tokens))

    # --- caches ------------------------------------------------------------------------------------------------------

    def _hash(self, token: str) -> int:
        code = self._hashes.get(token)
        if code is None:
            code = self._hashes[token] = 1 + zlib.crc32(token.encode()) % (self.buckets - 1)
        return code

    def _join(self, number: int, facts: tuple[str, ...]) -> int:
        """Return the number of these facts joined to those already numbered."""
        facts = self._fact_list[number] + facts
        found = self._facts.get(facts)
        if found is None:
            found = self._facts[facts] = len(self._fact_list)
            self._fact_list.append(facts)
        return found

    def _add(self, ids: Sequence[int]) -> int:
        if self._used == len(self._pool):
            self._pool = np.concatenate([self._pool, np.zeros_like(self._pool)])
        self._pool[self._used, : len(ids)] = ids
        self._used += 1
        return self._used - 1

    def _forget(self) -> None:
        """Empty every cache, so that a long run with ever new texts does not grow."""
        self._hashes.clear()
        self._facts = {(): 0}
        self._fact_list = [()]
        self._actions.clear()
        self._rows.clear()
        self._pool[:] = 0
        self._used = 1
        for memory in self._slots.values():
            memory.records.clear()
            memory.marks.clear()


def _is_small(node: Node) -> bool:
    return node.max_items is not None and node.max_items <= _LARGE


def _kind(name: str) -> list[str]:
    """Return a name's words without its numbers: ["mug"] for "mug 1"."""
    return [word for word in _WORD.findall(name.lower()) if not word[0].isdigit()]


@lru_cache(maxsize=4096)
def _bucket(value: float) -> str:
    """Return a number's size: exact up to 2, then by powers of two."""
    if value in (0, 1, 2):
        return str(int(value))
    sign, size = ("-", -value) if value < 0 else ("", value)
    return f"{sign}2^{math.ceil(math.log2(size))}" if size > 0 else "nan"


def _enum_values(node: Node) -> Iterable[str]:
    yield from node.values
    for child in node.children.values():
        yield from _enum_values(child)
    if node.items is not None:
        yield from _enum_values(node.items)
