"""Where games come from: houses of our own, or the official games in a folder."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dreamgym_envs.domains.alfworld.houses import FAMILIES, SPLITS, house
from dreamgym_envs.domains.alfworld.problem import game

SIZES = {"train": 20_000, "valid": 600, "test": 600}
"""Houses that a generated split offers. More can be had from `houses.houses`."""

OFFICIAL_SPLITS = ("valid_seen", "valid_unseen", "valid_train")
"""Splits that only the official games have; "train" is one of theirs too."""


@dataclass(frozen=True, slots=True)
class Game:
    """A game as the engine loads it, with what is known of it beforehand.

    Attributes:
        id: Unique within its source.
        family: Kind of task.
        data: Content of a `game.tw-pddl`.
        metadata: JSON; where the game comes from.
    """

    id: str
    family: str
    data: Mapping[str, Any]
    metadata: Mapping[str, Any]


class Games(Protocol):
    """A list of games."""

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the games, in a fixed order."""
        ...

    def load(self, game_id: str) -> Game:
        """Return a game.

        Raises:
            ValueError: There is no game of that id.
        """
        ...


class GeneratedGames:
    """The houses of one split.

    Args:
        split: "train", "valid" or "test".
        count: How many houses; the split's size by default.

    Raises:
        ValueError: There is no such split.
    """

    def __init__(self, split: str = "test", count: int | None = None) -> None:
        if split not in SPLITS:
            official = ", ".join(OFFICIAL_SPLITS)
            raise ValueError(f"no split {split!r}; generated houses: {', '.join(SPLITS)}; official games: {official}")
        self.ids: Sequence[str] = tuple(
            f"{split}-{number:06d}" for number in range(SIZES[split] if count is None else count)
        )

    def load(self, game_id: str) -> Game:
        """Return the game in a house; any house's id will do, listed or not."""
        found = house(game_id)
        return Game(
            found.id, found.family, game(found), {"room": found.room, "plan": found.plan, "source": "generated"}
        )


class OfficialGames:
    """The games below a folder, as AlfredTWEnv picks them: no movable receptacles, nothing sliced, only solvable ones.

    Args:
        folder: The folder with the splits, one of a split, or their `json_2.1.1`. By default $ALFWORLD_DATA, or the
            place where `alfworld-download` puts them.
        split: Folder of the split, such as "valid_seen".

    Raises:
        FileNotFoundError: The folder is missing or holds no game.
    """

    def __init__(self, folder: str | Path | None = None, split: str = "valid_seen") -> None:
        origin = "games=" if folder is not None else "ALFWORLD_DATA"
        base = Path(folder or os.environ.get("ALFWORLD_DATA") or Path.home() / ".cache" / "alfworld").expanduser()
        candidates = [base / "json_2.1.1" / split, base / split]
        if folder is not None:
            candidates.append(base)
        root = next((path for path in candidates if path.is_dir()), None)
        self._paths = _collect(root) if root is not None else {}
        if not self._paths:
            problem = f"no folder {candidates[0]}" if root is None else f"no playable game below {root}"
            raise FileNotFoundError(
                f"{problem} ({origin} {base}); expected <task>/<trial>/game.tw-pddl with traj_data.json beside it. "
                "Run `alfworld-download` and set ALFWORLD_DATA to where it put the data, "
                "or play generated houses: split='test'."
            )
        self._split = split
        self.ids: Sequence[str] = tuple(self._paths)

    def load(self, game_id: str) -> Game:
        """Read a game."""
        if game_id not in self._paths:
            raise ValueError(f"no official game {game_id!r}; there are {len(self.ids)}, the first is {self.ids[0]!r}")
        path = self._paths[game_id]
        data = json.loads(path.read_text(encoding="utf-8"))
        family = json.loads(path.with_name("traj_data.json").read_text(encoding="utf-8"))["task_type"]
        return Game(game_id, family, data, {"source": "official", "split": self._split})


def _collect(root: Path) -> dict[str, Path]:
    """Return id to path of the playable games below a folder, in the ids' order."""
    found: dict[str, Path] = {}
    for trajectory in sorted(root.rglob("traj_data.json")):
        path = trajectory.with_name("game.tw-pddl")
        name = trajectory.parent.relative_to(root).as_posix()
        if "movable" in name or "Sliced" in name or not path.is_file():
            continue
        try:
            family = json.loads(trajectory.read_text(encoding="utf-8")).get("task_type")
            solvable = json.loads(path.read_text(encoding="utf-8")).get("solvable")
        except (json.JSONDecodeError, AttributeError) as error:
            raise ValueError(f"{trajectory.parent} holds no ALFWorld game: {error}") from error
        if family in FAMILIES and solvable:
            found[name] = path
    return found


def find_games(games: str | Path | None = None, split: str = "test", count: int | None = None) -> Games:
    """Return the games that a user's options ask for.

    Args:
        games: None for generated houses (official games if `split` is one that only those have), "official" for the
            games of $ALFWORLD_DATA, or a folder with official games.
        split: Name of the split.
        count: Most games; all by default.

    Raises:
        ValueError: There is no such split, or no game would be left.
        TypeError: `count` is no whole number.
        FileNotFoundError: Official games are asked for and not there.
    """
    if count is not None and not isinstance(count, int):
        raise TypeError(f"count is {count!r}; expected a whole number of games, or None for all of the split")
    if count is not None and count < 1:
        raise ValueError(f"count is {count}; expected at least 1 game, or None for all of the split")
    if games is None and split not in OFFICIAL_SPLITS:
        return GeneratedGames(split, count)
    found = OfficialGames(None if games in (None, "official") else games, split)
    if count is not None:
        found.ids = found.ids[:count]
    return found
