"""The real ALFWorld behind the domain's contract: actions in, abstract states out."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.alfworld import text
from dreamgym_envs.domains.alfworld.engine import AlfworldGame, Truth
from dreamgym_envs.domains.alfworld.games import find_games

_PUT = re.compile(r"put (?P<object>.+?) in/on (?P<receptacle>.+)")


class AlfworldEngine:
    """ALFWorld's engine, one episode at a time; an `Engine` of domains/base.

    Args:
        games: None for generated houses, "official" for the games of $ALFWORLD_DATA, or a folder with official games.
        split: "train", "valid" or "test" of the generated houses; "train", "valid_seen" or "valid_unseen" of the
            official games.
        count: Most games; all of the split by default.
        lists_commands: See `AlfworldGame`; nothing here reads the list, so recordings do without.

    Raises:
        ImportError: The extra "alfworld" is not installed.
        FileNotFoundError: Official games are asked for and not there.
        ValueError: There is no such split.

    Example:
        >>> engine = AlfworldEngine(split="test")                   # doctest: +SKIP
        >>> task = engine.reset(np.random.default_rng(0), "test-000001")  # doctest: +SKIP
        >>> state, reward, terminated = engine.step("go to desk 1") # doctest: +SKIP
    """

    def __init__(
        self,
        games: str | Path | None = None,
        split: str = "test",
        count: int | None = None,
        lists_commands: bool = False,
    ) -> None:
        self._games = find_games(games, split, count)
        self._play = AlfworldGame(lists_commands=lists_commands)
        self._loaded: str | None = None
        self._state: State | None = None
        self._over = False

    @property
    def task_ids(self) -> Sequence[str]:
        """Ids of the games that `reset` draws from and accepts."""
        return self._games.ids

    def reset(self, rng: np.random.Generator, task_id: str | None = None) -> Task:
        """Start the given game, or one drawn with `rng`.

        Raises:
            ValueError: There is no such game.
        """
        if task_id is None:
            task_id = self._games.ids[int(rng.integers(len(self._games.ids)))]
        game = self._games.load(task_id)
        if task_id != self._loaded:
            self._loaded = None
            self._play.load(game.data)
            self._loaded = task_id
        observation = self._play.reset()
        self._state = text.initial_state(observation)
        self._over = False
        return Task(
            id=task_id,
            instruction=text.instruction(observation),
            initial=self._state,
            family=game.family,
            metadata=game.metadata,
        )

    def step(self, action: str) -> tuple[State, float, bool]:
        """Take an action; return the next state, 1.0 when the goal is reached, and whether the episode is over.

        "put O in/on R", as older ALFWorld data has it, is understood as "move O to R".
        """
        if self._state is None or self._over:
            raise RuntimeError("no episode is running; call reset first")
        old = _PUT.fullmatch(action)
        command = f"move {old['object']} to {old['receptacle']}" if old else action
        answer, won = self._play.step(command)
        self._state = text.observe(self._state, command, answer)
        self._over = won
        return self._state, float(won), won

    def truth(self) -> Truth:
        """Return what is really where; for recording and for players that must know better than the agent."""
        return self._play.truth()

    def close(self) -> None:
        """Free what the engine holds."""
        self._play.close()
        self._state = None
        self._loaded = None
