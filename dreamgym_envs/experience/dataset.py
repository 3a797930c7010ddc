"""The training set: episodes to examples to numbers.

Every transition of an episode is an example, with the hidden part of its state filled in by hindsight; an episode that
revealed nearly everything also says what its world hid, which is what a dream asks at reset. Episodes are seen again as
if other tasks had been set, and rare outputs are shown more often.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.core.delta import Edit
from dreamgym_envs.core.types import JSON, State, Trajectory
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import Codec, example
from dreamgym_envs.experience.grammar import Parser
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.symbols import split_number


@dataclass(frozen=True, slots=True)
class Encoded:
    """An example as numbers.

    Attributes:
        ids: int32 [length], prompt and output.
        prompt: Length of the prompt.
        weights: float32 [length - prompt], of each output token in the loss.
        choices: Token ids that the grammar allows in the place of each output token.
        outline: The output without what is invented.
    """

    ids: NDArray[np.int32]
    prompt: int
    weights: NDArray[np.float32]
    choices: tuple[tuple[int, ...], ...]
    outline: tuple[int, ...]


def examples(domain: Domain, trajectory: Trajectory, coverage: float) -> Iterator[tuple[Query, Prediction]]:
    """Yield an episode's transitions, and its reset if it revealed enough, as queries with their right answers."""
    hidden = domain.hindsight(trajectory)
    for transition, private in zip(trajectory.transitions(), hidden, strict=True):
        if domain.parse(transition.action) is None:
            continue
        transition = replace(transition, state=State(transition.state.public, private))
        yield example(domain, replace(transition, reasoning=transition.reasoning or domain.explain(transition)))
    yield from _start(domain, trajectory, hidden[0] if hidden else {}, coverage)


def _start(
    domain: Domain, trajectory: Trajectory, hidden: Mapping[str, JSON], coverage: float
) -> Iterator[tuple[Query, Prediction]]:
    """Yield the reset of an episode that revealed at least `coverage` of its hidden arrays."""
    if not hidden or domain.disclosed(trajectory) < coverage:
        return
    start = State(trajectory.task.initial.public, hidden)
    if domain.plausible_start(trajectory.task, start):
        delta = tuple(Edit("set", (name,), _by_name(domain, name, value)) for name, value in hidden.items())
        yield Query(trajectory.task, trajectory.task.initial, None), Prediction("", delta, 0.0, False)


def _by_name(domain: Domain, name: str, value: JSON) -> JSON:
    """Return promises in the order of their names; that in which an episode happened to reveal them is noise."""
    node = domain.schema.root.children[name]
    key = node.key
    if key is None or node.commits is None:
        return value

    def place(element: JSON) -> tuple[str, int]:
        kind, number = split_number(element[key])
        return kind, number or 0

    return tuple(sorted(value, key=place))


def dataset(
    domain: Domain,
    trajectories: Iterable[Trajectory],
    *,
    relabels: int = 1,
    start_relabels: int = 6,
    coverage: float = 0.85,
    seed: int = 0,
) -> list[tuple[Query, Prediction]]:
    """Return the training examples of episodes, as they were and relabelled with other tasks.

    Args:
        domain: The domain of the episodes.
        trajectories: The episodes.
        relabels: How many other tasks each episode is relabelled with.
        start_relabels: How many more for the resets of episodes that revealed enough.
        coverage: How much an episode must have disclosed to teach resets (see `Domain.disclosed`).
        seed: Of the choice of tasks.
    """
    rng = np.random.default_rng(seed)
    pairs: list[tuple[Query, Prediction]] = []
    for trajectory in trajectories:
        original = list(examples(domain, trajectory, coverage))
        pairs += original
        for _ in range(relabels):
            other = domain.relabel(trajectory, rng)
            if other is not None:
                pairs += _changed(original, examples(domain, other, coverage))
        if domain.disclosed(trajectory) >= coverage:
            for _ in range(start_relabels):
                other = domain.relabel(trajectory, rng)
                if other is not None:
                    whole = replace(trajectory, task=other.task)
                    pairs += _start(domain, whole, domain.hindsight(whole)[0], coverage)
    return pairs


def _changed(
    original: Sequence[tuple[Query, Prediction]], relabelled: Iterable[tuple[Query, Prediction]]
) -> Iterator[tuple[Query, Prediction]]:
    """Yield what another task makes a difference to: resets, and the steps whose answer is another one.

    A relabelled episode takes the steps of the original, as far as it goes.
    """
    answers = (target for query, target in original if query.action is not None)
    for query, target in relabelled:
        if query.action is None or target != next(answers):
            yield query, target


def encode(codec: Codec, tables: GrammarTables, query: Query, target: Prediction, invented_weight: float) -> Encoded:
    """Return an example as numbers, checked against the grammar.

    Raises:
        ValueError: The grammar forbids the right answer, which means that the data contradicts the schema.
    """
    prompt = codec.encode(query)
    output = codec.encode_output(prompt, target)
    weights = np.ones(len(output), dtype=np.float32)
    choices: list[tuple[int, ...]] = []
    outline: list[int] = []
    parse = Parser(tables, prompt, query.state, reasons=query.action is not None).parse()
    choice = next(parse)
    for index, token in enumerate(output):
        if token not in choice.ids:
            raise ValueError(f"the grammar forbids token {codec.vocabulary.tokenizer.id_to_token(token)!r}")
        choices.append(choice.ids)
        if choice.sampled:
            weights[index] = invented_weight
        else:
            outline.append(token)
        if len(choice.ids) == 1:
            weights[index] = 0.0
        try:
            choice = parse.send(token)
        except StopIteration:
            break
    ids = np.array(prompt.ids + output, dtype=np.int32)
    return Encoded(ids, len(prompt.ids), weights, tuple(choices), tuple(outline))


def balanced(codec: Codec, encoded: Sequence[Encoded], most: int) -> list[int]:
    """Return how often to show each example per epoch: the square root of how rare its class is, 1 to `most`.

    A class is an output without its names and what is invented: what is rare in play, such as an action that fails for
    want of a switch, is as much a part of the world as going about.
    """
    names = {*codec.slot_ids, *codec.number_ids, *codec.kind_ids.values()}
    classes = [tuple(token for token in item.outline if token not in names) for item in encoded]
    counts = Counter(classes)
    largest = max(counts.values())
    return [int(min(most, max(1.0, (largest / (4 * counts[name])) ** 0.5))) for name in classes]


def batches(encoded: Sequence[Encoded], copies: Sequence[int], tokens: int, seed: int) -> list[list[int]]:
    """Return one epoch's batches of example indices: similar lengths together, in a seeded random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.repeat(np.arange(len(encoded)), copies))
    window = 8192
    result: list[list[int]] = []
    for start in range(0, len(order), window):
        part = sorted(order[start : start + window].tolist(), key=lambda index: len(encoded[index].ids))
        batch: list[int] = []
        for index in part:
            if batch and (len(batch) + 1) * len(encoded[index].ids) > tokens:
                result.append(batch)
                batch = []
            batch.append(index)
        result.append(batch)
    return [result[index] for index in rng.permutation(len(result))]
