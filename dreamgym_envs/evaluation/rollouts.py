"""Players in a dream: many episodes at once, each on its own task and its own random numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dreamgym_envs.core.types import State, Step, Task, Trajectory
from dreamgym_envs.domains.base import Domain, Player
from dreamgym_envs.envs.episode import Episode, resolve
from dreamgym_envs.experience.model import ExperienceModel

__all__ = ["Start", "dream_rollouts"]


@dataclass(frozen=True, slots=True)
class Start:
    """Who is to play what.

    Attributes:
        task: The task, with its real initial state.
        player: Kind of player; see `Domain.player`.
    """

    task: Task
    player: str


def dream_rollouts(
    domain: Domain,
    model: ExperienceModel,
    starts: Sequence[Start],
    max_steps: int,
    *,
    seed: int = 0,
    batch_size: int = 64,
    progress: Callable[[int], None] | None = None,
) -> list[Trajectory]:
    """Return one dreamt episode a start.

    Args:
        domain: Whose tasks and players.
        model: Who plays the environment.
        starts: Tasks and players.
        max_steps: Steps after which an episode is cut.
        seed: Episode i depends on the seed, i and its start alone, not on the batch.
        batch_size: Episodes that run at once, with one call of the model a step.
        progress: Called with the number of finished episodes.
    """
    found: list[Trajectory] = []
    for first in range(0, len(starts), batch_size):
        runs = [_Run(domain, start, max_steps, seed, first + i) for i, start in enumerate(starts[first:][:batch_size])]
        resolve(model, [run.episode for run in runs])
        for run in runs:
            run.ready()
        while open_ := [run for run in runs if not run.ended]:
            for run in open_:
                run.act()
            resolve(model, [run.episode for run in open_])
            for run in open_:
                run.take_note()
            if progress is not None:
                progress(len(found) + sum(run.ended for run in runs))
        found += [run.trajectory() for run in runs]
    return found


class _Run:
    """An episode, who plays it, and what has happened so far."""

    def __init__(self, domain: Domain, start: Start, max_steps: int, seed: int, index: int) -> None:
        dream, play = np.random.SeedSequence([seed, index]).spawn(2)
        self.start = start
        self.index = index
        self.episode = Episode(domain, "dream", max_episode_steps=max_steps, history_length=8)
        self.episode.start(start.task, np.random.default_rng(dream))
        self._player: Player = domain.player(start.player)
        self._chance = np.random.default_rng(play)
        self._action = ""
        self._steps: list[Step] = []

    @property
    def ended(self) -> bool:
        return self.episode.moment.ended

    def ready(self) -> None:
        self.task = replace(self.start.task, initial=self.episode.moment.state)
        self._player.reset(self.start.task, self._chance)

    def act(self) -> None:
        # Players see what agents see: not what the model has committed to.
        self._action = self._player.act(State(self.episode.moment.state.public))
        if self.episode.accept(self._action):
            self.episode.ask(self._action)

    def take_note(self) -> None:
        moment = self.episode.moment
        self._steps.append(Step(self._action, moment.state, moment.reward, moment.terminated, moment.reasoning))

    def trajectory(self) -> Trajectory:
        metadata = {"episode": self.index, "failed_start": bool(self.episode.failed_starts)}
        return Trajectory(self.task, tuple(self._steps), "dream", self.start.player, metadata)
