"""Text to fixed arrays: the observation that Stable-Baselines3 and other array-minded trainers can take.

The structured state, the instruction and the candidates' texts become token ids of fixed shape (see `features`), so
that a policy can score a candidate by what it says. Put these wrappers on `CandidateActions` or its vector twin:

    env = TextArrays(CandidateActions(gym.make("DreamGym/ALFWorld-v0")))
    envs = VectorTextArrays(VectorCandidateActions(gym.make_vec("DreamGym/ALFWorld-v0", num_envs=64)))
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from dreamgym_envs.wrappers.features import BUCKETS, CANDIDATE_TOKENS, CONTEXT_TOKENS, FeatureEncoder, IntArray
from dreamgym_envs.wrappers.infos import domain_of, info_of


def array_space(encoder: FeatureEncoder) -> spaces.Dict:
    """Return the observation space of an encoder's arrays: "candidates" [K, T] and "context" [S], int16."""
    high = encoder.buckets - 1
    return spaces.Dict(
        {
            "candidates": spaces.Box(0, high, (encoder.candidates, encoder.candidate_tokens), np.int16),
            "context": spaces.Box(0, high, (encoder.context_tokens,), np.int16),
        }
    )


class TextArrays(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Replaces the structured observation by token ids of instruction, state and candidates.

    The vector twin is `VectorTextArrays`.

    Args:
        env: An environment in a `CandidateActions`.
        buckets: Size of the hashed vocabulary.
        candidate_tokens: Most tokens of a candidate.
        context_tokens: Most tokens of instruction and state.

    Raises:
        TypeError: There is no `CandidateActions` below.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        buckets: int = BUCKETS,
        candidate_tokens: int = CANDIDATE_TOKENS,
        context_tokens: int = CONTEXT_TOKENS,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, buckets=buckets, candidate_tokens=candidate_tokens, context_tokens=context_tokens
        )
        gym.Wrapper.__init__(self, env)
        self.encoder = FeatureEncoder(
            domain_of(env),
            candidates=_candidates(env, env.action_space),
            buckets=buckets,
            candidate_tokens=candidate_tokens,
            context_tokens=context_tokens,
        )
        self.observation_space = array_space(self.encoder)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, IntArray], dict[str, Any]]:
        """Reset the environment and encode its first state."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._encode(info), info

    def step(self, action: Any) -> tuple[dict[str, IntArray], Any, bool, bool, dict[str, Any]]:
        """Take a step and encode the state it leads to."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._encode(info), reward, terminated, truncated, info

    def _encode(self, info: Mapping[str, Any]) -> dict[str, IntArray]:
        return self.encoder.encode(info["instruction"], info["state"], info["candidate_actions"])


class VectorTextArrays(VectorWrapper[dict[str, IntArray], Any, Any, Any, Any]):
    """Vector twin of `TextArrays`; "final_obs" of ended episodes is encoded too.

    Args:
        env: A vector environment in a `VectorCandidateActions`.
        buckets: Size of the hashed vocabulary.
        candidate_tokens: Most tokens of a candidate.
        context_tokens: Most tokens of instruction and state.

    Raises:
        TypeError: There is no `VectorCandidateActions` below.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        buckets: int = BUCKETS,
        candidate_tokens: int = CANDIDATE_TOKENS,
        context_tokens: int = CONTEXT_TOKENS,
    ) -> None:
        super().__init__(env)
        self.encoder = FeatureEncoder(
            domain_of(env),
            candidates=_candidates(env, env.single_action_space),
            buckets=buckets,
            candidate_tokens=candidate_tokens,
            context_tokens=context_tokens,
        )
        self.single_observation_space = array_space(self.encoder)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._arrays = self._empty()

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, IntArray], dict[str, Any]]:
        """Reset the environments; those that were not reset keep their last observation."""
        _, infos = self.env.reset(seed=seed, options=options)
        return self._encode(infos), infos

    def step(self, actions: Any) -> tuple[dict[str, IntArray], Any, Any, Any, dict[str, Any]]:
        """Step the environments and encode the states that they are in."""
        _, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_info" in infos:
            infos = {**infos, "final_obs": self._finals(infos)}
        return self._encode(infos), rewards, terminations, truncations, infos

    def _empty(self) -> dict[str, IntArray]:
        encoder, n = self.encoder, self.num_envs
        return {
            "candidates": np.zeros((n, encoder.candidates, encoder.candidate_tokens), dtype=np.int16),
            "context": np.zeros((n, encoder.context_tokens), dtype=np.int16),
        }

    def _encode(self, infos: Mapping[str, Any]) -> dict[str, IntArray]:
        shown = np.asarray(infos.get("_state", np.zeros(self.num_envs, dtype=np.bool_)))
        # New arrays every step: a trainer keeps the ones that it was given.
        arrays = self._empty() if shown.all() else {key: value.copy() for key, value in self._arrays.items()}
        states, instructions, candidates = infos["state"], infos["instruction"], infos["candidate_actions"]
        for i in np.flatnonzero(shown):
            self.encoder.encode_into(
                arrays["candidates"][i],
                arrays["context"][i],
                instructions[i],
                {name: values[i] for name, values in states.items() if name[0] != "_"}
                if isinstance(states, Mapping)
                else states[i],
                candidates[i],
                slot=int(i),
            )
        self._arrays = arrays
        return arrays

    def _finals(self, infos: Mapping[str, Any]) -> Any:
        finals = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(infos["_final_info"]):
            last = info_of(infos["final_info"], int(i))
            finals[i] = self.encoder.encode(last["instruction"], last["state"], last["candidate_actions"], slot=int(i))
        return finals


def _candidates(env: Any, action_space: spaces.Space[Any]) -> int:
    if not isinstance(action_space, spaces.Discrete):
        vector = "Vector" if isinstance(env, VectorEnv) else ""
        raise TypeError(
            f"{vector}TextArrays describes the candidates of {vector}CandidateActions, which is not below it: use "
            f"{vector}TextArrays({vector}CandidateActions(env))"
        )
    return int(action_space.n)
