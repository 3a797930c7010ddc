"""Actions by index: the text actions that a state offers, as a Discrete space with masks.

Candidates come from `info["candidate_actions"]`, computed by the domain from the public state alone, so an index means
the same in a dream and in the real environment. For an agent that has its own idea of what an index means (it should
not: see `dreamgym_envs.agents.policy`) the order is the domain's, and where a state offers more than k candidates the
first k are kept and a warning says so once.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray

from dreamgym_envs.wrappers.infos import domain_of

NO_CANDIDATE = "no such candidate"
"""Text sent for an index that has no candidate. No grammar knows it, so it is answered with failure feedback."""


class CandidateActions(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Turns Text actions into Discrete(k) over the candidates of the current state.

    An index without a candidate is an action outside the grammar: failure feedback, reward 0, one step gone. Mask it
    with `action_masks`, as MaskablePPO does. The vector twin is `VectorCandidateActions`.

    Args:
        env: An environment whose info has "candidate_actions".
        k: Most candidates; None takes the domain's own limit.

    Raises:
        ValueError: k is not positive.

    Example:
        >>> env = CandidateActions(gym.make("DreamGym/ALFWorld-v0"))  # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)  # doctest: +SKIP
        >>> env.action_masks().sum() == len(info["candidate_actions"])  # doctest: +SKIP
        True
    """

    def __init__(self, env: gym.Env[Any, Any], k: int | None = None) -> None:
        RecordConstructorArgs.__init__(self, k=k)
        gym.Wrapper.__init__(self, env)
        self.k = _limit(env, k)
        self.action_space = spaces.Discrete(self.k)
        self.candidates: tuple[str, ...] = ()
        self._cut = _Cut(self.k)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and note the candidates of its first state."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.candidates = self._cut(info["candidate_actions"])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take the candidate with the given index."""
        observation, reward, terminated, truncated, info = self.env.step(_text(self.candidates, action))
        self.candidates = self._cut(info["candidate_actions"])
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which indices have a candidate, shape [k]."""
        return np.arange(self.k) < len(self.candidates)


class VectorCandidateActions(VectorWrapper[Any, Any, Any, Sequence[str], Any]):
    """Vector twin of `CandidateActions`: MultiDiscrete([k] * num_envs), masks [num_envs, k].

    Args:
        env: A vector environment whose infos have "candidate_actions".
        k: Most candidates; None takes the domain's own limit.

    Raises:
        ValueError: k is not positive.

    Example:
        >>> envs = VectorCandidateActions(gym.make_vec("DreamGym/ALFWorld-v0", num_envs=64))  # doctest: +SKIP
        >>> observations, infos = envs.reset(seed=0)  # doctest: +SKIP
        >>> envs.action_masks().shape  # doctest: +SKIP
        (64, 200)
    """

    def __init__(self, env: VectorEnv[Any, Sequence[str], Any], k: int | None = None) -> None:
        super().__init__(env)
        self.k = _limit(env, k)
        self.single_action_space = spaces.Discrete(self.k)
        self.action_space = spaces.MultiDiscrete([self.k] * self.num_envs)
        self.candidates: list[tuple[str, ...]] = [()] * self.num_envs
        self._cut = _Cut(self.k)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environments and note the candidates of those that were reset."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._note(infos)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take in each environment the candidate with the given index."""
        texts = [_text(offered, action) for offered, action in zip(self.candidates, actions, strict=True)]
        observations, rewards, terminations, truncations, infos = self.env.step(texts)
        self._note(infos)
        return observations, rewards, terminations, truncations, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which indices have a candidate, shape [num_envs, k]."""
        counts = np.fromiter(map(len, self.candidates), dtype=np.int64, count=self.num_envs)
        masks: NDArray[np.bool_] = np.arange(self.k) < counts[:, None]
        return masks

    def _note(self, infos: dict[str, Any]) -> None:
        for i in np.flatnonzero(infos.get("_candidate_actions", ())):
            self.candidates[i] = self._cut(infos["candidate_actions"][i])


class _Cut:
    """Cuts lists of candidates at k and warns the first time that something is lost."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.warned = False

    def __call__(self, candidates: Sequence[str]) -> tuple[str, ...]:
        if len(candidates) > self.k and not self.warned:
            self.warned = True
            gym.logger.warn(
                f"a state offers {len(candidates)} candidate actions, more than k={self.k}; the first {self.k} in the "
                f"domain's order are kept. Make the wrapper with k={len(candidates)} or more to keep all."
            )
        return tuple(candidates[: self.k])


def _text(candidates: Sequence[str], action: Any) -> str:
    index = int(action)
    return candidates[index] if 0 <= index < len(candidates) else NO_CANDIDATE


def _limit(env: Any, k: int | None) -> int:
    if k is None:
        k = domain_of(env).max_candidates
    if k < 1:
        raise ValueError(f"k is {k}; expected the most candidates that a state may offer, at least 1")
    return k
