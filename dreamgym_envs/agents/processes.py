"""Environments that cannot be batched, several to a process, behind one vector environment.

A real engine is slow Python that uses one core, and holds far more memory than one environment's worth, so neither one
process (Gymnasium's SyncVectorEnv) nor one process an environment (AsyncVectorEnv) is right: here n environments live
in as many processes as there are cores. Observations and infos travel whole, since Text has no fixed size.
"""

import multiprocessing
import os
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from dreamgym_envs.envs.infos import batch_infos, object_array

Outcome = tuple[Any, float, bool, bool, dict[str, Any], tuple[Any, dict[str, Any]] | None]


class ProcessVectorEnv(VectorEnv[Any, Sequence[Any], NDArray[Any]]):
    """Environments of one id, spread over processes.

    Environment i, seeded with seed + i, gives the episodes that `gym.make(id)` gives with that seed, whatever the
    number of processes. Reset options are one value for all environments or a list with one an environment, as in
    `DreamVectorEnv`, beside Gymnasium's "reset_mask".

    Args:
        env_id: What `gym.make` takes.
        num_envs: How many environments.
        processes: In how many processes; 0 keeps them in this one.
        autoreset_mode: SAME_STEP or DISABLED.
        env_options: Keyword arguments of every environment.

    Raises:
        ValueError: No environments, or an autoreset mode that is not supported.
        RuntimeError: An environment failed in its process; the message has the traceback.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        *,
        processes: int = 0,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
        env_options: Mapping[str, Any] | None = None,
    ) -> None:
        if num_envs < 1 or processes < 0:
            raise ValueError(f"{num_envs} environments in {processes} processes; expected at least 1 and at least 0")
        if autoreset_mode not in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
            raise ValueError(f"autoreset_mode is {autoreset_mode}; expected SAME_STEP or DISABLED")
        self.num_envs = num_envs
        self.autoreset_mode = autoreset_mode
        self.metadata = {"autoreset_mode": autoreset_mode}
        self.spec = gym.spec(env_id)
        share = np.array_split(np.arange(num_envs), max(1, min(processes, num_envs)))
        autoreset = autoreset_mode is AutoresetMode.SAME_STEP
        options = dict(env_options or {})
        self._hosts: list[_Here | _Process] = [
            (_Process if processes else _Here)(env_id, len(part), options, autoreset) for part in share
        ]
        self._share = [[int(i) for i in part] for part in share]
        self.single_observation_space, self.single_action_space, self.render_mode = self._call_one("spaces")
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observed: list[Any] = [None] * num_envs

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments or those of options["reset_mask"]; infos are those of the environments reset."""
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        chosen = np.ones(self.num_envs, dtype=np.bool_) if mask is None else np.asarray(mask)
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        orders: list[tuple[int | None, dict[str, Any]] | None] = [
            (seeds[i], {name: value[i] if isinstance(value, list) else value for name, value in options.items()})
            if chosen[i]
            else None
            for i in range(self.num_envs)
        ]
        infos: list[dict[str, Any] | None] = [None] * self.num_envs
        for i, result in enumerate(self._call("reset", orders)):
            if result is not None:
                self._observed[i], infos[i] = result
        return self._batch(self._observed), batch_infos(infos)

    def step(
        self, actions: Sequence[Any]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Step all environments; in SAME_STEP mode ended ones show the first observation of their next episode."""
        outcomes: list[Outcome] = self._call("step", list(actions))
        observed, rewards, terminations, truncations, infos, restarts = map(list, zip(*outcomes, strict=True))
        finals: dict[str, Any] = {}
        ended = [restart is not None for restart in restarts]
        if any(ended):
            finals = {
                "final_obs": object_array([o if end else None for o, end in zip(observed, ended, strict=True)]),
                "final_info": batch_infos([i if end else None for i, end in zip(infos, ended, strict=True)]),
                "_final_obs": np.array(ended),
                "_final_info": np.array(ended),
            }
            for i, restart in enumerate(restarts):
                if restart is not None:
                    observed[i], infos[i] = restart
        self._observed = observed
        return (
            self._batch(observed),
            np.array(rewards, dtype=np.float64),
            np.array(terminations, dtype=np.bool_),
            np.array(truncations, dtype=np.bool_),
            {**batch_infos(infos), **finals},
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments and end their processes."""
        for host in self._hosts:
            host.close()

    def _call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        for host, part in zip(self._hosts, self._share, strict=True):
            host.send(name, [arguments[i] for i in part])
        return [result for host in self._hosts for result in host.receive()]

    def _call_one(self, name: str) -> Any:
        self._hosts[0].send(name, [])
        return self._hosts[0].receive()

    def _batch(self, observations: Sequence[Any]) -> Any:
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, observations, empty)


def make_vector(
    env_id: str,
    num_envs: int,
    *,
    autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    processes: int | None = None,
    env_options: Mapping[str, Any] | None = None,
) -> VectorEnv[Any, Any, Any]:
    """Return a vector environment of any id: its own batched one where it has one, else a `ProcessVectorEnv`.

    Args:
        env_id: What `gym.make` takes.
        num_envs: How many environments.
        autoreset_mode: SAME_STEP or DISABLED.
        processes: For environments that cannot be batched; None takes one a core.
        env_options: Keyword arguments of the environment.
    """
    options = dict(env_options or {})
    if gym.spec(env_id).vector_entry_point is not None:
        return gym.make_vec(env_id, num_envs=num_envs, autoreset_mode=autoreset_mode.value, **options)
    count = (os.cpu_count() or 1) if processes is None else processes
    return ProcessVectorEnv(env_id, num_envs, processes=count, autoreset_mode=autoreset_mode, env_options=options)


class _Environments:
    """The environments of one process and what can be asked of them."""

    def __init__(self, env_id: str, count: int, options: Mapping[str, Any], autoreset: bool) -> None:
        self.envs = [gym.make(env_id, disable_env_checker=True, **options) for _ in range(count)]
        self.autoreset = autoreset

    def answer(self, name: str, arguments: Sequence[Any]) -> Any:
        if name == "spaces":
            env = self.envs[0]
            return env.observation_space, env.action_space, env.render_mode
        if name == "reset":
            return [
                None if order is None else self._reset(env, *order)
                for env, order in zip(self.envs, arguments, strict=True)
            ]
        return [self._step(env, action) for env, action in zip(self.envs, arguments, strict=True)]

    @staticmethod
    def _reset(env: gym.Env[Any, Any], seed: int | None, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return env.reset(seed=seed, options=options or None)

    def _step(self, env: gym.Env[Any, Any], action: Any) -> Outcome:
        observation, reward, terminated, truncated, info = env.step(action)
        restart = env.reset() if self.autoreset and (terminated or truncated) else None
        return observation, float(reward), bool(terminated), bool(truncated), info, restart

    def close(self) -> None:
        for env in self.envs:
            env.close()


class _Here:
    """Environments of this process."""

    def __init__(self, *arguments: Any) -> None:
        self._environments = _Environments(*arguments)
        self._answer: Any = None

    def send(self, name: str, arguments: Sequence[Any]) -> None:
        self._answer = self._environments.answer(name, arguments)

    def receive(self) -> Any:
        return self._answer

    def close(self) -> None:
        self._environments.close()


class _Process:
    """Environments of a process of their own."""

    def __init__(self, *arguments: Any) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_serve, args=(theirs, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, name: str, arguments: Sequence[Any]) -> None:
        self._pipe.send((name, arguments))

    def receive(self) -> Any:
        try:
            failure, answer = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"a process of environments ended with exit code {self._process.exitcode}") from None
        if failure is not None:
            raise RuntimeError(f"an environment failed in process {self._process.pid}:\n{failure}")
        return answer

    def close(self) -> None:
        if self._process.is_alive():
            self._pipe.send(("close", []))
            self._process.join(timeout=10)
        self._pipe.close()


def _serve(pipe: Connection, arguments: tuple[Any, ...]) -> None:
    environments: _Environments | None = None
    try:
        environments = _Environments(*arguments)
        while True:
            name, given = pipe.recv()
            if name == "close":
                break
            pipe.send((None, environments.answer(name, given)))
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception:
        pipe.send((traceback.format_exc(), None))
    finally:
        if environments is not None:
            environments.close()
        # The parent's exit handlers, inherited by fork, are not this process's to run.
        os._exit(0)
