"""Real episodes on disk: how they are stored, and how they are recorded."""

from importlib import resources
from pathlib import Path

__all__ = ["shipped_trajectories"]


def shipped_trajectories(domain: str) -> Path:
    """Return the file of offline trajectories that ships for a domain."""
    return Path(str(resources.files("dreamgym_envs.assets"))) / "trajectories" / f"{domain}.jsonl.gz"
