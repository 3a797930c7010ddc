"""A dream: an environment whose every step is the prediction of an experience model."""

from collections.abc import Mapping, Sequence
from typing import Any

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.base import EpisodeEnv, as_domain, check_limit
from dreamgym_envs.envs.episode import Episode, resolve
from dreamgym_envs.envs.snapshot import Snapshot
from dreamgym_envs.envs.starts import DREAM_OPTIONS, TaskPool, begin, check_options
from dreamgym_envs.experience.model import ExperienceModel


def as_model(model: str | ExperienceModel, domain: Domain, options: Mapping[str, Any] | None = None) -> ExperienceModel:
    """Return the experience model that a string names, or the model itself.

    Raises:
        TypeError: It is neither, or a model comes with options for loading one.
    """
    if isinstance(model, str):
        # Here and not above: registering and subclassing must not cost the import of what loads models.
        from dreamgym_envs.experience import load_model

        return load_model(model, domain, **(options or {}))
    if not isinstance(model, ExperienceModel):
        raise TypeError(f'a model is "embedded", a path or an object with predict(queries), not {model!r:.40}')
    if options:
        raise TypeError(f"model_options {dict(options)} are for loading a model; this one is loaded, leave them out")
    return model


class DreamEnv(EpisodeEnv):
    """One dreamt environment.

    A reset draws a task, and where the domain has hidden things the model commits to them; a step is one prediction.
    An action that is not in the grammar leaves the state as it is, but for the feedback, and costs no prediction. All
    chance, of task and tokens, comes from `np_random`, so `reset(seed=...)` fixes the episodes that follow.

    Reset options: "task_id" (a task of the split), "task" (any `Task`), "snapshot" (a `Snapshot` or its JSON; see
    `dreamgym_envs.envs.restore`).

    Args:
        domain: Name of a domain, or a domain.
        model: What `dreamgym_envs.experience.load_model` takes, or a model. The same string is loaded once a process.
        model_options: Keyword arguments for `load_model`.
        split: Split of the domain's tasks.
        tasks: Ids of the tasks to draw from; None takes the whole split.
        max_episode_steps: Steps after which the environment itself truncates; None leaves that to a TimeLimit, as
            `gym.make` does.
        history_length: Most past steps that a query tells the model of.
        validate: Check every state against the schema. Models that decode under a grammar need no checking.
        render_mode: "ansi" or None.

    Raises:
        ValueError: An unknown domain, split, task or render mode.

    Example:
        >>> env = gym.make("DreamGym/ALFWorld-v0", render_mode="ansi")
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(info["candidate_actions"][0])
    """

    def __init__(
        self,
        domain: str | Domain,
        model: str | ExperienceModel = "embedded",
        *,
        model_options: Mapping[str, Any] | None = None,
        split: str = "train",
        tasks: Sequence[str] | None = None,
        max_episode_steps: int | None = None,
        history_length: int = 8,
        validate: bool = False,
        render_mode: str | None = None,
    ) -> None:
        domain = as_domain(domain)
        episode = Episode(
            domain,
            "dream",
            max_episode_steps=check_limit(max_episode_steps),
            history_length=history_length,
            validate=validate,
        )
        super().__init__(episode, render_mode)
        self.pool = TaskPool(domain, split, tasks)
        self.model = as_model(model, domain, model_options)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; see the class for the options."""
        super().reset(seed=seed)
        begin(self.episode, self.pool, check_options(options, DREAM_OPTIONS), self.np_random, reseeded=seed is not None)
        resolve(self.model, [self.episode])
        return self._seen()

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take an action and dream what comes of it.

        Raises:
            TypeError: The action is not a string.
            gymnasium.error.ResetNeeded: No episode is running.
        """
        if self.episode.accept(action):
            self.episode.ask(action)
        resolve(self.model, [self.episode])
        observation, info = self._seen()
        moment = self.episode.moment
        return observation, moment.reward, moment.terminated, moment.truncated, info

    def snapshot(self) -> Snapshot:
        """Return the current moment with the state of the random numbers; take it up with `restore`."""
        return Snapshot.take(self.domain, self.episode.moment, self.np_random)
