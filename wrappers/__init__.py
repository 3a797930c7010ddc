"""Wrappers: single environments and their vector twins, actions by index, text as arrays."""

from dreamgym_envs.wrappers.candidates import CandidateActions, VectorCandidateActions
from dreamgym_envs.wrappers.text import TextArrays, VectorTextArrays

__all__ = ["CandidateActions", "TextArrays", "VectorCandidateActions", "VectorTextArrays"]
