"""Households of our own: seeded, as many as one likes, playable in the real engine.

A house is a floor plan with its receptacles varied, filled with objects at random, and a task that can be done in it.
Its id says everything: `house("train-000123")` is the same house on every machine. Splits never share a house.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dreamgym_envs.domains.alfworld.furnishing import (
    FLOOR,
    FURNISHED,
    Item,
    Receptacle,
    draw,
    free_pose,
    items_of,
    receptacles_of,
)
from dreamgym_envs.domains.alfworld.scenes import ROOMS, Pose, Scene, material, scenes

FAMILIES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six kinds of tasks. House number n of a split has family n modulo 6."""

SPLITS = {"train": 1, "valid": 2, "test": 3}
"""Splits, and the first word of their houses' seeds."""

MAX_RECEPTACLES, MAX_OBJECTS = 54, 64
"""Most receptacles and most objects within reach that a house has; the official games' maxima are 54 and 62."""

_ROOM_WEIGHT = {
    "pick_and_place_simple": {"kitchen": 2, "livingroom": 3, "bedroom": 3, "bathroom": 3},
    "look_at_obj_in_light": {"livingroom": 1, "bedroom": 4},
    "pick_clean_then_place_in_recep": {"kitchen": 3, "bathroom": 1},
    "pick_two_obj_and_place": {"kitchen": 1, "livingroom": 3, "bedroom": 3, "bathroom": 3},
}

_APPLIANCE = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}

_NO_TARGETS = frozenset({"SinkBasin", "BathtubBasin", "Toaster", "TowelHolder", "HandTowelHolder", "LaundryHamper"})


@dataclass(frozen=True, slots=True)
class House:
    """A household with a task.

    Attributes:
        id: Split and number, such as "test-000017".
        family: One of `FAMILIES`.
        room: One of `scenes.ROOMS`.
        plan: Number of the floor plan that it grew from.
        instruction: The task in words.
        target: Kind of the object that the task is about.
        parent: Kind of the receptacle it goes to, or of the lamp.
        start: Where the agent stands at reset.
        receptacles: What can be gone to.
        items: Everything else.
    """

    id: str
    family: str
    room: str
    plan: int
    instruction: str
    target: str
    parent: str
    start: Pose
    receptacles: tuple[Receptacle, ...]
    items: tuple[Item, ...]

    @property
    def solved(self) -> bool:
        """Whether the goal already holds at the start."""
        if self.family in _APPLIANCE and self.family != "pick_cool_then_place_in_recep":
            return False
        kinds = {receptacle.name: receptacle.kind for receptacle in self.receptacles}
        there = Counter(
            item.place
            for item in self.items
            if item.kind == self.target
            and item.place is not None
            and kinds[item.place] == self.parent
            and (item.cool or self.family != "pick_cool_then_place_in_recep")
        )
        needed = 2 if self.family == "pick_two_obj_and_place" else 1
        return max(there.values(), default=0) >= needed


def houses(split: str, count: int, start: int = 0) -> Iterator[House]:
    """Yield houses number `start` to `start + count - 1` of a split.

    Raises:
        ValueError: There is no such split.
    """
    if split not in SPLITS:
        raise ValueError(f"no split {split!r} of generated houses; there are {', '.join(SPLITS)}")
    for number in range(start, start + count):
        yield house(f"{split}-{number:06d}")


def house(house_id: str) -> House:
    """Return the house with an id such as "train-000123".

    Raises:
        ValueError: The id names no house.
        ImportError: The extra "alfworld" is not installed.
    """
    split, _, number = house_id.partition("-")
    if split not in SPLITS or not (len(number) >= 6 and number.isascii() and number.isdigit()):
        raise ValueError(f"no house {house_id!r}; ids look like 'train-000123', with a split of {', '.join(SPLITS)}")
    rng = np.random.default_rng([SPLITS[split], int(number)])
    family = FAMILIES[int(number) % len(FAMILIES)]
    while True:
        found = _attempt(house_id, family, rng)
        if found is not None and not found.solved:
            return found


def _attempt(house_id: str, family: str, rng: np.random.Generator) -> House | None:
    """Return a house for a task of the family, or None if the draw has no such task."""
    weights = _ROOM_WEIGHT.get(family, {"kitchen": 1})
    room = draw([name for name in ROOMS if name in weights], rng, [weights[name] for name in ROOMS if name in weights])
    scene = draw(scenes(room), rng)
    receptacles = receptacles_of(scene, rng)
    goal = _goal(family, scene, {receptacle.kind for receptacle in receptacles}, rng)
    if goal is None:
        return None
    target, parent = goal
    items = items_of(family, scene, receptacles, target, parent, rng)
    reach = [item for item in items if item.place is not None]
    needed = 2 if family == "pick_two_obj_and_place" else 1
    if sum(item.kind == target for item in reach) < needed:
        return None
    if len(receptacles) > MAX_RECEPTACLES or len(reach) > MAX_OBJECTS:
        return None
    if family == "look_at_obj_in_light" and not any(item.kind == parent for item in reach):
        return None
    template = draw(material().goals[family][1], rng)
    words = {"obj": target.lower(), "recep": parent.lower(), "toggle": parent.lower()}
    return House(
        id=house_id,
        family=family,
        room=room,
        plan=scene.plan,
        instruction=template.format(**words),
        target=target,
        parent=parent,
        start=free_pose({receptacle.pose for receptacle in receptacles}, rng),
        receptacles=receptacles,
        items=items,
    )


def _goal(family: str, scene: Scene, kinds: set[str], rng: np.random.Generator) -> tuple[str, str] | None:
    """Draw the kind of object and the kind of receptacle or lamp that a task is about."""
    fits = material().fits
    if family == "look_at_obj_in_light":
        objects = [kind for kind in scene.objects if kind not in FLOOR and any(kind in fits[r] for r in kinds)]
        lamp = "DeskLamp" in scene.objects and any(kind in kinds for kind in FURNISHED["DeskLamp"])
        return (draw(objects, rng), "DeskLamp") if lamp and objects else None
    affordance, appliance = _APPLIANCE.get(family, ("", ""))
    if appliance and appliance not in kinds:
        return None
    able = material().affordances[affordance] if affordance else None
    parents = sorted(kinds - _NO_TARGETS - {appliance})
    pairs = {
        kind: [parent for parent in parents if kind in fits[parent]]
        for kind in scene.objects
        if kind not in FLOOR and (able is None or kind in able)
    }
    objects = [kind for kind, where in pairs.items() if where and any(kind in fits[r] for r in kinds - {where[0]})]
    if not objects:
        return None
    target = draw(objects, rng)
    return target, draw(pairs[target], rng)
