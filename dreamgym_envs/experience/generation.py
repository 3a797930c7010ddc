"""Generation: many outputs at once, each under its own grammar, from any decoder.

The loop knows nothing of the model's size or hardware: a decoder's `forward` takes a flat list of tokens and returns
the logits that are asked for, the parser of each row says what may come next. Tokens that the grammar leaves no choice
about are not asked for: they ride along with the next forward call.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.experience.choices import Choice, GrammarTables
from dreamgym_envs.experience.codec import Prompt
from dreamgym_envs.experience.decoders.base import Session
from dreamgym_envs.experience.grammar import Parser
from dreamgym_envs.experience.model import THRESHOLD, Prediction, Query

TEMPERATURE = 1.0
TOP_P = 0.99
"""Only what the world hides is sampled, and that as it is: .8/.95 made needed objects rare (facts of the prototype)."""


class Row:
    """One output being written.

    Attributes:
        pending: Tokens that the decoder has not seen yet.
        position: Position of the first pending token.
        choice: What may come next; None once the output is complete.
        prediction: The answer, once the output is complete.
    """

    def __init__(self, tables: GrammarTables, query: Query, prompt: Prompt) -> None:
        self.rng = query.rng
        self.pending: list[int] = list(prompt.ids)
        self.position = 0
        self.log_confidence = 0.0
        self.sampled = False
        self.prediction: Prediction | None = None
        parser = Parser(tables, prompt, query.state, reasons=query.action is not None, rng=query.rng)
        self._parse = parser.parse()
        self.choice: Choice | None = next(self._parse)
        self._skip()

    def push(self, token: int) -> None:
        """Take a token, and those after it that are the only ones allowed."""
        self.pending.append(token)
        self._send(token)
        self._skip()

    def _skip(self) -> None:
        while self.choice is not None and len(self.choice.ids) == 1:
            token = self.choice.ids[0]
            self.pending.append(token)
            self._send(token)

    def _send(self, token: int) -> None:
        try:
            self.choice = self._parse.send(token)
        except StopIteration as stop:
            self.choice = None
            self.prediction = replace(stop.value, confidence=float(np.exp(self.log_confidence)), sampled=self.sampled)


def generate(
    session: Session,
    tables: GrammarTables,
    queries: Sequence[Query],
    prompts: Sequence[Prompt],
    threshold: float = THRESHOLD,
) -> list[Prediction]:
    """Answer queries as one batch.

    Args:
        session: A decoder's cache, free for this call.
        tables: The codec's grammar.
        queries: What is asked.
        prompts: The same as token ids.
        threshold: Success is paid only if reasoning and verdict have at least this probability; otherwise the next
            lower reward (pessimism).

    Returns:
        One prediction a query, in order.
    """
    rows = [Row(tables, query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
    active = [index for index, row in enumerate(rows) if row.choice is not None]
    session.reset(len(rows))
    while active:
        logits = session.forward(*_flat(rows, active))
        masks = np.stack([rows[index].choice.mask for index in active])  # type: ignore[union-attr]
        logits = logits + masks
        likeliest = np.argmax(logits, axis=1)
        confidence = _log_probability(logits, likeliest)
        for place, index in enumerate(active):
            row = rows[index]
            choice = row.choice
            assert choice is not None
            token = int(likeliest[place])
            row.sampled = row.sampled or choice.sampled
            if choice.sampled and row.rng is not None:
                token = draw(logits[place], row.rng)
            elif choice.judged:
                row.log_confidence += float(confidence[place])
                if threshold and token in tables.lower and row.log_confidence < np.log(threshold):
                    token = tables.lower[token]
            row.push(token)
        active = [index for index in active if rows[index].choice is not None]
    return [row.prediction for row in rows if row.prediction is not None]


def _flat(
    rows: Sequence[Row], active: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return (ids, row, position, last) of all pending tokens, and mark them as seen."""
    ids: list[int] = []
    row_of: list[int] = []
    position: list[int] = []
    last: list[int] = []
    for index in active:
        row = rows[index]
        count = len(row.pending)
        ids += row.pending
        row_of += [index] * count
        position += range(row.position, row.position + count)
        last.append(len(ids) - 1)
        row.position += count
        row.pending = []
    return (
        np.array(ids, dtype=np.int32),
        np.array(row_of, dtype=np.int32),
        np.array(position, dtype=np.int32),
        np.array(last, dtype=np.int32),
    )


def _log_probability(logits: NDArray[np.float32], tokens: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the log probability of the likeliest token of each row of masked logits [n, vocabulary]."""
    top = logits[np.arange(len(tokens)), tokens]
    return np.asarray(-np.log(np.exp(logits - top[:, None]).sum(axis=1)), dtype=np.float32)


def draw(logits: NDArray[np.float32], rng: np.random.Generator) -> int:
    """Sample a token from masked logits [vocabulary] at `TEMPERATURE` within `TOP_P`, with one uniform number."""
    allowed = np.flatnonzero(logits > -np.inf)
    scores = logits[allowed].astype(np.float64) / TEMPERATURE
    probabilities = np.exp(scores - scores.max())
    order = np.argsort(-probabilities, kind="stable")
    cumulative = np.cumsum(probabilities[order])
    total = cumulative[-1]
    kept = int(np.searchsorted(cumulative, TOP_P * total)) + 1
    point = rng.random() * cumulative[min(kept, len(order)) - 1]
    return int(allowed[order[min(int(np.searchsorted(cumulative, point, side="right")), len(order) - 1)]])
