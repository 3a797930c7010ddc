"""What is kept of a training run: success by task family, returns, what was paid and whether earned, checkpoints.

An agent finds every false reward of a learned environment, so each success that is paid is checked against the goal
rule of the domain. The check measures; training never sees it.
"""

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback

from dreamgym_envs.agents.agent import CandidateAgent
from dreamgym_envs.agents.checkpoint import Checkpoint
from dreamgym_envs.core.types import State, Task

RECENT = 300
"""Episodes whose success is reported as the run's."""


@dataclass(slots=True)
class Tally:
    """Episodes that ended, by task family.

    Attributes:
        outcomes: Family to the successes and episodes of it.
        returned: Sum of the episodes' returns.
        paid: Episodes paid as successes.
        false_paid: Those of them whose last state does not satisfy the goal.
    """

    outcomes: dict[str, tuple[int, int]] = field(default_factory=dict)
    returned: float = 0.0
    paid: int = 0
    false_paid: int = 0

    def add(self, family: str, success: bool, episode_return: float) -> None:
        """Count an episode."""
        self.returned += episode_return
        successes, episodes = self.outcomes.get(family, (0, 0))
        self.outcomes[family] = (successes + success, episodes + 1)

    @property
    def episodes(self) -> int:
        """Episodes in all."""
        return sum(episodes for _, episodes in self.outcomes.values())

    def rate(self) -> float | None:
        """Return the success rate, None without episodes."""
        return sum(successes for successes, _ in self.outcomes.values()) / self.episodes if self.episodes else None

    def mean_return(self) -> float | None:
        """Return the mean return, None without episodes; above the success rate where rewards are graded."""
        return self.returned / self.episodes if self.episodes else None

    def by_family(self) -> dict[str, float]:
        """Return the success rate of each family, by name."""
        return {family: successes / episodes for family, (successes, episodes) in sorted(self.outcomes.items())}


class Recorder(BaseCallback):
    """Watches a run: logs it, audits what it is paid for, saves it.

    Args:
        agent: The agent whose scorer is being trained.
        folder: Where the agent and the logs go.
        steps: Steps of the whole run.
        checkpoint_every: Steps between checkpoints.
        progress: Whether to show a progress bar on stderr.

    Attributes:
        total: All episodes of this call.
    """

    def __init__(self, agent: CandidateAgent, folder: Path, steps: int, checkpoint_every: int, progress: bool) -> None:
        super().__init__()
        self.agent = agent
        self.folder = folder
        self.steps = steps
        self.checkpoint_every = checkpoint_every
        self.total = Tally()
        self._window = Tally()
        self._recent: deque[tuple[str, bool, float]] = deque(maxlen=RECENT)
        self._checkpoint = Checkpoint(folder / "checkpoint")
        self._saved = 0
        self._began = 0.0
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            disable=not progress,
        )
        self._row = self._bar.add_task("training", total=steps, note="")

    def recent(self) -> Tally:
        """Return the last episodes, `RECENT` at most."""
        tally = Tally()
        for family, success, episode_return in self._recent:
            tally.add(family, success, episode_return)
        return tally

    def save(self) -> None:
        """Save the agent as it is, and the state of training with it."""
        agent = self.agent.with_provenance(
            steps=self.num_timesteps,
            success=self.recent().rate(),
            mean_return=self.recent().mean_return(),
            by_family=self.recent().by_family(),
            paid=self.total.paid,
            false_paid=self.total.false_paid,
        )
        self._checkpoint.save(agent, self.model.policy.optimizer, self.num_timesteps)
        agent.save(self.folder)
        self._saved = self.num_timesteps

    def close(self) -> None:
        """Stop the progress bar."""
        self._bar.stop()

    # --- what SB3 calls -----------------------------------------------------------------------------------------------

    def _on_training_start(self) -> None:
        self._saved = self.num_timesteps
        self._began = time.perf_counter()
        self._bar.start()

    def _on_step(self) -> bool:
        for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True):
            if done:
                self._end(info)
        self._bar.update(self._row, completed=min(self.num_timesteps, self.steps))
        return True

    def _on_rollout_start(self) -> None:
        # Between an update and the next roll-out, weights, optimiser and step count belong together.
        if self.num_timesteps - self._saved >= self.checkpoint_every:
            self.save()

    def _on_rollout_end(self) -> None:
        rate = self._window.rate()
        if rate is not None:
            self._bar.update(self._row, note=f"success {rate:.0%}")
        # SB3's losses are those of the update before this roll-out.
        losses = {
            name.removeprefix("train/"): round(float(value), 5)
            for name, value in self.logger.name_to_value.items()
            if name.startswith("train/")
        }
        line = {
            "steps": self.num_timesteps,
            "seconds": round(time.perf_counter() - self._began, 2),
            "episodes": self._window.episodes,
            "success": rate,
            "mean_return": self._window.mean_return(),
            "by_family": self._window.by_family(),
            "paid": self._window.paid,
            "false_paid": self._window.false_paid,
            **losses,
        }
        self._append("progress.jsonl", line)
        self._window = Tally()

    def _end(self, info: Mapping[str, Any]) -> None:
        """Count an episode that ended, and audit it if it was paid."""
        family, success = str(info.get("task_family", "")), bool(info["is_success"])
        episode_return = float(info["episode"]["r"])
        for tally in (self.total, self._window):
            tally.add(family, success, episode_return)
        self._recent.append((family, success, episode_return))
        if not success:
            return
        state = State(info["state"])
        task = Task(info.get("task_id", ""), info["instruction"], state, family)
        satisfied = self.agent.domain.goal_satisfied(task, state)
        for tally in (self.total, self._window):
            tally.paid += 1
            tally.false_paid += not satisfied
        line = {
            "steps": self.num_timesteps,
            "task_id": task.id,
            "family": family,
            "instruction": task.instruction,
            "length": info["episode"]["l"],
            "satisfied": satisfied,
            "state": info["state"],
        }
        self._append("successes.jsonl", line)

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
