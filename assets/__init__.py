"""Files that ship with the package: schemas, checkpoints, offline trajectories, tasks, words."""

from importlib import resources
from pathlib import Path


def asset(*parts: str) -> Path:
    """Return the path of a shipped file or folder.

    Example:
        >>> asset("schemas", "alfworld.json").name
        'alfworld.json'
    """
    return Path(str(resources.files(__name__)), *parts)
