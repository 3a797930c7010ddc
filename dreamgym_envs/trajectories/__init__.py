"""Real episodes on disk: how they are stored, and how they are recorded."""

from pathlib import Path

from dreamgym_envs.assets import asset

__all__ = ["shipped_trajectories"]


def shipped_trajectories(domain: str) -> Path:
    """Return the file of offline trajectories that ships for a domain."""
    return asset("trajectories", f"{domain}.jsonl.gz")
