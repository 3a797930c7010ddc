"""A Gymnasium vector environment as a Stable-Baselines3 VecEnv.

SB3 has vector environments of its own, made of single environments. A dream is batched natively, one model call for all
environments of a step, and through SB3's own would be called once an environment; this adapter keeps the batch.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from dreamgym_envs.wrappers.infos import info_of


class GymVectorToSB3(VecEnv):
    """Gives a `gymnasium.vector.VectorEnv` in SAME_STEP autoreset the interface of SB3's VecEnv.

    Ended environments report "terminal_observation", "TimeLimit.truncated", "episode" ({"r": return, "l": length}) and
    "is_success" in their info, beside what the ended episode's own info said; SB3 logs the last two by itself. Action
    masks are found by `env_method("action_masks")` and `has_attr`, as sb3-contrib asks for them.

    Args:
        env: The vector environment, wrapped as the trainer needs it; observations are arrays or a dict of arrays.

    Raises:
        ValueError: It does not reset ended environments in the same step.

    Example:
        >>> envs = gym.make_vec("DreamGym/ALFWorld-v0", num_envs=64, autoreset_mode="SameStep")  # doctest: +SKIP
        >>> venv = GymVectorToSB3(VectorTextArrays(VectorCandidateActions(envs)))  # doctest: +SKIP
        >>> MaskablePPO(CandidatePolicy, venv).learn(40_000)  # doctest: +SKIP
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"SB3 expects an ended environment to be reset in the same step, not {mode} as here; make "
                'it with gym.make_vec(..., autoreset_mode="SameStep"), or vector_kwargs={"autoreset_mode": '
                "AutoresetMode.SAME_STEP} where Gymnasium makes the vector"
            )
        self.env = env
        self._actions: Any = None
        self._returns = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, dtype=np.int64)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> VecEnvObs:
        """Reset all environments with the seeds and options set before, and return their observations."""
        kwargs: dict[str, Any] = {}
        if any(seed is not None for seed in self._seeds):
            kwargs["seed"] = list(self._seeds)
        if any(self._options):
            kwargs["options"] = self._options[0]
        observations, infos = self.env.reset(**kwargs)
        self.reset_infos = [info_of(infos, i) for i in range(self.num_envs)]
        self._returns[:] = 0
        self._lengths[:] = 0
        self._reset_seeds()
        self._reset_options()
        return observations  # type: ignore[no-any-return]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Note the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take the step: observations, rewards [n], dones [n] and one info an environment."""
        observations, rewards, terminations, truncations, infos = self.env.step(self._actions)
        dones = np.logical_or(terminations, truncations)
        self._returns += rewards
        self._lengths += 1
        listed = [info_of(infos, i) for i in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            final = listed[i].pop("final_info", {})
            listed[i] = {
                **final,
                "terminal_observation": listed[i].pop("final_obs"),
                "TimeLimit.truncated": bool(truncations[i] and not terminations[i]),
                "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i])},
                "is_success": bool(final.get("success", False)),
            }
            self._returns[i] = 0
            self._lengths[i] = 0
        return observations, np.asarray(rewards, dtype=np.float32), dones, listed

    def close(self) -> None:
        """Close the environments."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the vector environment or a wrapper of it, once an environment asked for.

        Raises:
            AttributeError: None of them has it.
        """
        value = self._find(attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the vector environment; it cannot differ between environments.

        Raises:
            ValueError: Only some of the environments are meant.
        """
        if indices is not None and len(list(self._get_indices(indices))) != self.num_envs:
            raise ValueError(f"{attr_name} belongs to all {self.num_envs} environments together; leave indices out")
        setattr(self.env.unwrapped, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the vector environment, whose result has one item an environment; return those asked for.

        Raises:
            AttributeError: There is no such method.
        """
        results: Sequence[Any] = self._find(method_name)(*method_args, **method_kwargs)
        return [results[i] for i in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Return whether the vector environment is wrapped in this class, once an environment asked for."""
        found = any(isinstance(layer, wrapper_class) for layer in self._layers())
        return [found for _ in self._get_indices(indices)]

    def _layers(self) -> Iterable[Any]:
        layer: Any = self.env
        yield layer
        while layer is not layer.unwrapped:
            layer = layer.env
            yield layer

    def _find(self, name: str) -> Any:
        for layer in self._layers():
            if hasattr(layer, name):
                return getattr(layer, name)
        raise AttributeError(f"neither {self.env.unwrapped} nor a wrapper of it has {name!r}")
