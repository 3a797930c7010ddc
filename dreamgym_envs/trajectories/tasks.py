"""The tasks in which dreams start: those of recorded episodes, without the episodes, or of the real environment."""

import gzip
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dreamgym_envs.assets import asset
from dreamgym_envs.core.records import from_document, to_document
from dreamgym_envs.core.types import Task

if TYPE_CHECKING:
    from dreamgym_envs.domains.base import Engine

__all__ = ["real_tasks", "shipped_tasks", "tasks_file", "write_tasks"]


def tasks_file(domain: str) -> Path:
    """Return the file of tasks that ships for a domain."""
    return asset("tasks", f"{domain}.jsonl.gz")


def real_tasks(engine: "Engine", count: int | None = None, seed: int = 0) -> Iterator[Task]:
    """Yield tasks of the real environment, which is reset for each.

    Args:
        engine: The real environment.
        count: Most tasks, drawn without replacement; None takes all.
        seed: Of the draw, and of what a reset leaves to chance.
    """
    rng = np.random.default_rng(seed)
    for place in rng.permutation(len(engine.task_ids))[:count]:
        yield engine.reset(rng, engine.task_ids[int(place)])


def write_tasks(path: Path, tasks: Iterable[Task], split: str = "train") -> int:
    """Write tasks, each once, in order of their ids; return how many there are.

    Raises:
        ValueError: There are no tasks; a file that is there stays as it is.
    """
    found = {task.id: task for task in tasks}
    if not found:
        raise ValueError(f"no tasks to write, {path} is left as it is; record episodes with `dreamgym record`")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"split": split, **to_document(found[key])}, separators=(",", ":")) for key in sorted(found)]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    return len(found)


@cache
def shipped_tasks(domain: str, split: str) -> tuple[Task, ...]:
    """Return the tasks of a split that ship for a domain.

    Raises:
        FileNotFoundError: No tasks ship for it.
        ValueError: There is no such split.
    """
    path = tasks_file(domain)
    if not path.is_file():
        raise FileNotFoundError(
            f"no tasks at {path}; write those of episodes with `dreamgym tasks {domain} --data EPISODES`, "
            f"or those of the real environment with `dreamgym tasks {domain} --real COUNT`"
        )
    documents = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    splits = sorted({document["split"] for document in documents})
    if split not in splits:
        raise ValueError(f"no split {split!r} of {domain}'s tasks; there is {', '.join(splits)}")
    return tuple(
        from_document(Task, {key: value for key, value in document.items() if key != "split"})
        for document in documents
        if document["split"] == split
    )
