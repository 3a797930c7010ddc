"""Fitting the codec's tables: which kinds, edits, outcomes and frequent strings and words there are."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dreamgym_envs.core.schema import Node
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.codec import Codec, Prompt, resolve
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.prose import collocations, fillers, segments, units
from dreamgym_envs.experience.symbols import HOLE, Tables, abstracted, split_instruction, split_number, walk
from dreamgym_envs.experience.vocabulary import Vocabulary

MENTIONS = 24
"""Most things named by an instruction that can be referred to."""

PHRASE = 40
"""Most characters of a string that is a phrase as a whole, such as an option's value."""


def fit_tables(
    domain: Domain,
    examples: Iterable[tuple[Query, Prediction]],
    *,
    slots: int = 96,
    marks: int = 6,
    least: int = 5,
    history: int = 0,
    demonstrations: int = 0,
) -> tuple[Tables, list[str]]:
    """Learn the codec's tables from queries and answers.

    Args:
        domain: The domain.
        examples: Training examples; iterated twice.
        slots: How many strings of a query can be referred to.
        marks: How many places of an instruction can be marked.
        least: How often a text must occur to become one token.
        history: How many past steps a prompt shows.
        demonstrations: Most demonstrations that a prompt shows.

    Returns:
        The tables, and a sample of texts to train subwords on.
    """
    pairs = list(examples)
    inventory, kinds = _inventory(domain, pairs, least)
    tables = replace(inventory, slots=slots, history=history, demonstrations=demonstrations)
    if _has_handles(domain):  # names tell no kinds that could be marked
        phrases, idle = _words(domain, pairs, least)
        tables = replace(tables, mentions=MENTIONS, phrases=phrases, idle=idle)
    else:
        tables = replace(tables, marks=marks)
    draft = Codec(domain, tables, Vocabulary.train([], tables.symbols(domain.schema.root)))
    found = _Texts(draft, least)
    for query, target in pairs:
        found.read(query, target)
    for instruction in dict.fromkeys(query.task.instruction for query, _ in pairs):
        found.read_instruction(instruction)
    return found.tables(), [*found.sample(kinds)]


def _has_handles(domain: Domain) -> bool:
    return any(node.handle is not None for _, node in walk(domain.schema.root))


def _inventory(domain: Domain, pairs: Iterable[tuple[Query, Prediction]], least: int) -> tuple[Tables, tuple[str, ...]]:
    """Return tables of the verbs, kinds, edits and outcomes there are, and all kinds, frequent or not."""
    handles = _has_handles(domain)
    verbs: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    outcomes: Counter[tuple[float, bool]] = Counter()
    most: Counter[str] = Counter()
    largest = 1
    for query, target in pairs:
        action = None if query.action is None else domain.parse(query.action)
        if action is not None:
            verbs[action.verb] += 1
        for edit in target.delta:
            path, node, _ = resolve(domain.schema.root, edit.path)
            operations[f"{edit.op} {path}"] += 1
            if edit.op == "add":
                most[path] = max(most[path], len(edit.value))
            if edit.op == "set":
                for below, length in _lengths(node, edit.value, path):
                    most[below] = max(most[below], length)
        outcomes[float(target.reward), target.terminated] += 1
        if handles:
            continue
        names = [*_strings(domain.focus(query.task, query.state, action)), *_strings([e.value for e in target.delta])]
        for name in names:
            kind, number = split_number(name)
            if number is not None and len(kind) <= 40:
                kinds[kind] += 1
                largest = max(largest, number if number <= 64 else 1)
    tables = Tables(
        domain=domain.name,
        verbs=tuple(sorted(verbs)),
        kinds=_frequent(kinds, least),
        numbers=largest,
        slots=0,
        marks=0,
        operations=tuple(sorted(operations)),
        outcomes=tuple(sorted(outcomes)),
        lexicon={},
        most_elements=dict(most),
    )
    return tables, tuple(kinds)


class _Texts:
    """What answers and instructions say, as a codec without a lexicon reads them.

    Args:
        codec: The codec; its tables lack all that is learned here.
        least: How often a text must occur to become one token.
    """

    def __init__(self, codec: Codec, least: int) -> None:
        self._codec = codec
        self._domain = codec.domain
        self._least = least
        self._handles = _has_handles(codec.domain)
        self._texts: dict[str, Counter[str]] = {}
        self._references: set[str] = set()
        self._longest: Counter[str] = Counter()
        self._words: dict[str, set[int]] = {}
        self._patterned: dict[str, set[str]] = {}

    def read(self, query: Query, target: Prediction) -> None:
        """Count what an example says."""
        action = None if query.action is None else self._domain.parse(query.action)
        prompt = self._codec.encode(query)
        for line in target.reasoning.splitlines():
            self._count("reasoning", abstracted(line, prompt.slots))
        for line in self._domain.comparisons(query.task, query.state, action):
            self._count("comparisons", line)
        for path, node, value in _leaves(self._domain, target):
            if node.kind == "integer":
                self._count(path, json.dumps(value), self._least)  # numbers cannot be spelt
            elif value in prompt.slots:
                self._references.add(path)
            elif node.pattern:
                self._patterned.setdefault(path, set()).add(value)
                self._spelt(path, prompt, value)
            elif _is_text(node) and (self._handles or split_number(value)[0] not in self._codec.kind_ids):
                self._count(path, abstracted(value, prompt.slots))
                self._spelt(path, prompt, value)
        for line in target.reasoning.splitlines():
            self._words.setdefault("reasoning", set()).update(_phrases(self._codec, prompt, line))

    def read_instruction(self, instruction: str) -> None:
        """Count what an instruction says around what it names."""
        for piece in _fixed_pieces(self._codec, instruction):
            self._count("instruction", piece, 1 if self._handles else self._least)

    def _count(self, path: str, text: str, times: int = 1) -> None:
        self._texts.setdefault(path, Counter())[text] += times

    def _spelt(self, path: str, prompt: Prompt, text: str) -> None:
        self._longest[path] = max(self._longest[path], len(text))
        self._words.setdefault(path, set()).update(_phrases(self._codec, prompt, text))

    def tables(self) -> Tables:
        """Return the codec's tables with what was learned."""
        lexicon = {
            path: _frequent(counts, self._least) if not self._handles or _repeats(counts) else ("",) * ("" in counts)
            for path, counts in sorted(self._texts.items())
        }
        letters = {path: "".join(sorted({*"".join(found)})) for path, found in sorted(self._patterned.items())}
        tables = replace(self._codec.tables, lexicon=lexicon, letters=letters)
        if not self._handles:
            return tables
        name_of = {token: phrase for phrase, token in self._codec.phrase_ids.items()}
        return replace(
            tables,
            references=tuple(sorted(self._references)),
            longest=dict(self._longest),
            words={path: tuple(sorted(name_of[t] for t in tokens)) for path, tokens in sorted(self._words.items())},
        )

    def sample(self, kinds: Iterable[str]) -> Iterator[str]:
        """Yield texts to train subwords on."""
        yield from (HOLE.sub("", text) for counts in self._texts.values() for text in counts)
        yield from kinds
        yield from (text for path in sorted(self._patterned) for text in sorted(self._patterned[path]))


def _phrases(codec: Codec, prompt: Prompt, text: str) -> set[int]:
    """Return the phrases that a text is written with."""
    pieces = segments(text, prompt.mentions, codec.phrase_ids) if codec.tables.mentions else []
    return {piece for piece in pieces if isinstance(piece, int)} - set(prompt.mentions.values())


def _words(
    domain: Domain, pairs: Iterable[tuple[Query, Prediction]], least: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the phrases of what is new in answers, and the words of instructions that name nothing."""
    instructions = {query.task.instruction for query, _ in pairs}
    idle = fillers(instructions)
    texts: Counter[str] = Counter()
    for query, target in pairs:
        known = {query.action, *_strings(query.state.private)}
        for _, node, value in _leaves(domain, target):
            if _is_text(node) and not node.event and value not in known:
                texts[value] += 1
    groups = dict.fromkeys(collocations(texts, 2 * least, idle, fillers(instructions, 0.15)), 0)
    values = (text for text, count in texts.items() if count >= least and 0 < len(text) <= PHRASE)
    # A string that consists of groups, such as two attributes in one, is no phrase of its own.
    whole = {text for text in values if any(isinstance(piece, str) for piece in segments(text, groups))}
    numbers = Counter(word for instruction in instructions for word in instruction.split() if word[0].isdigit())
    phrases = {*groups, *whole, *(word for word, count in numbers.items() if count >= least)}
    return tuple(sorted(phrases)), tuple(sorted(idle))


def _fixed_pieces(codec: Codec, instruction: str) -> Iterator[str]:
    """Yield what an instruction says around what it names."""
    if codec.tables.mentions:
        yield from (
            words for words, names in units(instruction, codec.phrase_ids, frozenset(codec.tables.idle)) if not names
        )
    else:
        yield from (piece for piece, _ in split_instruction(instruction, codec.kind_ids) if piece)


def _leaves(domain: Domain, target: Prediction) -> Iterator[tuple[str, Node, Any]]:
    """Yield (path, node, value) of the strings and integers that a prediction writes."""
    for edit in target.delta:
        path, node, _ = resolve(domain.schema.root, edit.path)
        if edit.op == "set":
            yield from _below(node, edit.value, path)
        elif edit.op == "add" and node.items is not None:
            for element in edit.value:
                yield from _below(node.items, element, path)


def _is_text(node: Node) -> bool:
    """Return whether a node is a string that says something, and not the name of a thing that says nothing."""
    return node.kind == "string" and node.handle is None and node.ref is None and not node.pattern


def _below(node: Node, value: Any, path: str) -> Iterator[tuple[str, Node, Any]]:
    if node.kind == "object":
        for name, child in node.children.items():
            yield from _below(child, value[name], f"{path}.{name}")
    elif node.kind == "array" and node.items is not None:
        for element in value:
            yield from _below(node.items, element, path)
    elif node.kind in ("string", "integer"):
        yield path, node, value


def _lengths(node: Node, value: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield (path, number of elements) of an array that is set, and of the arrays in its elements."""
    if node.kind == "array" and node.items is not None:
        yield path, len(value)
        for element in value:
            for name, child in node.items.children.items():
                yield from _lengths(child, element[name], f"{path}.{name}")


def _repeats(counts: Counter[str]) -> bool:
    """Return whether what is said at a path is mostly the same few texts: titles and pages are to be written anew."""
    return sum(count for _, count in counts.most_common(256)) > 0.8 * counts.total()


def _frequent(counts: Counter[str], least: int) -> tuple[str, ...]:
    """Return what was counted at least `least` times, most frequent first."""
    return tuple(text for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if count >= least)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
