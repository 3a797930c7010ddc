"""ALFWorld."""

from dreamgym_envs.domains.alfworld.domain import ALFWorld

__all__ = ["ALFWorld"]
