"""The experience model's contract: queries in, predictions out, a batch at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dreamgym_envs.core.delta import Edit
from dreamgym_envs.core.types import State, Step, Task, Transition

THRESHOLD = 0.7
"""Probability that reasoning and verdict must have before success is paid. Measured on 4,708 held-out transitions of
ALFWorld: it pays none of 4 false successes and 174 of 175 true ones, as many as a threshold of 0 does; 0.9 pays 169."""


@dataclass(frozen=True, slots=True)
class Query:
    """What the experience model is asked: what comes of this action?

    Attributes:
        task: The task being attempted.
        state: The state in which the action is taken.
        action: The agent's text, accepted by the domain's grammar; None asks, at reset, what the world hides.
        history: The steps so far, oldest first.
        demonstrations: Similar transitions, retrieved from a replay buffer.
        rng: Source of every sampled token of this query; None decodes greedily.
    """

    task: Task
    state: State
    action: str | None
    history: tuple[Step, ...] = ()
    demonstrations: tuple[Transition, ...] = ()
    rng: np.random.Generator | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the experience model answers.

    Attributes:
        reasoning: One check a line, then the verdict.
        delta: Edits against the query's state; valid under the domain's schema by construction.
        reward: Reward of the step.
        terminated: Whether the episode ends here.
        confidence: Probability of the reasoning and verdict among the allowed tokens, in (0, 1].
        sampled: Whether a part of the answer was open to chance, so that the same query may be answered otherwise.
    """

    reasoning: str
    delta: tuple[Edit, ...]
    reward: float
    terminated: bool
    confidence: float = 1.0
    sampled: bool = False


@runtime_checkable
class ExperienceModel(Protocol):
    """A learned model that plays an environment."""

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Answer a batch of queries, in order. A query's answer does not depend on the rest of the batch."""
        ...
