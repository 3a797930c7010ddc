"""Fitting the codec's tables: which kinds, edits, outcomes and frequent strings there are."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.codec import Codec, resolve
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.symbols import HOLE, Tables, abstracted, split_instruction, split_number
from dreamgym_envs.experience.vocabulary import Vocabulary


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
        names = [*_strings(domain.focus(query.task, query.state, action)), *_strings([e.value for e in target.delta])]
        for name in names:
            kind, number = split_number(name)
            if number is not None and len(kind) <= 40:
                kinds[kind] += 1
                largest = max(largest, number if number <= 64 else 1)
        for edit in target.delta:
            path, node, _ = resolve(domain.schema.root, edit.path)
            operations[f"{edit.op} {path}"] += 1
            if edit.op == "set" and node.kind == "array":
                most[path] = max(most[path], len(edit.value))
        outcomes[float(target.reward), target.terminated] += 1
    base = Tables(
        domain=domain.name,
        verbs=tuple(sorted(verbs)),
        kinds=_frequent(kinds, least),
        numbers=largest,
        slots=slots,
        marks=marks,
        operations=tuple(sorted(operations)),
        outcomes=tuple(sorted(outcomes)),
        lexicon={},
        most_elements=dict(most),
        history=history,
        demonstrations=demonstrations,
    )
    texts: dict[str, Counter[str]] = {}
    draft = Codec(domain, base, Vocabulary.train([], base.symbols(domain.schema.root)))
    for query, target in pairs:
        prompt = draft.encode(query)
        for line in target.reasoning.splitlines():
            texts.setdefault("reasoning", Counter())[abstracted(line, prompt.slots)] += 1
        for edit in target.delta:
            path, node, _ = resolve(domain.schema.root, edit.path)
            if node.kind == "string" and edit.value not in prompt.slots:
                texts.setdefault(path, Counter())[abstracted(edit.value, prompt.slots)] += 1
    for instruction in {query.task.instruction for query, _ in pairs}:
        for piece, _ in split_instruction(instruction, draft.kind_ids):
            if piece:
                texts.setdefault("instruction", Counter())[piece] += least
    lexicon = {path: _frequent(counts, least) for path, counts in sorted(texts.items())}
    sample = [HOLE.sub("", text) for counts in texts.values() for text in counts] + list(kinds)
    return Tables(**{**asdict(base), "lexicon": lexicon}), sample


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
