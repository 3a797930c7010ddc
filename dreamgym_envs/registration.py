"""The environments by id: which domain, dreamt or real, and how many steps an episode may take.

Importing this module registers them with Gymnasium and imports nothing else: environments are strings until somebody
makes one. `gym.make_vec` gives a dream its own vector environment (one batched model call a step); a real one, which
has nothing to batch, Gymnasium's SyncVectorEnv. Engines in processes of their own:

    gym.make_vec("DreamGym/ALFWorldReal-v0", num_envs=4, vectorization_mode="async",
                 vector_kwargs={"shared_memory": False})

without shared memory, which has no place for observations of no fixed size.
"""

from dataclasses import dataclass
from typing import Literal

import gymnasium as gym

__all__ = ["ENVIRONMENTS", "Registration", "register_all"]


@dataclass(frozen=True, slots=True)
class Registration:
    """One row of the table.

    Attributes:
        id: For `gym.make`.
        domain: For `dreamgym_envs.domains.get_domain`.
        kind: "dream": a learned model plays the environment; "real": the engine itself.
        max_episode_steps: Steps after which an episode is truncated; the domain's own number.
    """

    id: str
    domain: str
    kind: Literal["dream", "real"]
    max_episode_steps: int


ENVIRONMENTS = (
    Registration("DreamGym/ALFWorld-v0", "alfworld", "dream", 50),
    Registration("DreamGym/ALFWorldReal-v0", "alfworld", "real", 50),
    Registration("DreamGym/WebShop-v0", "webshop", "dream", 50),
    Registration("DreamGym/WebShopReal-v0", "webshop", "real", 50),
)

_ENTRY_POINTS = {
    "dream": ("dreamgym_envs.envs.dream:DreamEnv", "dreamgym_envs.envs.vector:DreamVectorEnv"),
    "real": ("dreamgym_envs.envs.real:RealEnv", None),
}


def register_all() -> None:
    """Register every environment of the table; a second call changes nothing."""
    for row in ENVIRONMENTS:
        if row.id not in gym.registry:
            entry_point, vector_entry_point = _ENTRY_POINTS[row.kind]
            gym.register(
                row.id,
                entry_point=entry_point,
                vector_entry_point=vector_entry_point,
                max_episode_steps=row.max_episode_steps,
                kwargs={"domain": row.domain},
            )
