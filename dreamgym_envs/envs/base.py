"""What a dreamt and a real environment have in common: spaces, the shape of a step's outcome, rendering."""

from typing import Any

import gymnasium as gym

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains import get_domain
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.episode import Episode, action_space

METADATA: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}


def check_render_mode(render_mode: str | None) -> str | None:
    """Return the render mode.

    Raises:
        ValueError: It is neither None nor one of `METADATA["render_modes"]`.
    """
    if render_mode is not None and render_mode not in METADATA["render_modes"]:
        raise ValueError(f"no render mode {render_mode!r}; there are: None, {', '.join(METADATA['render_modes'])}")
    return render_mode


def check_limit(max_episode_steps: int | None) -> int | None:
    """Return the most steps of an episode, None for no limit, which Gymnasium also writes as -1.

    Raises:
        ValueError: The limit is not positive.
    """
    if max_episode_steps is None or max_episode_steps == -1:
        return None
    if max_episode_steps < 1:
        raise ValueError(f"max_episode_steps is {max_episode_steps}; expected at least 1, or None for no limit")
    return max_episode_steps


def as_domain(domain: str | Domain) -> Domain:
    """Return the domain of that name, or the domain itself."""
    return get_domain(domain) if isinstance(domain, str) else domain


class EpisodeEnv(gym.Env[dict[str, Any], str]):
    """An environment of a domain, apart from what makes a step happen.

    Attributes:
        episode: The current episode.
        domain: The domain.
    """

    metadata = METADATA

    def __init__(self, episode: Episode, render_mode: str | None) -> None:
        self.episode = episode
        self.domain = episode.domain
        self.render_mode = check_render_mode(render_mode)
        self.observation_space = self.domain.schema.space()
        self.action_space = action_space()

    @property
    def task(self) -> Task:
        """The task being attempted."""
        return self.episode.moment.task

    @property
    def state(self) -> State:
        """The state now, private part included: for wrappers that record, not for agents."""
        return self.episode.moment.state

    def render(self) -> str | None:
        """Return the state as text, or None without a render mode."""
        if self.render_mode is None:
            gym.logger.warn('nothing to render without a render mode; make the environment with render_mode="ansi"')
            return None
        return self.episode.render()

    def _seen(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return observation and info, which share a copy of the state: the agent may keep and change them."""
        public = self.domain.schema.copy(self.episode.moment.state.public)
        return self.episode.observation(public), self.episode.info(public)
