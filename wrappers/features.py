"""Tokens of a state and its candidate actions: what a small policy reads instead of raw text.

An action is described by its verb and by what the state says about each of its arguments, found by a join that knows
no domain: an argument is looked up among the keys of the state's keyed arrays (schema keyword "x-key") and among its
strings. Where a name's words occur in the instruction it carries a mark, "m0" for the last content word of the
instruction, "m1" for the one before; so "take mug 1 from cabinet 3" under "put a clean mug in cabinet." becomes

    take  0~mug  take.0.m1  take.0.receptacles.contents  take.0.^m0  ...  1~cabinet  take.1.m0  ...  take~cabinet*clean

Facts from closed sets (enums, booleans, marks, membership) are joined with the verb, words are not. The last tokens
join verb and last argument with the instruction's content words: "go~microwave*hot" is learned from a few examples,
where a network that has to find the product itself needs hundreds (a clone of 150 episodes: 87 against 66 % success).

The context is told in the same language: the instruction's words, small arrays in full, large ones as counts.

Where states hold ever new texts (schema keyword "x-invented"), no word is told, only how texts match the instruction
(see `matching`): of a record how many of the instruction's words it leaves out, and whether another leaves out fewer;
of a number whether it is within the limit; of an argument whether the instruction says it, and how many of the words
that are still missing it brings. An action without an argument, such as a button, is described by what is open: the
records that references at the root (schema keyword "x-ref") name.

Tokens are hashed (CRC-32) into a fixed number of buckets, so nothing has to be fitted and two processes agree; bucket 0
is padding.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.wrappers.matching import NOTHING, Request, has_text, is_invented, stems, texts_of

IntArray = npt.NDArray[np.int16]

BUCKETS = 1 << 15
"""Default size of the vocabulary: what 16 bits hold."""
CANDIDATE_TOKENS = 24
CONTEXT_TOKENS = 64

_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
# fmt: off
_FUNCTION_WORDS = frozenset((
    "a", "am", "an", "and", "are", "as", "at", "be", "buy", "by", "can", "dollars", "find", "for", "from", "get",
    "give", "go", "has", "have", "i", "in", "into", "is", "it", "its", "like", "look", "looking", "lower", "m", "me",
    "move", "my", "need", "of", "on", "one", "onto", "or", "place", "please", "price", "put", "should", "some",
    "than", "that", "the", "their", "them", "then", "there", "this", "to", "two", "under", "use", "using", "want",
    "which", "with", "would", "you",
))
# fmt: on
"""English words that name nothing in an instruction."""

# How much of what is unbounded is told apart.
_MAX_MARK = 3
_MAX_WORDS = 8
_MAX_CROSSED = 4
_MAX_COUNT = 9
_LARGE = 4
_POOL = 1 << 15
"""Most entries of a cache; beyond it, all are emptied."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What there is to say of one record of a keyed array.

    Attributes:
        value: The record.
        mentions: Number of the facts about each name in it.
        summary: Its part of the context.
        texts: Its own strings, apart from those of records within it; only where states hold ever new texts.
        left: How many of the instruction's words neither these nor the records within have; None without a text.
    """

    value: JSON
    mentions: dict[str, int]
    summary: tuple[str, ...]
    texts: tuple[str, ...] = ()
    left: int | None = None


@dataclass(frozen=True, slots=True)
class _Parsed:
    """An action with its parts, and these without the numbers in names."""

    verb: str
    arguments: tuple[str, ...]
    kinds: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What there is to say of a state.

    Attributes:
        index: Number of the facts about each name.
        tokens: The context.
        open: Facts about what is open: what an action without arguments is about.
        left: Words of the instruction that nothing open has and that are not settled otherwise.
        keys: Names of records.
    """

    index: dict[str, int]
    tokens: list[str]
    open: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()


class _Match(NamedTuple):
    """How an argument of an action matches.

    Attributes:
        said: How many words it has, if the instruction says it as it stands.
        gain: How many of the words that are still missing it has.
        facts: Number of the facts about it; 0 if the state says nothing of it.
        left: How many of the instruction's words it leaves out, where the state says nothing of it.
        shown: Whether it is part of a record's name, where the state says nothing of it.
    """

    said: int
    gain: int
    facts: int
    left: int
    shown: bool


@dataclass(slots=True)
class _Slot:
    """What is remembered of one episode: states share structure, so most records are unchanged from step to step."""

    instruction: str = ""
    words: tuple[str, ...] = ()
    request: Request = NOTHING
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
        self._open_world = any(is_invented(node) for node in self._nodes.values())
        self._enums = {word for value in _enum_values(domain.schema.root) for word in _WORD.findall(value.lower())}
        self._hashes: dict[str, int] = {}
        self._facts: dict[tuple[str, ...], int] = {(): 0}
        self._fact_list: list[tuple[str, ...]] = [()]
        self._pairs: dict[tuple[int, int], int] = {}
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
        if max(self._used, len(self._fact_list), len(self._pairs), len(self._hashes), len(self._actions)) > _POOL:
            self._forget()
        reading = self._read(memory, state)
        rows = [self._row(memory, reading, action) for action in actions[: self.candidates]]
        candidates[len(rows) :] = 0
        if rows:
            candidates[: len(rows)] = self._pool[rows]
        context[:] = 0
        ids = [self._hash(token) for token in reading.tokens[: self.context_tokens]]
        context[: len(ids)] = ids

    def explain(self, instruction: str, state: Mapping[str, JSON], action: str) -> list[str]:
        """Return an action's tokens before hashing, for people and tests."""
        memory = self._new_slot(instruction)
        return self._tokens(memory, self._read(memory, state), self._parsed(action))

    def explain_context(self, instruction: str, state: Mapping[str, JSON]) -> list[str]:
        """Return the context's tokens before hashing, for people and tests."""
        return self._read(self._new_slot(instruction), state).tokens

    # --- the instruction -------------------------------------------------------------------------------------------

    def _new_slot(self, instruction: str) -> _Slot:
        words = tuple(_WORD.findall(instruction.lower()))
        content = [w for w in words if w not in _FUNCTION_WORDS and w not in self._enums and not w[0].isdigit()]
        ranks: dict[str, int] = {}
        for rank, word in enumerate(reversed(content)):
            ranks.setdefault(word, min(rank, _MAX_MARK))
        crossed = dict.fromkeys(w for w in words if w not in _FUNCTION_WORDS and not w[0].isdigit())
        request = Request.read(instruction, _FUNCTION_WORDS)
        return _Slot(instruction, words or ("",), request, tuple(crossed)[-_MAX_CROSSED:], ranks)

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

    def _read(self, memory: _Slot, state: Mapping[str, JSON]) -> _Reading:
        """Return what there is to say of a state."""
        index: dict[str, int] = {}
        rest: dict[str, tuple[str, ...]] = {}
        found: dict[str, list[_Record]] = {}
        tokens = [] if self._open_world else [f"i~{word}" for word in memory.words]
        for name, node in self._nodes.items():
            value = state[name]
            if node.kind == "array" and node.items is not None and node.items.kind == "object":
                records = [self._record(memory, node, record, name, place) for place, record in enumerate(value)]
                found[name] = records
                for record in records:
                    for key, number in record.mentions.items():
                        index[key] = self._join_numbers(index[key], number) if key in index else number
                tokens += self._array_tokens(name, node, records)
            else:
                self._mentions(memory, node, value, name, (), rest)
                tokens += self._value_facts(memory, node, value, name)
        for name, facts in rest.items():
            index[name] = self._join(index.get(name, 0), facts)
        if not self._open_world:
            return _Reading(index, list(dict.fromkeys(tokens)))
        return self._matched(memory, state, found, _Reading(index, tokens))

    def _matched(
        self, memory: _Slot, state: Mapping[str, JSON], records: Mapping[str, Sequence[_Record]], reading: _Reading
    ) -> _Reading:
        """Return a reading with what it takes to compare records, and with what is open and still missing."""
        index, told = reading.index, []
        settled: list[str] = []
        named: dict[tuple[str, str], _Record] = {}
        for name, found in records.items():
            node = self._nodes[name]
            if node.items is None or node.key is None:
                continue
            named.update({(name, record.value[node.key]): record for record in found})
            counts = {record.value[node.key]: record.left for record in found if record.left is not None}
            if counts:
                least, best = min(counts.values()), self._join(0, (f"{name}.best",))
                for key, left in counts.items():
                    if left == least:
                        index[key] = self._join_numbers(index[key], best)
                told += self._least(name, node.items, found)
            elif not node.invented:
                settled += [text for record in found for text in record.texts]
        about: list[str] = []
        for name, node in self._nodes.items():
            if node.kind == "array" and node.items is not None and node.items.ref is not None:
                for key in state[name]:
                    record = named.get((node.items.ref[0], key))
                    if record is not None:
                        facts = self._fact_list[index[key]]
                        about += [f"{name}>{fact}" for fact in facts if not fact.startswith(name)]
                        settled += record.texts
                        more = len(memory.request.left(settled)) - (record.left or 0)
                        about.append(f"{name}>more={min(more, _MAX_COUNT)}")
        missing = memory.request.left(settled)
        about.append(f"left={min(len(missing), _MAX_COUNT)}")
        tokens = list(dict.fromkeys([*reading.tokens, *about, *told]))
        keys = frozenset(key for _, key in named)
        return _Reading(index, tokens, tuple(dict.fromkeys([*about, *told])), missing, keys)

    def _least(self, where: str, node: Node, records: Sequence[_Record]) -> list[str]:
        """Return how many words the best record leaves out, for each value of an enum of the records."""
        told = []
        for name, child in node.children.items():
            for value in child.values:
                counts = [r.left for r in records if r.left is not None and r.value[name] == value]
                if counts:
                    told.append(f"{where}.{name}={value}.least={min(min(counts), _MAX_COUNT)}")
        return told

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
        texts: tuple[str, ...] = ()
        left = None
        if self._open_world:
            texts = tuple(texts_of(node.items, record, within=False))
            if node.invented and isinstance(name, str) and has_text(node.items, node.key):
                left = len(memory.request.left(texts_of(node.items, record, within=True)))
                facts = (f"{where}.left={min(left, _MAX_COUNT)}", *facts)
                found[name] = (*found[name], facts[0])
        mark = self._mark(memory, name) if isinstance(name, str) else ""
        if _is_small(node):
            words = (f"{where}~{word}" for word in _kind(str(name or "")))
            summary = (*((f"{where}.{mark}",) if mark else ()), *words, *facts)
        else:
            closed = tuple(fact for fact in facts if "~" not in fact)
            marked = (f"{where}.{mark}", *(f"{where}.{mark}>{fact}" for fact in closed)) if mark else ()
            summary = (*marked, *closed)
        mentions = {name: self._join(0, facts) for name, facts in found.items()}
        entry = _Record(record, mentions, summary, texts, left)
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
                    first = (f"{where}#{_bucket(position)}",) if position == 0 or self._open_world else ()
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
                if self._open_world:
                    sign = memory.request.compared(value)
                    yield from (f"{where}{sign}",) if sign else ()
                else:
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

    def _row(self, memory: _Slot, reading: _Reading, action: str) -> int:
        """Return where in the pool an action's tokens are; actions that differ by numbers alone share them."""
        parsed = self._actions.get(action) or self._parsed(action)
        key: tuple[Any, ...]
        if self._open_world:
            matches = tuple([self._match(memory, reading, argument) for argument in parsed.arguments])
            key = (parsed.verb, matches or reading.open)
            row = self._rows.get(key)
            if row is None:
                told = self._match_tokens(reading, parsed.verb, matches)
                row = self._rows[key] = self._add([self._hash(token) for token in told[: self.candidate_tokens]])
            return row
        index = reading.index
        marks = memory.marks
        key = (parsed.kinds, memory.crossed)
        for argument in parsed.arguments:
            mark = marks[argument] if argument in marks else self._mark(memory, argument)
            key += (mark, index.get(argument, 0))
        row = self._rows.get(key)
        if row is None:
            told = self._action_tokens(memory, index, parsed)
            row = self._rows[key] = self._add([self._hash(token) for token in told[: self.candidate_tokens]])
        return row

    def _tokens(self, memory: _Slot, reading: _Reading, parsed: _Parsed) -> list[str]:
        if self._open_world:
            matches = tuple(self._match(memory, reading, argument) for argument in parsed.arguments)
            return self._match_tokens(reading, parsed.verb, matches)
        return self._action_tokens(memory, reading.index, parsed)

    def _match(self, memory: _Slot, reading: _Reading, argument: str) -> _Match:
        """Return how an argument matches the instruction and what is still missing."""
        request, words = memory.request, stems(argument)
        number = reading.index.get(argument, 0)
        return _Match(
            said=min(request.said(argument), _MAX_MARK),
            gain=min(len(reading.left & words), _MAX_COUNT),
            facts=number,
            left=-1 if number else min(len(request.words - words), _MAX_COUNT),
            shown=not number and any(argument in key for key in reading.keys),
        )

    def _match_tokens(self, reading: _Reading, verb: str, matches: Sequence[_Match]) -> list[str]:
        """Return an action's tokens where states hold ever new texts."""
        tokens = [verb]
        for position, match in enumerate(matches):
            where = f"{verb}.{position}"
            if match.said:
                tokens.append(f"{where}.said{match.said}")
            tokens.append(f"{where}.gain={match.gain}")
            tokens += [f"{where}.{fact}" for fact in self._fact_list[match.facts]]
            if not match.facts:
                tokens += [f"{where}.left={match.left}", f"{where}.{'shown' if match.shown else 'new'}"]
        if not matches:
            tokens += [f"{verb}.{fact}" for fact in reading.open]
        return list(dict.fromkeys(tokens))

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

    def _join_numbers(self, first: int, second: int) -> int:
        """Return the number of the facts with one number joined to those with another."""
        found = self._pairs.get((first, second))
        if found is None:
            found = self._pairs[first, second] = self._join(first, self._fact_list[second])
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
        self._pairs.clear()
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
