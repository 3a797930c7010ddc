"""Filling a floor plan: how many receptacles there are, what stands where, what lies on the floor.

The numbers are rounded from what the official games look like as a whole: contents of a receptacle by its kind, shared
places, things that nobody can reach.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dreamgym_envs.domains.alfworld.scenes import UNMAPPED, Pose, Scene, material

T = TypeVar("T")

_ATTRACTION = {
    "CounterTop": 3.5, "DiningTable": 6.5, "Desk": 2.4, "Bed": 4.0, "Dresser": 2.5, "SideTable": 1.6,
    "CoffeeTable": 3.0, "TVStand": 4.5, "Sofa": 3.0, "Fridge": 4.0, "Cart": 3.5, "Toilet": 2.0, "SinkBasin": 1.2,
    "BathtubBasin": 2.5, "Microwave": 1.5, "Shelf": 0.9, "ArmChair": 1.0, "Ottoman": 1.3, "GarbageCan": 1.3,
    "Safe": 1.5, "StoveBurner": 9.0, "Drawer": 0.6, "Cabinet": 0.6, "CoffeeMachine": 12.0, "ToiletPaperHanger": 3.0,
    "TowelHolder": 1.0, "HandTowelHolder": 60.0, "LaundryHamper": 0.02, "Toaster": 0.02,
}  # fmt: skip
"""How much a receptacle draws the things that fit it, relative to the others that they fit."""

_CAPACITY = {"TowelHolder": 1, "HandTowelHolder": 1, "ToiletPaperHanger": 1, "CoffeeMachine": 1, "StoveBurner": 1}
"""Receptacles with a limit."""

_MANY = frozenset({"Cabinet", "Drawer", "Shelf", "SideTable", "ArmChair"})
"""Receptacles of which a house may have more than its floor plan."""

_MOST = 40
"""Receptacles from which on a house gets no more of them."""

FURNISHED: Mapping[str, tuple[str, ...]] = {
    "HousePlant": ("CounterTop", "DiningTable", "SideTable", "CoffeeTable", "Desk", "Shelf", "Dresser", "TVStand"),
    "Television": ("TVStand", "Dresser", "CoffeeTable"),
    "DeskLamp": ("SideTable", "Desk", "Dresser"),
    "PaperTowelRoll": ("CounterTop", "DiningTable", "GarbageCan", "Shelf", "SideTable", "Toilet"),
    "TeddyBear": ("Bed",),
    "WateringCan": ("CoffeeTable", "SideTable"),
    "FloorLamp": ("SinkBasin",),
    "Sink": ("SinkBasin", "CounterTop"),
    "Mirror": ("CounterTop", "Dresser"),
    "ShowerGlass": ("CounterTop", "Shelf"),
    "Window": ("CounterTop", "Shelf"),
    "Curtains": ("SideTable",),
    **dict.fromkeys(("RemoteControl", "Vase", "Statue", "CreditCard", "Laptop", "KeyChain", "Watch"), ("TVStand",)),
}
"""Where things may stand at the start although the constants do not let them be put there."""

_FREESTANDING = {
    "HousePlant": 0.35, "Television": 0.25, "Box": 0.4, "WateringCan": 0.8, "FloorLamp": 0.93, "Sink": 0.88,
    "Mirror": 0.95, "ShowerGlass": 0.93, "Window": 0.98, "Curtains": 0.95,
}  # fmt: skip
"""Share of the things of a kind that stand on the floor, where nobody can reach them."""

_RARE = {("bedroom", "Box"): 0.15, ("bedroom", "Cloth"): 0.0, ("livingroom", "Box"): 0.85}
"""Share of the rooms that hold a kind which their floor plans list."""

FLOOR = frozenset({"BaseballBat", "BasketBall", "Boots", "Footstool", "Plunger", "ScrubBrush", "TennisRacket"})
"""Things that can be picked up and yet lie where nobody can reach them."""

_DROPPED = 0.03
"""The same for every other kind."""

_COOLED = 0.07
"""Share of the objects in a fridge that count as cool at the start."""


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A receptacle of a house: unique name in the problem, kind, and where one stands to use it."""

    name: str
    kind: str
    pose: Pose


@dataclass(frozen=True, slots=True)
class Item:
    """A thing in a house: `place` is the name of a receptacle, or None for a thing on the floor at `pose`."""

    name: str
    kind: str
    place: str | None
    pose: Pose
    cool: bool = False


def receptacles_of(scene: Scene, rng: np.random.Generator) -> tuple[Receptacle, ...]:
    """Vary a floor plan: receptacles that come in numbers are now more, now fewer."""
    total = Counter(spot.kind for spot in scene.spots)
    fewer, more = rng.uniform(0, 0.15), rng.uniform(0, 0.6)
    spots: list[tuple[str, str, Pose]] = []
    taken = {spot.pose for spot in scene.spots}
    for spot in scene.spots:
        if total[spot.kind] > 1 and rng.random() < fewer:
            total[spot.kind] -= 1
            continue
        spots.append((spot.kind, spot.coordinates, spot.pose))
        if spot.kind in _MANY and len(spots) < _MOST and rng.random() < more:
            pose = spot.pose if rng.random() < 0.1 else free_pose(taken, rng)
            taken.add(pose)
            spots.append((spot.kind, _coordinates(rng), pose))
    for kind in scene.unmapped:
        poses: list[Pose] = []
        for number in range(draw(UNMAPPED[kind], rng)):
            pose = _beside(kind, number, poses, spots, rng) or free_pose(taken, rng)
            taken.add(pose)
            poses.append(pose)
            suffix = f"|{kind}" if kind.endswith("Basin") else ""
            spots.append((kind, _coordinates(rng) + suffix, pose))
    found: dict[str, Receptacle] = {}
    for kind, coordinates, pose in spots:
        name = _pddl_name(kind.removesuffix("Basin"), coordinates)
        found.setdefault(name, Receptacle(name, kind, pose))
    return tuple(found.values())


def _beside(
    kind: str, number: int, poses: Sequence[Pose], spots: Sequence[tuple[str, str, Pose]], rng: np.random.Generator
) -> Pose | None:
    """Return the place of a neighbour that is used from the same place, if chance has it."""
    if kind == "StoveBurner" and number % 2 == 1 and rng.random() < 0.58:
        return poses[-1]
    counters = [pose for other, _, pose in spots if other == "CounterTop"]
    share = {"CoffeeMachine": 0.2, "Toaster": 0.3}.get(kind, 0.0)
    return draw(counters, rng) if counters and rng.random() < share else None


def items_of(
    family: str, scene: Scene, receptacles: tuple[Receptacle, ...], target: str, parent: str, rng: np.random.Generator
) -> tuple[Item, ...]:
    """Fill a house: one to three of each kind of object, up to four of the kind that the task is about."""
    fits = material().fits
    coolable = material().affordances["Coolable"]
    free = {r.name: _CAPACITY.get(r.kind, 99) for r in receptacles}
    emptied = {parent} if family in ("pick_and_place_simple", "pick_two_obj_and_place") else set()
    items: list[Item] = []
    for kind in scene.objects:
        if kind != target and rng.random() >= _RARE.get((scene.room, kind), 1.0):
            continue
        storable = any(kind in fits[r.kind] for r in receptacles) and kind not in FLOOR
        floor = _FREESTANDING.get(kind, 0.0 if kind == "DeskLamp" else _DROPPED)
        for _ in range(_number(kind, storable, kind == target, family, rng)):
            places = [
                r
                for r in receptacles
                if free[r.name] > 0
                and (kind in fits[r.kind] or r.kind in FURNISHED.get(kind, ()))
                and not (kind == target and r.kind in emptied)
            ]
            name = _pddl_name(kind, _coordinates(rng))
            if kind in FLOOR or not places or rng.random() < floor:
                items.append(Item(name, kind, None, free_pose({r.pose for r in receptacles}, rng)))
                continue
            place = draw(places, rng, [_ATTRACTION[r.kind] for r in places])
            free[place.name] -= 1
            cool = place.kind == "Fridge" and kind in coolable and bool(rng.random() < _COOLED)
            items.append(Item(name, kind, place.name, place.pose, cool))
    return tuple({item.name: item for item in items}.values())


def _number(kind: str, storable: bool, wanted: bool, family: str, rng: np.random.Generator) -> int:
    if not storable:
        return 1 if kind in FURNISHED or kind in FLOOR else int(rng.integers(1, 3))
    if wanted:
        return int(rng.integers(2 if family == "pick_two_obj_and_place" else 1, 5))
    return int(rng.integers(1, 4))


def free_pose(taken: set[Pose], rng: np.random.Generator) -> Pose:
    """Return a place to stand from which no receptacle is in reach."""
    while True:
        x, z, turn, tilt = (int(value) for value in rng.integers([-20, -20, 0, -2], [21, 21, 4, 5]))
        pose = (x, z, turn, 15 * tilt)
        if pose not in taken:
            return pose


def _coordinates(rng: np.random.Generator) -> str:
    return "|".join(f"{rng.uniform(-6, 6):+06.2f}" for _ in range(3))


def _pddl_name(kind: str, coordinates: str) -> str:
    text = f"{kind}|{coordinates}"
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_")):
        text = text.replace(sign, word)
    return text


def draw(options: Sequence[T], rng: np.random.Generator, weights: Sequence[float] | None = None) -> T:
    """Return one of the options, all as likely or in proportion to their weights."""
    if weights is None:
        return options[int(rng.integers(len(options)))]
    shares = np.cumsum(np.asarray(weights, dtype=float))
    return options[int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))]
