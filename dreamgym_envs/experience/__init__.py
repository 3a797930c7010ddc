"""The learned environment: queries in, predictions out."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from dreamgym_envs.assets import asset
from dreamgym_envs.experience.model import THRESHOLD, ExperienceModel, Prediction, Query

if TYPE_CHECKING:
    from dreamgym_envs.domains.base import Domain

__all__ = ["THRESHOLD", "ExperienceModel", "Prediction", "Query", "embedded_checkpoint", "load_model"]


def embedded_checkpoint(domain: str) -> Path:
    """Return the directory of the checkpoint that ships for a domain."""
    return asset("models", domain)


def load_model(
    spec: str,
    domain: "Domain",
    *,
    backend: str = "auto",
    threads: int | None = None,
    cache: int = 0,
    threshold: float = THRESHOLD,
) -> ExperienceModel:
    """Return the experience model that a string names; the same string gives the same model within a process.

    Args:
        spec: "embedded" for the checkpoint that ships with the package, or the path of a checkpoint directory.
        domain: The domain that it is to play.
        backend: Decoder: "auto", "numpy", "numba" or "torch".
        threads: Threads that share a batch; None takes one a core.
        cache: Most predictions kept for repeated queries; 0 turns the cache off.
        threshold: Probability that reasoning and verdict must have before a reward is paid, in [0, 1].

    Raises:
        CheckpointError: The directory is no checkpoint of this domain.
    """
    return _load(spec, domain, backend, threads, cache, threshold)


@lru_cache(maxsize=16)
def _load(
    spec: str, domain: "Domain", backend: str, threads: int | None, cache: int, threshold: float
) -> ExperienceModel:
    from dreamgym_envs.experience.local import LocalModel

    directory = embedded_checkpoint(domain.name) if spec == "embedded" else Path(spec)
    return LocalModel.load(directory, domain, backend=backend, threads=threads, cache=cache, threshold=threshold)
