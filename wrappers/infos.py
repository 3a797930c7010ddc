"""What wrappers ask of environments, single or many: one environment's info out of a batch, and the domain."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv

from dreamgym_envs.domains import get_domain
from dreamgym_envs.domains.base import Domain


def info_of(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return one environment's info out of a vector environment's infos; the inverse of `VectorEnv._add_info`.

    Numbers and flags come out as plain Python values.

    Example:
        >>> info_of({"success": np.array([True, False]), "_success": np.array([True, False])}, 0)
        {'success': True}
        >>> info_of({"success": np.array([True, False]), "_success": np.array([True, False])}, 1)
        {}
    """
    info: dict[str, Any] = {}
    for key, values in infos.items():
        present = infos.get(f"_{key}")
        if present is None or not present[index]:
            continue
        if isinstance(values, Mapping):
            info[key] = info_of(values, index)
        else:
            value = values[index]
            info[key] = value.item() if isinstance(value, np.generic) else value
    return info


def domain_of(env: Any) -> Domain:
    """Return the domain of an environment or vector environment, however it is wrapped.

    Raises:
        TypeError: It is no environment of this package.
    """
    base = env.unwrapped
    if isinstance(base, SyncVectorEnv):
        base = base.envs[0].unwrapped
    domain = getattr(base, "domain", None)
    if isinstance(domain, Domain):
        return domain
    spec = getattr(base, "spec", None)
    name = spec.kwargs.get("domain") if spec is not None else None
    if isinstance(name, str):
        return get_domain(name)
    raise TypeError(f"{env} has no domain; expected an environment such as gym.make('DreamGym/ALFWorld-v0')")
