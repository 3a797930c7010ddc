"""Where a reset starts: a task of the domain, drawn or named by the reset's options, or a snapshot."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dreamgym_envs.core.types import Task
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.episode import Episode
from dreamgym_envs.envs.snapshot import as_snapshot

DREAM_OPTIONS = ("task", "task_id", "snapshot")
"""Reset options of a dream."""


class TaskPool:
    """The tasks that resets draw from.

    Args:
        domain: Whose tasks.
        split: Which of its splits.
        ids: Only these tasks of the split, in this order; None takes all.

    Raises:
        ValueError: There is no such split, or no such task in it.
    """

    def __init__(self, domain: Domain, split: str = "train", ids: Sequence[str] | None = None) -> None:
        self.domain = domain
        self.split = split
        self._all = domain.tasks(split)
        self.tasks: Sequence[Task] = self._all if ids is None else tuple(self.find(name) for name in ids)
        if not self.tasks:
            raise ValueError(f"no tasks to start from: {domain.name} has none in split {split!r}, or ids is empty")

    def draw(self, rng: np.random.Generator) -> Task:
        """Return a task drawn with `rng`."""
        return self.tasks[int(rng.integers(len(self.tasks)))]

    def find(self, name: str) -> Task:
        """Return the task of the split with the given id.

        Raises:
            ValueError: There is no such task.
        """
        task = self._by_id.get(name)
        if task is None:
            known = ", ".join(repr(task.id) for task in self._all[:3])
            raise ValueError(
                f"no task {name!r} in split {self.split!r} of {self.domain.name}, which has {len(self._all)}, such as "
                f"{known}; list them with dreamgym_envs.domains.get_domain({self.domain.name!r}).tasks({self.split!r})"
            )
        return task

    def choose(self, options: Mapping[str, Any], rng: np.random.Generator) -> Task:
        """Return the task that the options of a reset name ("task": a Task, "task_id": its id), or draw one."""
        if options.get("task") is not None:
            task = options["task"]
            if not isinstance(task, Task):
                raise TypeError(
                    f"options['task'] is a dreamgym_envs.core.types.Task, not {task!r:.40}; by id: 'task_id'"
                )
            self.domain.schema.validate(task.initial)
            return task
        task_id = named_task(options)
        return self.draw(rng) if task_id is None else self.find(task_id)

    @cached_property
    def _by_id(self) -> dict[str, Task]:
        return {task.id: task for task in self._all}


def begin(
    episode: Episode, pool: TaskPool, options: Mapping[str, Any], rng: np.random.Generator, *, reseeded: bool
) -> None:
    """Start or resume an episode of a dream as the options of a reset say.

    Args:
        episode: The environment's episode.
        pool: Where a task is drawn from, or found by its id.
        options: Some of `DREAM_OPTIONS`.
        rng: The environment's random numbers.
        reseeded: Whether `rng` was seeded for this reset, so that a snapshot's random numbers do not count.
    """
    if options.get("snapshot") is None:
        episode.start(pool.choose(options, rng), rng)
        return
    snapshot = as_snapshot(options["snapshot"])
    moment = snapshot.moment_in(episode.domain)
    if not reseeded:
        try:
            rng.bit_generator.state = snapshot.rng
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            kind = type(rng.bit_generator).__name__
            raise ValueError(f"the snapshot's rng is no state of {kind} ({error}); restore it with a seed") from error
    episode.resume(moment, rng)


def check_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> Mapping[str, Any]:
    """Return the options of a reset, none as an empty mapping.

    Raises:
        TypeError: The options are no mapping.
        ValueError: There is an option that the environment does not know.
    """
    options = {} if options is None else options
    if not isinstance(options, Mapping):
        raise TypeError(f"reset options are a dict with some of: {', '.join(known)}; not {options!r:.40}")
    for name in options:
        if name not in known:
            raise ValueError(f"no reset option {name!r}; there are: {', '.join(known)}")
    return options


def named_task(options: Mapping[str, Any]) -> str | None:
    """Return the task's id that the options of one environment's reset name, if any.

    Raises:
        TypeError: It is no string.
    """
    task_id = options.get("task_id")
    if task_id is not None and not isinstance(task_id, str):
        raise TypeError(
            f"options['task_id'] is a str, such as info['task_id'] of an earlier episode, not {task_id!r:.40}"
        )
    return task_id
