"""Success of an agent in an environment named by its id: what a dream is worth is seen in the real one.

    evaluate("DreamGym/ALFWorldReal-v0", "runs/dream", episodes=100, env_options={"split": "valid"})

Tasks are drawn without replacement until all have been played. The same call gives the same episodes, whatever the
number of environments and processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dreamgym_envs.agents.agent import CandidateAgent
from dreamgym_envs.evaluation.episodes import EpisodeResult, Job
from dreamgym_envs.evaluation.statistics import Interval, wilson_interval


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well an agent does in an environment.

    Attributes:
        env: The environment's id.
        agent: The agent's name or directory.
        episodes: How many were played.
        success: Success rate; a success is full reward.
        ci95: Wilson's 95 % interval of it.
        mean_return: Mean return.
        mean_length: Mean number of steps.
        by_family: For each task family its "episodes", "success" and "mean_return".
        false_successes: Successes whose last state does not satisfy the goal by the domain's rule.
        results: The episodes, in order.
    """

    env: str
    agent: str
    episodes: int
    success: float
    ci95: Interval
    mean_return: float
    mean_length: float
    by_family: Mapping[str, Mapping[str, float]]
    false_successes: int
    results: tuple[EpisodeResult, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the single episodes, as plain data."""
        document = asdict(self)
        del document["results"]
        return {**document, "ci95": list(self.ci95)}


def evaluate(
    env_id: str,
    agent: str | Path | CandidateAgent = "random",
    episodes: int = 100,
    seed: int = 0,
    *,
    num_envs: int | None = None,
    processes: int | None = None,
    env_options: Mapping[str, Any] | None = None,
    temperature: float | None = None,
    progress: bool = True,
) -> Evaluation:
    """Let an agent play, and report how often it succeeds.

    Args:
        env_id: For example "DreamGym/ALFWorldReal-v0".
        agent: "random", "expert", "noisy", the directory of a trained agent, or the agent itself.
        episodes: How many to play.
        seed: Of tasks, environments and the agent's choices.
        num_envs: Dreams side by side; None takes 64.
        processes: For an environment that cannot be batched, such as a real engine; None takes one a core.
        env_options: Keyword arguments of the environment, such as {"split": "valid"}.
        temperature: Of a trained agent's choices; None keeps its own, 0 always takes its best candidate.
        progress: Whether to show a progress bar on stderr.

    Raises:
        ValueError: No episodes, or an unknown environment.
        AgentError: The directory holds no agent, or one of another domain.

    Example:
        >>> evaluate("DreamGym/ALFWorldReal-v0", "expert", episodes=100).success  # doctest: +SKIP
        0.99
    """
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; expected at least 1")
    job = Job(env_id, agent, episodes, seed, dict(env_options or {}), temperature)
    bar = Progress(
        TextColumn("evaluating"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        disable=not progress,
    )
    results: list[EpisodeResult] = []
    with bar:
        row = bar.add_task("evaluating", total=episodes, note="")
        for result in job.play(num_envs=num_envs, processes=processes):
            results.append(result)
            rate = sum(found.success for found in results) / len(results)
            bar.update(row, advance=1, note=f"success {rate:.0%}")
    name = "agent" if isinstance(agent, CandidateAgent) else str(agent)
    return summarise(env_id, name, sorted(results, key=lambda found: found.number))


def summarise(env: str, agent: str, results: Sequence[EpisodeResult]) -> Evaluation:
    """Return the evaluation that these episodes make."""
    successes = sum(result.success for result in results)
    families: dict[str, list[EpisodeResult]] = {}
    for result in results:
        families.setdefault(result.family, []).append(result)
    return Evaluation(
        env=env,
        agent=agent,
        episodes=len(results),
        success=_success(results),
        ci95=wilson_interval(successes, len(results)),
        mean_return=_mean_return(results),
        mean_length=float(np.mean([result.length for result in results])),
        by_family={
            family: {"episodes": len(found), "success": _success(found), "mean_return": _mean_return(found)}
            for family, found in sorted(families.items())
        },
        false_successes=sum(result.success and not result.satisfied for result in results),
        results=tuple(results),
    )


def _success(results: Sequence[EpisodeResult]) -> float:
    return sum(result.success for result in results) / len(results)


def _mean_return(results: Sequence[EpisodeResult]) -> float:
    return float(np.mean([result.episode_return for result in results]))
