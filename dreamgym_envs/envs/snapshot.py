"""Snapshots: an episode put down as data, to be taken up again in any environment of the same domain and model.

    fork = env.unwrapped.snapshot()
    observation, info = restore(env, fork)           # the same continuation for the same actions
    observation, info = restore(env, fork, seed=7)   # the same moment, other chances from here on

Restoring is a reset, so wrappers take part in it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import gymnasium as gym
import numpy as np

from dreamgym_envs.core.records import from_document, to_document
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.episode import Moment


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An episode of a dream at one moment.

    Attributes:
        domain: Name of the domain.
        moment: Where the episode stood, hidden commitments included: do not show it to the agent.
        rng: State of the environment's bit generator, as NumPy gives it.
    """

    domain: str
    moment: Moment
    rng: Mapping[str, Any]

    @classmethod
    def take(cls, domain: Domain, moment: Moment, rng: np.random.Generator) -> "Snapshot":
        """Return the snapshot of an episode and its random numbers."""
        return cls(domain.name, moment, dict(rng.bit_generator.state))

    def moment_in(self, domain: Domain) -> Moment:
        """Return the moment, checked against the domain that it is to go on in.

        Raises:
            ValueError: The snapshot belongs to another domain, or its numbers are none of an episode.
            StateError: Its state, or the one that its task starts in, breaks the domain's schema.
        """
        if self.domain != domain.name:
            raise ValueError(f"this snapshot belongs to the domain {self.domain!r}, the environment to {domain.name!r}")
        moment = self.moment
        domain.schema.validate(moment.task.initial)
        domain.schema.validate(moment.state)
        if moment.steps < 0 or not math.isfinite(moment.reward):
            raise ValueError(
                f"this snapshot has {moment.steps} steps behind it and a reward of {moment.reward}; take a new one "
                "with env.unwrapped.snapshot()"
            )
        return moment

    def to_json(self) -> str:
        """Return the snapshot as one line of JSON."""
        return json.dumps(to_document(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Snapshot":
        """Return the snapshot that `to_json` wrote.

        Raises:
            ValueError: The text is no snapshot.
        """
        try:
            return from_document(cls, json.loads(text))
        except ValueError as error:
            raise ValueError(f"not a snapshot as Snapshot.to_json writes it: {error}") from error


def as_snapshot(value: Any) -> Snapshot:
    """Return the option "snapshot" of a reset: a Snapshot or its JSON.

    Raises:
        TypeError: It is neither.
        ValueError: It is a string, but not the JSON of a snapshot.
    """
    if isinstance(value, str):
        return Snapshot.from_json(value)
    if not isinstance(value, Snapshot):
        raise TypeError(f"options['snapshot'] is what env.unwrapped.snapshot() returns, or its JSON, not {value!r:.40}")
    return value


@overload
def restore(
    env: gym.Env[Any, Any], snapshot: Snapshot | str, *, seed: int | None = None
) -> tuple[Any, dict[str, Any]]: ...
@overload
def restore(
    env: gym.vector.VectorEnv[Any, Any, Any],
    snapshot: Sequence[Snapshot | str | None],
    *,
    seed: int | list[int | None] | None = None,
) -> tuple[Any, dict[str, Any]]: ...
def restore(env: Any, snapshot: Any, *, seed: Any = None) -> tuple[Any, dict[str, Any]]:
    """Reset an environment to a snapshot.

    It goes through all wrappers, and a TimeLimit counts the steps that the snapshot has behind it, which it would not
    do at a plain `env.reset(options={"snapshot": snapshot})`.

    Args:
        env: A dream, wrapped or not, or a vector of dreams.
        snapshot: The snapshot or its JSON; for a vector one an environment, None for those to be left alone.
        seed: For other chances than the snapshot's; as in `reset`.

    Returns:
        Observation and info, as `reset` does.
    """
    if isinstance(env, gym.vector.VectorEnv):
        mask = np.array([item is not None for item in snapshot], dtype=np.bool_)
        options = {"snapshot": list(snapshot), "reset_mask": mask}
        batch: tuple[Any, dict[str, Any]] = env.reset(seed=seed, options=options)
        return batch
    snapshot = as_snapshot(snapshot)
    result: tuple[Any, dict[str, Any]] = env.reset(seed=seed, options={"snapshot": snapshot})
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            env._elapsed_steps = snapshot.moment.steps
        env = env.env
    return result
