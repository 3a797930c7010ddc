"""Recording: players in the real environment, episode after episode, into a trajectory file.

Episode i is a function of the seed and i alone: which player, which task, every random number. So an interrupted
recording goes on where it stopped, and the number of processes changes nothing but the time. Episodes are written as
they come in and, once all are there, put in order; the finished file is the same, however it came about.
"""

import json
import math
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from dreamgym_envs.core.types import JSON, Step, Trajectory, freeze, thaw
from dreamgym_envs.domains.base import Domain, Engine
from dreamgym_envs.trajectories.store import TrajectoryWriter, read_lines, replace_lines

__all__ = ["Plan", "Recording", "RecordingError", "play_episode", "record"]

EPISODE, SEED, PLAN = "episode", "seed", "plan"
"""Keys of an episode's number, its recording's seed and the rest of its plan in a trajectory's metadata."""


class RecordingError(RuntimeError):
    """A recording that cannot go on; what was recorded stays, and `resume` goes on from it."""


@dataclass(frozen=True)
class Plan:
    """What is recorded: everything that an episode depends on, apart from its number.

    Attributes:
        players: Kind of player (see `Domain.player`) to its share of the episodes; shares need not sum to one.
        seed: Seed of the recording.
        max_steps: Steps after which an episode is cut.
        repeats: Episodes in a row that play one task, for engines in which starting another one is slow.
        options: Keyword arguments of `Domain.engine`.
    """

    players: Mapping[str, float]
    seed: int
    max_steps: int
    repeats: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not are_shares(self.players.values()):
            raise ValueError(
                f"a mixture gives players shares above zero, such as expert=3,random=1; got {self.players}"
            )
        if self.max_steps < 1 or self.repeats < 1:
            raise ValueError(f"max_steps and repeats are {self.max_steps} and {self.repeats}; expected at least 1")

    @property
    def document(self) -> dict[str, JSON]:
        """What an episode keeps of its plan, so that a recording goes on by no other: all but the seed."""
        parts = {
            "players": {kind: float(share) for kind, share in sorted(self.players.items())},
            "max_steps": self.max_steps,
            "repeats": self.repeats,
            "options": dict(sorted(self.options.items())),
        }
        return {name: freeze(value) for name, value in json.loads(json.dumps(parts, default=str)).items()}


def are_shares(numbers: Collection[float]) -> bool:
    """Return whether numbers can share episodes out among players: none below zero, a finite sum above it."""
    return all(number >= 0 for number in numbers) and 0 < sum(numbers) < math.inf


@dataclass
class Recording:
    """How far a recording is.

    Attributes:
        episodes: Episodes in the file.
        resumed: Those of them that were there before.
        transitions: Transitions recorded in this run.
        successes: Episodes of this run that succeeded.
        by_player: Episodes of this run by kind of player.
        seconds: Seconds that this run has taken.
        repaired: Bytes of a torn last line that were cut off.
    """

    episodes: int = 0
    resumed: int = 0
    transitions: int = 0
    successes: int = 0
    by_player: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    repaired: int = 0


def play_episode(domain: Domain, engine: Engine, plan: Plan, index: int, task_id: str | None = None) -> Trajectory:
    """Play episode `index` of a plan in the real environment.

    An action outside the domain's grammar never reaches the engine; it is rejected as in every environment: failure
    feedback, nothing else changed, no reward.

    Args:
        domain: Whose grammar and players.
        engine: The real environment.
        plan: Who plays, and how long.
        index: Number of the episode.
        task_id: The task to play; None draws one.
    """
    chance, player_chance = (
        np.random.default_rng(child) for child in np.random.SeedSequence([plan.seed, index]).spawn(2)
    )
    task_chance = np.random.default_rng([plan.seed, index // plan.repeats, 1])  # the same for all of a task's episodes
    kinds = sorted(kind for kind, share in plan.players.items() if share > 0)
    shares = np.array([plan.players[kind] for kind in kinds], dtype=np.float64)
    kind = kinds[int(chance.choice(len(kinds), p=shares / shares.sum()))]
    task = engine.reset(task_chance, task_id)
    player = domain.player(kind)
    player.reset(task, player_chance)
    state = task.initial
    steps: list[Step] = []
    while len(steps) < plan.max_steps and not (steps and steps[-1].terminated):
        action = player.act(state)
        if domain.parse(action) is None:
            state, reward, terminated = domain.rejection(state), 0.0, False
        else:
            state, reward, terminated = engine.step(action)
        steps.append(Step(action, state, float(reward), bool(terminated)))
    return Trajectory(task, tuple(steps), "real", kind, {EPISODE: index, SEED: plan.seed, PLAN: plan.document})


def record(
    domain: Domain,
    out: str | Path,
    episodes: int,
    plan: Plan,
    *,
    processes: int = 1,
    resume: bool = False,
    progress: Callable[[Recording], None] | None = None,
) -> Recording:
    """Record episodes 0 to `episodes` - 1 of a plan.

    Args:
        domain: The domain. Its class must be importable and take no arguments if `processes` is above 1.
        out: A `.jsonl` or `.jsonl.gz` file.
        episodes: How many episodes the file is to hold.
        plan: What is recorded.
        processes: Processes that play, each with an engine of its own; 1 plays in this one.
        resume: Go on with an existing file, of the same plan. An episode that was in flight is played again.
        progress: Called after every episode.

    Returns:
        What this run has done.

    Raises:
        FileExistsError: The file is there and `resume` is False.
        RecordingError: An episode failed; the others are in the file.
    """
    out = Path(out)
    if out.exists() and not resume:
        raise FileExistsError(f"{out} is there; go on with it with --resume, or choose another --out")
    fresh = not out.exists()
    started = time.monotonic()
    with _removed_if_empty(out, fresh), TrajectoryWriter(out, domain.schema) as writer:
        done = _numbers(out, plan)
        report = Recording(episodes=len(done), resumed=len(done), repaired=writer.repaired)
        missing = [index for index in range(episodes) if index not in set(done)]
        with closing(_played(domain, plan, missing, processes)) as played:
            for trajectory in played:
                writer.append(trajectory)
                done.append(int(trajectory.metadata[EPISODE]))
                report.episodes += 1
                report.transitions += len(trajectory.steps)
                report.successes += trajectory.success
                report.by_player[trajectory.player] = report.by_player.get(trajectory.player, 0) + 1
                report.seconds = time.monotonic() - started
                if progress is not None:
                    progress(report)
    if done != sorted(done):
        replace_lines(out, lambda: [line for _, line in sorted(zip(done, read_lines(out), strict=True))])
    return report


@contextmanager
def _removed_if_empty(path: Path, fresh: bool) -> Iterator[None]:
    """Leave no file behind that a recording made and wrote no episode to: it would stand in the way of the next one."""
    try:
        yield
    finally:
        if fresh and path.is_file() and not any(read_lines(path)):
            path.unlink()


def _numbers(path: Path, plan: Plan) -> list[int]:
    """Return the numbers of the episodes in a file, in its order; refuse those of another plan."""
    numbers = []
    for place, line in enumerate(read_lines(path), start=1):
        try:
            metadata = json.loads(line)["metadata"]
            numbers.append(int(metadata[EPISODE]))
            seed, other = metadata[SEED], metadata.get(PLAN, plan.document)  # older files have the seed alone
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingError(
                f"{path}, line {place} is no recorded episode; a recording goes on only from its own file"
            ) from error
        if seed != plan.seed:
            raise RecordingError(f"{path} was recorded with --seed {seed}; go on with that, or choose another --out")
        for name, value in plan.document.items():
            if other.get(name) != thaw(value):
                raise RecordingError(
                    f"{path} was recorded with {name} {json.dumps(other.get(name))}, not {json.dumps(thaw(value))}; "
                    "go on with the same, or choose another --out"
                )
    return numbers


def _played(domain: Domain, plan: Plan, indices: list[int], processes: int) -> Generator[Trajectory]:
    """Yield the episodes in the order in which they end."""
    # With several processes too: bad options and missing extras are to be told here, once, and not by every process.
    engine = domain.engine(**plan.options)
    try:
        if processes <= 1:
            for index in indices:
                yield _guarded(domain, engine, plan, index)
            return
    finally:
        engine.close()
    groups = deque(list(group) for _, group in groupby(indices, lambda index: index // plan.repeats))
    players = [_Process(type(domain), plan) for _ in range(min(processes, len(groups)))]
    try:
        for player in players:
            player.play(groups.popleft())
        while busy := {player.pipe: player for player in players if player.left}:
            for pipe in wait(list(busy)):
                player = busy[pipe]  # type: ignore[index]
                yield player.episode()
                if not player.left and groups:
                    player.play(groups.popleft())
    finally:
        for player in players:
            player.close()


def _guarded(domain: Domain, engine: Engine, plan: Plan, index: int) -> Trajectory:
    try:
        return play_episode(domain, engine, plan, index)
    except Exception as error:
        raise RecordingError(f"episode {index} failed: {type(error).__name__}: {error}") from error


class _Process:
    """A playing process: takes groups of episodes of one task, gives back every episode as it ends.

    Attributes:
        pipe: To the process.
        left: Episodes that it is still to give back.
    """

    def __init__(self, domain: type[Domain], plan: Plan) -> None:
        # Spawned, not forked: this process may have threads (torch, NumPy), which a fork would leave half done.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.left = 0
        self._process = context.Process(target=_serve, args=(theirs, domain, plan), daemon=True)
        self._process.start()
        theirs.close()

    def play(self, indices: list[int]) -> None:
        self.left = len(indices)
        self.pipe.send(indices)

    def episode(self) -> Trajectory:
        try:
            answer = self.pipe.recv()
        except EOFError:
            self._process.join()
            raise RecordingError(
                f"a playing process died (exit code {self._process.exitcode}; out of memory?); "
                "go on with --resume and fewer --processes"
            ) from None
        if isinstance(answer, RecordingError):
            raise answer
        self.left -= 1
        trajectory: Trajectory = answer
        return trajectory

    def close(self) -> None:
        self._process.terminate()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection, domain_class: type[Domain], plan: Plan) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its processes
    domain = domain_class()
    engine = domain.engine(**plan.options)
    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        while True:
            for index in pipe.recv():
                try:
                    pipe.send(_guarded(domain, engine, plan, index))
                except RecordingError as error:
                    pipe.send(error)
                    return
