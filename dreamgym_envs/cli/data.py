"""Where commands get real episodes from: a file, or a recording made for the occasion."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dreamgym_envs.cli.console import progress_bar

if TYPE_CHECKING:
    from dreamgym_envs.core.types import Trajectory
    from dreamgym_envs.domains.base import Domain
    from dreamgym_envs.trajectories.record import Plan, Recording


def record_with_bar(
    domain: "Domain", out: Path, episodes: int, plan: "Plan", processes: int, resume: bool
) -> "Recording":
    """Record with a progress bar on stderr; see `trajectories.record.record`."""
    from dreamgym_envs.trajectories.record import record

    with progress_bar("episodes") as bar:
        line = bar.add_task(f"recording {domain.name}", total=episodes, note="")

        def show(report: "Recording") -> None:
            speed = report.transitions / max(report.seconds, 1e-9)
            bar.update(line, completed=report.episodes, note=f"{speed:.0f} transitions/s")

        return record(domain, out, episodes, plan, processes=processes, resume=resume, progress=show)


def read_file(domain: "Domain", path: Path, limit: int | None = None) -> list["Trajectory"]:
    """Return a file's trajectories, every state checked, with a progress bar on stderr.

    Raises:
        FileNotFoundError: There is no such file.
        TrajectoryError: A line is no trajectory of the domain.
    """
    from dreamgym_envs.trajectories.store import read_trajectories

    found: list[Trajectory] = []
    with progress_bar("episodes") as bar:
        line = bar.add_task(f"reading {path.name}", total=limit, note="")
        for trajectory in read_trajectories(path, domain.schema):
            if limit is not None and len(found) >= limit:
                break
            found.append(trajectory)
            bar.update(line, completed=len(found))
        bar.update(line, total=len(found))
    return found


def held_out_episodes(
    domain: "Domain", data: str, episodes: int, plan: Callable[[dict[str, object]], "Plan"], processes: int | None
) -> list["Trajectory"]:
    """Return real episodes that no shipped model has seen.

    Args:
        domain: The domain.
        data: A name out of `domain.held_out`, recorded now, or a file.
        episodes: How many episodes.
        plan: From options of the engine to what is recorded.
        processes: Processes that record; None takes one a core.

    Raises:
        ValueError: `data` is neither.
    """
    if data in domain.held_out:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "held-out.jsonl"
            options = dict(domain.held_out[data])
            record_with_bar(domain, path, episodes, plan(options), processes or os.cpu_count() or 1, resume=False)
            return read_file(domain, path)
    if not Path(data).is_file():
        raise ValueError(f"no data {data!r}; expected {', '.join(domain.held_out)} or a file of trajectories")
    return read_file(domain, Path(data), episodes)
