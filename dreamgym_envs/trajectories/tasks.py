"""The tasks in which dreams start: those of recorded episodes, without the episodes."""

import gzip
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dreamgym_envs.assets import asset
from dreamgym_envs.core.records import from_document, to_document
from dreamgym_envs.core.types import Task, Trajectory

__all__ = ["shipped_tasks", "tasks_file", "write_tasks"]


def tasks_file(domain: str) -> Path:
    """Return the file of tasks that ships for a domain."""
    return asset("tasks", f"{domain}.jsonl.gz")


def write_tasks(path: Path, trajectories: Iterable[Trajectory], split: str = "train") -> int:
    """Write the tasks of episodes, each once, in order of their ids; return how many there are.

    Raises:
        ValueError: There are no episodes; a file that is there stays as it is.
    """
    tasks = {trajectory.task.id: trajectory.task for trajectory in trajectories}
    if not tasks:
        raise ValueError(f"no episodes to take tasks from, {path} is left as it is; record some with `dreamgym record`")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"split": split, **to_document(tasks[key])}, separators=(",", ":")) for key in sorted(tasks)]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    return len(tasks)


@cache
def shipped_tasks(domain: str, split: str) -> tuple[Task, ...]:
    """Return the tasks of a split that ship for a domain.

    Raises:
        FileNotFoundError: No tasks ship for it.
        ValueError: There is no such split.
    """
    path = tasks_file(domain)
    if not path.is_file():
        raise FileNotFoundError(f"no tasks at {path}; write them with `dreamgym tasks {domain} --data EPISODES`")
    documents = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    splits = sorted({document["split"] for document in documents})
    if split not in splits:
        raise ValueError(f"no split {split!r} of {domain}'s tasks; there is {', '.join(splits)}")
    return tuple(
        from_document(Task, {key: value for key, value in document.items() if key != "split"})
        for document in documents
        if document["split"] == split
    )
