"""Gymnasium environments: dreamt, dreamt by the dozen, and real."""

from dreamgym_envs.envs.dream import DreamEnv
from dreamgym_envs.envs.real import RealEnv
from dreamgym_envs.envs.snapshot import Snapshot, restore
from dreamgym_envs.envs.vector import DreamVectorEnv

__all__ = ["DreamEnv", "DreamVectorEnv", "RealEnv", "Snapshot", "restore"]
