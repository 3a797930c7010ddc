"""Many dreams at once: one batched prediction a step, whatever the number of environments."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.base import METADATA, as_domain, check_limit, check_render_mode
from dreamgym_envs.envs.dream import as_model
from dreamgym_envs.envs.episode import Episode, action_space, resolve
from dreamgym_envs.envs.infos import batch_infos, object_array
from dreamgym_envs.envs.snapshot import Snapshot
from dreamgym_envs.envs.starts import DREAM_OPTIONS, TaskPool, begin, check_options
from dreamgym_envs.experience.model import ExperienceModel

Seed = int | Sequence[int | None] | None


class DreamVectorEnv(gym.vector.VectorEnv[dict[str, Any], Sequence[str], NDArray[Any]]):
    """Dreamt environments stepped together; what `gym.make_vec("DreamGym/...-v0")` makes.

    Environment i gives the same episodes as a `DreamEnv` seeded with seed + i. Observations, infos, autoreset and the
    reset option "reset_mask" are those of `gymnasium.vector.SyncVectorEnv` over such environments. In NEXT_STEP mode
    steps and resets share the step's one model call; in SAME_STEP mode the resets of a step need a second one.

    Unlike those of `DreamEnv`, observations and infos are not copies: their nested dicts are the states' own, shared
    from step to step. Keep them as long as you like, but do not change them.

    Reset options: "task", "task_id" and "snapshot" as in `DreamEnv`, each one value for all environments or a list
    with one an environment (None: as without the option), and "reset_mask".

    Args:
        domain: Name of a domain, or a domain.
        num_envs: How many environments.
        model: As in `DreamEnv`; asked for all environments at once.
        model_options: As in `DreamEnv`.
        split: As in `DreamEnv`.
        tasks: As in `DreamEnv`.
        max_episode_steps: Steps after which an episode is truncated; None or -1 for no limit.
        autoreset_mode: "NextStep", "SameStep", "Disabled", or the `AutoresetMode`.
        history_length: As in `DreamEnv`.
        validate: As in `DreamEnv`.
        render_mode: "ansi" or None.

    Attributes:
        episodes: The environments' current episodes.
        pool: The tasks that resets draw from.
        model: The experience model.

    Example:
        >>> envs = gym.make_vec("DreamGym/ALFWorld-v0", num_envs=64)
        >>> observations, infos = envs.reset(seed=0)
        >>> actions = [candidates[0] for candidates in infos["candidate_actions"]]
        >>> observations, rewards, terminations, truncations, infos = envs.step(actions)
    """

    def __init__(
        self,
        domain: str | Domain,
        num_envs: int = 1,
        model: str | ExperienceModel = "embedded",
        *,
        model_options: Mapping[str, Any] | None = None,
        split: str = "train",
        tasks: Sequence[str] | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        history_length: int = 8,
        validate: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1")
        self.num_envs = num_envs
        self.domain = as_domain(domain)
        self.render_mode = check_render_mode(render_mode)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**METADATA, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.domain.schema.space()
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.episodes = tuple(
            Episode(
                self.domain,
                "dream",
                max_episode_steps=check_limit(max_episode_steps),
                history_length=history_length,
                validate=validate,
            )
            for _ in range(num_envs)
        )
        self.pool = TaskPool(self.domain, split, tasks)
        self.model = as_model(model, self.domain, model_options)
        self._rngs: list[np.random.Generator | None] = [None] * num_envs
        self._seeds: list[int] = [-1] * num_envs

    # --- random numbers: one generator an environment, as SyncVectorEnv has -------------------------------------------

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The environments' generators."""
        return tuple(map(self._rng, range(self.num_envs)))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds of the environments' generators."""
        return tuple(self._seeds[i] for i in range(self.num_envs) if self._rng(i))

    def _rng(self, i: int, seed: int | None = None) -> np.random.Generator:
        rng = self._rngs[i]
        if rng is None or seed is not None:
            rng, self._seeds[i] = seeding.np_random(seed)
            self._rngs[i] = rng
        return rng

    # --- reset and step -----------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode in every environment, or in those of options["reset_mask"].

        Args:
            seed: Environment i gets seed + i, or item i of a list.
            options: See the class.

        Returns:
            Observations of all environments; infos of those that were reset.
        """
        options = dict(check_options(options, (*DREAM_OPTIONS, "reset_mask")))
        chosen = self._chosen(options.pop("reset_mask", None))
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments; expected one each, or an int")
        per_env = [self._options_of(i, options) for i in range(self.num_envs)]
        for i in chosen:
            rng = self._rng(i, seeds[i])
            begin(self.episodes[i], self.pool, per_env[i], rng, reseeded=seeds[i] is not None)
        resolve(self.model, self.episodes)
        infos = [_info(episode) if i in chosen else None for i, episode in enumerate(self.episodes)]
        return self._observations(), batch_infos(infos)

    def step(
        self, actions: Sequence[str]
    ) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take one action in each environment; those whose episode has ended are reset as the autoreset mode says.

        Raises:
            TypeError: An action is not a string.
            ValueError: There is not one action an environment.
            gymnasium.error.ResetNeeded: An environment has no running episode and nothing resets it.
        """
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise ValueError(f"{actions!r:.60} given for {self.num_envs} environments; expected one action each")
        next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        resetting = [next_step and episode.moment.ended for episode in self.episodes]
        # All checks come before the first step: one bad action must not leave half of the environments a step ahead.
        for episode, action, reset in zip(self.episodes, actions, resetting, strict=True):
            if not reset:
                episode.check(action)
        for i, (episode, action) in enumerate(zip(self.episodes, actions, strict=True)):
            if resetting[i]:
                self._begin(i)
            elif episode.accept(action):
                episode.ask(action)
        resolve(self.model, self.episodes)

        moments = [episode.moment for episode in self.episodes]
        rewards = np.array([moment.reward for moment in moments], dtype=np.float64)
        terminations = np.array([moment.terminated for moment in moments], dtype=np.bool_)
        truncations = np.array([moment.truncated for moment in moments], dtype=np.bool_)
        finals = self._replace_ended() if self.autoreset_mode is AutoresetMode.SAME_STEP else {}
        infos = {**batch_infos(list(map(_info, self.episodes))), **finals}
        return self._observations(), rewards, terminations, truncations, infos

    def _replace_ended(self) -> dict[str, Any]:
        """Start new episodes where one has ended; return what the old ones showed last."""
        ended = [episode.moment.ended for episode in self.episodes]
        if not any(ended):
            return {}
        over = [episode if end else None for episode, end in zip(self.episodes, ended, strict=True)]
        finals = {
            "final_obs": object_array([None if episode is None else _observation(episode) for episode in over]),
            "final_info": batch_infos([None if episode is None else _info(episode) for episode in over]),
            "_final_obs": np.array(ended),
            "_final_info": np.array(ended),
        }
        for i in np.flatnonzero(ended):
            self._begin(int(i))
        resolve(self.model, self.episodes)
        return finals

    def _begin(self, i: int) -> None:
        rng = self._rng(i)
        self.episodes[i].start(self.pool.draw(rng), rng)

    def _chosen(self, mask: Any) -> list[int]:
        """Return the environments to reset; the mask is checked as SyncVectorEnv checks it."""
        if mask is None:
            return list(range(self.num_envs))
        if (
            not isinstance(mask, np.ndarray)
            or mask.dtype != np.bool_
            or mask.shape != (self.num_envs,)
            or not any(mask)
        ):
            raise ValueError(
                f"options['reset_mask'] is {mask!r:.60}; expected a numpy array of {self.num_envs} bools, not all false"
            )
        if not all(mask | [episode.started for episode in self.episodes]):
            raise ResetNeeded("options['reset_mask'] leaves out environments that were never reset; reset all at first")
        return [int(i) for i in np.flatnonzero(mask)]

    def _options_of(self, i: int, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return environment i's own options out of values that are for all, or lists with one an environment."""
        own = {}
        for name, value in options.items():
            if isinstance(value, list | tuple):
                if len(value) != self.num_envs:
                    raise ValueError(f"options[{name!r}] lists {len(value)} values for {self.num_envs} environments")
                value = value[i]
            own[name] = value
        return own

    def _observations(self) -> dict[str, Any]:
        space = self.single_observation_space
        out = cast("dict[str, Any]", create_empty_array(space, self.num_envs))
        return cast("dict[str, Any]", concatenate(space, list(map(_observation, self.episodes)), out))

    # --- snapshots and rendering --------------------------------------------------------------------------------------

    def snapshot(self, index: int) -> Snapshot:
        """Return one environment's current moment; take it up with `dreamgym_envs.envs.restore`."""
        return Snapshot.take(self.domain, self.episodes[index].moment, self._rng(index))

    def render(self) -> tuple[str, ...] | None:
        """Return every environment's state as text, or None without a render mode."""
        if self.render_mode is None:
            gym.logger.warn('nothing to render without a render mode; make the environments with render_mode="ansi"')
            return None
        return tuple(episode.render() for episode in self.episodes)


def _observation(episode: Episode) -> dict[str, Any]:
    return episode.observation(episode.moment.state.public)


def _info(episode: Episode) -> dict[str, Any]:
    return episode.info(episode.moment.state.public)
