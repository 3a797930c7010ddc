"""A real environment in the spaces of its dream."""

from typing import Any

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.base import EpisodeEnv, as_domain, check_limit
from dreamgym_envs.envs.episode import Episode
from dreamgym_envs.envs.starts import check_options, named_task

REAL_OPTIONS = ("task_id",)
"""Reset options of a real environment."""


class RealEnv(EpisodeEnv):
    """The domain's engine behind the observation, action and info of its dream.

    States come from the engine's texts through the domain's parser, candidate actions from the state alone, and an
    action that the domain's grammar does not know never reaches the engine: what runs in a dream runs here.

    Reset options: "task_id", one of the engine's tasks.

    Args:
        domain: Name of a domain, or a domain.
        max_episode_steps: Steps after which the environment itself truncates; None leaves that to a TimeLimit, as
            `gym.make` does.
        render_mode: "ansi" or None.
        **engine_options: For `Domain.engine`.

    Raises:
        ImportError: What the engine needs is not installed; the message names the extra.
        ValueError: An unknown domain or render mode.

    Example:
        >>> env = gym.make("DreamGym/ALFWorldReal-v0")
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(info["candidate_actions"][0])
    """

    def __init__(
        self,
        domain: str | Domain,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **engine_options: Any,
    ) -> None:
        domain = as_domain(domain)
        super().__init__(Episode(domain, "real", max_episode_steps=check_limit(max_episode_steps)), render_mode)
        self.engine = domain.engine(**engine_options)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode of the engine."""
        super().reset(seed=seed)
        task_id = named_task(check_options(options, REAL_OPTIONS))
        self.episode.start(self.engine.reset(self.np_random, task_id), self.np_random)
        return self._seen()

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take an action in the engine.

        Raises:
            TypeError: The action is not a string.
            gymnasium.error.ResetNeeded: No episode is running.
        """
        if self.episode.accept(action):
            self.episode.record(action, *self.engine.step(str(action)))
        observation, info = self._seen()
        moment = self.episode.moment
        return observation, moment.reward, moment.terminated, moment.truncated, info

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()
