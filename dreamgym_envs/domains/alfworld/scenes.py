"""Floor plans: what rooms, receptacles and kinds of objects a house can be made of.

All of it is read from the installed alfworld package: its layouts (where one can stand to reach a receptacle, which
kinds of objects a room has), its constants (what fits where, what can be cleaned or heated) and its goal library.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from dreamgym_envs.domains.alfworld.engine import MISSING_EXTRA

Pose = tuple[int, int, int, int]
"""Where an agent stands: x and z in quarters of a metre, rotation and horizon in degrees."""

ROOMS = ("kitchen", "livingroom", "bedroom", "bathroom")

UNMAPPED: Mapping[str, tuple[int, ...]] = {
    "CoffeeMachine": (1,),
    "Toaster": (1,),
    "StoveBurner": (4,),
    "HandTowelHolder": (1, 1, 2, 2, 4),
    "TowelHolder": (1, 1, 2),
    "ToiletPaperHanger": (1,),
    "LaundryHamper": (1,),
    "GarbageCan": (1,),
    "Toilet": (1,),
    "Safe": (1,),
    "SinkBasin": (1,),
}
"""Receptacles that a layout names without a place to stand, and how many of them there may be."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A receptacle of a floor plan: its kind, its coordinates as the simulator writes them, and where one stands."""

    kind: str
    coordinates: str
    pose: Pose


@dataclass(frozen=True, slots=True)
class Scene:
    """A floor plan.

    Attributes:
        plan: Number of the floor plan, such as 301.
        room: One of `ROOMS`.
        spots: Its mapped receptacles.
        unmapped: Kinds of receptacles that it has somewhere.
        objects: Kinds of other things in it.
        poses: Places where one can stand.
    """

    plan: int
    room: str
    spots: tuple[Spot, ...]
    unmapped: tuple[str, ...]
    objects: tuple[str, ...]
    poses: tuple[Pose, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """What the alfworld package knows about households.

    Attributes:
        fits: Kind of receptacle to the kinds of objects that it can contain.
        affordances: "Heatable", "Coolable", "Cleanable", "Toggleable", "Sliceable" to kinds of objects.
        openable: Kinds of receptacles that open and close.
        movable: Kinds of objects that are receptacles themselves.
        goals: Family of tasks to its goal in PDDL and its instruction templates.
        domain: The PDDL domain.
        grammar: The text grammar, with UNKNOWN GOAL where the instruction goes.
    """

    fits: Mapping[str, frozenset[str]]
    affordances: Mapping[str, frozenset[str]]
    openable: frozenset[str]
    movable: frozenset[str]
    goals: Mapping[str, tuple[str, tuple[str, ...]]]
    domain: str
    grammar: str


@cache
def material() -> Material:
    """Read the constants, goals, domain and grammar of the installed alfworld package.

    Raises:
        ImportError: The extra "alfworld" is not installed.
    """
    try:
        from alfworld.gen import constants, goal_library
    except ImportError as error:
        raise ImportError(MISSING_EXTRA) from error
    data = resources.files("alfworld") / "data"
    return Material(
        fits={kind: frozenset(objects) for kind, objects in sorted(constants.VAL_RECEPTACLE_OBJECTS.items())},
        affordances={name: frozenset(kinds) for name, kinds in constants.VAL_ACTION_OBJECTS.items()},
        openable=frozenset(constants.OPENABLE_CLASS_SET),
        movable=frozenset(constants.MOVABLE_RECEPTACLES),
        goals={family: (entry["pddl"], tuple(entry["templates"])) for family, entry in goal_library.gdict.items()},
        domain=(data / "alfred.pddl").read_text(encoding="utf-8"),
        grammar=(data / "alfred.twl2").read_text(encoding="utf-8"),
    )


@cache
def scenes(room: str) -> tuple[Scene, ...]:
    """Return the thirty floor plans of a room."""
    first = {"kitchen": 1, "livingroom": 201, "bedroom": 301, "bathroom": 401}[room]
    return tuple(_scene(plan, room) for plan in range(first, first + 30))


def _scene(plan: int, room: str) -> Scene:
    layouts = resources.files("alfworld") / "gen" / "layouts"

    def read(part: str) -> Any:
        return json.loads((layouts / f"FloorPlan{plan}-{part}.json").read_text(encoding="utf-8"))

    spots = tuple(
        Spot(_kind(name), re.sub(r"^[^|]+\|", "", name), _pose(*stand))
        for name, stand in sorted(read("openable").items())
    )
    mapped = {spot.kind for spot in spots}
    present = set(read("objects"))
    receptacles = set(material().fits) - material().movable
    unmapped = {kind for kind in present & receptacles if kind in UNMAPPED} - mapped
    return Scene(
        plan=plan,
        room=room,
        spots=spots,
        unmapped=tuple(sorted(unmapped | ({"GarbageCan"} - mapped))),
        objects=tuple(sorted(present - receptacles)),
        poses=tuple(sorted({spot.pose for spot in spots})),
    )


def _kind(name: str) -> str:
    return name.rsplit("|", 1)[-1] if name.endswith("Basin") else name.split("|", 1)[0]


def _pose(x: float, z: float, rotation: int, horizon: int) -> Pose:
    return round(x * 4), round(z * 4), rotation // 90, horizon
