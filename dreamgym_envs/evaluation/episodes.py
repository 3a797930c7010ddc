"""Whole episodes of an actor in an environment named by its id, the same whatever they are run in parallel with.

An episode's task, its environment's seed and its actor's random numbers depend on the evaluation's seed and the
episode's number alone. A dream plays many in one batched vector; an environment that cannot be batched, such as a real
engine, one at a time in each of several processes, so that a slow reset holds up nobody else.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from dreamgym_envs.agents.actors import Actor, make_actor
from dreamgym_envs.agents.agent import CandidateAgent
from dreamgym_envs.agents.processes import make_vector
from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.wrappers.candidates import NO_CANDIDATE
from dreamgym_envs.wrappers.infos import domain_of, info_of

DREAMS = 64
"""Dreams side by side, where the caller does not say."""


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """What came of one episode.

    Attributes:
        number: Which episode of the evaluation.
        task_id: Of the task.
        family: Of the task.
        success: Whether it ended with full reward.
        episode_return: Sum of its rewards.
        length: Its steps.
        satisfied: Whether its last state satisfies the goal by the domain's rule.
    """

    number: int
    task_id: str
    family: str
    success: bool
    episode_return: float
    length: int
    satisfied: bool


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be played, and by whom.

    Attributes:
        env_id: What `gym.make` takes.
        agent: What `make_actor` takes.
        episodes: How many.
        seed: Of tasks, environments and the actor's choices.
        env_options: Keyword arguments of the environment.
        temperature: Overrides a trained agent's own.
    """

    env_id: str
    agent: str | Path | CandidateAgent
    episodes: int
    seed: int = 0
    env_options: Mapping[str, Any] = field(default_factory=dict)
    temperature: float | None = None

    def play(self, *, num_envs: int | None = None, processes: int | None = None) -> Iterator[EpisodeResult]:
        """Yield the episodes in the order in which they end.

        Args:
            num_envs: Dreams side by side; None takes `DREAMS`.
            processes: For environments that cannot be batched; None takes one a core.
        """
        if gym.spec(self.env_id).vector_entry_point is not None:
            return _play_batched(self, min(self.episodes, num_envs or DREAMS))
        count = min(self.episodes, (os.cpu_count() or 1) if processes is None else processes)
        return _play_in_processes(self, count) if count > 1 else _play_here(self)

    def plan(self, ids: Sequence[str]) -> list[str]:
        """Return each episode's task: drawn without replacement until all have been played, then again.

        Raises:
            ValueError: There are no tasks.
        """
        if not ids:
            raise ValueError(f"{self.env_id} with {dict(self.env_options)} has no tasks to play")
        rng = np.random.default_rng(self.seed)
        plan: list[str] = []
        while len(plan) < self.episodes:
            plan += [ids[i] for i in rng.permutation(len(ids))]
        return plan[: self.episodes]

    def env_seed(self, number: int) -> int:
        """Return the seed of an episode's environment."""
        return int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])

    def actor_rng(self, number: int) -> np.random.Generator:
        """Return the random numbers of an episode's actor."""
        return np.random.default_rng([self.seed, number, 1])


class _Run:
    """An episode under way."""

    def __init__(self, number: int, info: dict[str, Any]) -> None:
        self.number = number
        self.info = info
        self.task = Task(info["task_id"], info["instruction"], State(info["state"]), info["task_family"])
        self.episode_return = 0.0
        self.length = 0

    def step(self, info: dict[str, Any], reward: float) -> None:
        self.info = info
        self.episode_return += reward
        self.length += 1

    def result(self, domain: Domain) -> EpisodeResult:
        return EpisodeResult(
            number=self.number,
            task_id=self.task.id,
            family=self.task.family,
            success=bool(self.info["success"]),
            episode_return=self.episode_return,
            length=self.length,
            satisfied=domain.goal_satisfied(self.task, State(self.info["state"])),
        )


def _play_batched(job: Job, n: int) -> Iterator[EpisodeResult]:
    envs = make_vector(job.env_id, n, autoreset_mode=AutoresetMode.DISABLED, env_options=job.env_options)
    try:
        domain = domain_of(envs)
        actor = make_actor(job.agent, domain, job.temperature)
        plan = job.plan([task.id for task in envs.unwrapped.pool.tasks])  # type: ignore[attr-defined]
        waiting = iter(range(job.episodes))
        runs: dict[int, _Run] = {}
        ended = np.ones(n, dtype=np.bool_)
        while True:
            if ended.any():
                runs.update(
                    _start(job, envs, actor, plan, {int(i): next(waiting, None) for i in np.flatnonzero(ended)})
                )
            if not runs:
                return
            # An environment with nothing left to play gets what no grammar knows, on which no prediction is spent.
            actions = [NO_CANDIDATE] * n
            chosen = actor.act(list(runs), [run.info for run in runs.values()])
            for slot, action in zip(runs, chosen, strict=True):
                actions[slot] = action
            _, rewards, terminations, truncations, infos = envs.step(actions)
            ended = terminations | truncations
            for slot, run in list(runs.items()):
                run.step(info_of(infos, slot), float(rewards[slot]))
                if ended[slot]:
                    yield runs.pop(slot).result(domain)
    finally:
        envs.close()


def _start(
    job: Job, envs: Any, actor: Actor, plan: Sequence[str], numbers: Mapping[int, int | None]
) -> dict[int, _Run]:
    """Reset the environments that have ended, to the tasks of the next episodes as far as there are any."""
    n = envs.num_envs
    seeds: list[int | None] = [None] * n
    ids: list[str | None] = [None] * n
    for slot, number in numbers.items():
        if number is not None:
            seeds[slot], ids[slot] = job.env_seed(number), plan[number]
    mask = np.array([slot in numbers for slot in range(n)])
    _, infos = envs.reset(seed=seeds, options={"task_id": ids, "reset_mask": mask})
    runs = {}
    for slot, number in numbers.items():
        if number is not None:
            runs[slot] = _Run(number, info_of(infos, slot))
            actor.begin(slot, runs[slot].task, job.actor_rng(number))
    return runs


def _play_here(job: Job) -> Iterator[EpisodeResult]:
    solo = _Solo(job)
    try:
        yield from map(solo.play, range(job.episodes))
    finally:
        solo.env.close()


def _play_in_processes(job: Job, count: int) -> Iterator[EpisodeResult]:
    pool = ProcessPoolExecutor(count, initializer=_enter, initargs=(job,))
    try:
        for future in as_completed([pool.submit(_play_one, number) for number in range(job.episodes)]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Solo:
    """One environment and its actor."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.env = gym.make(job.env_id, disable_env_checker=True, **job.env_options)
        self.domain = domain_of(self.env)
        self.actor = make_actor(job.agent, self.domain, job.temperature)
        base: Any = self.env.unwrapped
        self.plan = job.plan(base.engine.task_ids)

    def play(self, number: int) -> EpisodeResult:
        _, info = self.env.reset(seed=self.job.env_seed(number), options={"task_id": self.plan[number]})
        run = _Run(number, info)
        self.actor.begin(0, run.task, self.job.actor_rng(number))
        ended = False
        while not ended:
            _, reward, terminated, truncated, info = self.env.step(self.actor.act([0], [run.info])[0])
            run.step(info, float(reward))
            ended = terminated or truncated
        return run.result(self.domain)


_job: Job | None = None
_solo: _Solo | None = None
"""This process's environment, where it is one of several."""


def _enter(job: Job) -> None:
    global _job
    _job = job


def _play_one(number: int) -> EpisodeResult:
    global _solo
    if _solo is None:
        # Not in the initialiser: what fails there never reaches the caller.
        assert _job is not None
        _solo = _Solo(_job)
    return _solo.play(number)
