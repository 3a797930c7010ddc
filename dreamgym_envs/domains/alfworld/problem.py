"""A house as a game of the real engine: its PDDL problem, the domain and the grammar with its instruction."""

from collections.abc import Iterator

from dreamgym_envs.domains.alfworld.engine import AlfworldGame, UnsolvableGame
from dreamgym_envs.domains.alfworld.houses import House
from dreamgym_envs.domains.alfworld.scenes import Pose, material

_FIXTURES = frozenset(
    {
        "Bathtub", "Blinds", "Chair", "Curtains", "DeskLamp", "Faucet", "FloorLamp", "HousePlant", "Lamp",
        "LaundryHamperLid", "LightSwitch", "Mirror", "Painting", "Poster", "ShowerCurtain", "ShowerDoor", "ShowerGlass",
        "ShowerHead", "Sink", "StoveKnob", "Television", "Window",
    }
)  # fmt: skip
"""Things that cannot be picked up."""


def game(house: House) -> dict[str, str]:
    """Return a house as the content of a `game.tw-pddl`, which the engine loads.

    Example:
        >>> play = AlfworldGame()                                   # doctest: +SKIP
        >>> play.load(game(house("test-000001")))                   # doctest: +SKIP
    """
    return {
        "pddl_domain": material().domain,
        "grammar": material().grammar.replace("UNKNOWN GOAL", house.instruction),
        "pddl_problem": _problem(house),
    }


def solvable(house: House) -> bool:
    """Return whether the goal is open at the start and the planner finds a way to it.

    For tests and samples: it takes hundredths of a second in a bathroom and up to a minute in a large kitchen.
    """
    play = AlfworldGame(planner=True)
    try:
        play.load(game(house))
        play.reset()
        return not play.won and play.plan() is not None
    except UnsolvableGame:
        return False
    finally:
        play.close()


def _problem(house: House) -> str:
    kinds = sorted({item.kind for item in house.items})
    shelves = sorted({receptacle.kind for receptacle in house.receptacles})
    poses = dict.fromkeys([house.start, *(r.pose for r in house.receptacles), *(item.pose for item in house.items)])
    objects = [
        "agent1 - agent",
        *(f"{kind}Type - otype" for kind in kinds),
        *(f"{kind}Type - rtype" for kind in shelves),
        *(f"{item.name} - object" for item in house.items),
        *(f"{receptacle.name} - receptacle" for receptacle in house.receptacles),
        *(f"{_location(pose)} - location" for pose in poses),
    ]
    goal = material().goals[house.family][0].format(obj=house.target, recep=house.parent, toggle=house.parent)
    return "\n".join(
        [
            f"(define (problem {house.id})",
            "(:domain alfred)",
            "(:objects",
            *objects,
            ")",
            "(:init",
            *(f"({fact})" for fact in _facts(house)),
            ")",
            goal.replace("#", "-"),  # the goal ends with the parenthesis that closes the problem
        ]
    )


def _facts(house: House) -> Iterator[str]:
    known = material()
    kinds = sorted({item.kind for item in house.items})
    yield f"atLocation agent1 {_location(house.start)}"
    for receptacle in house.receptacles:
        yield f"receptacleType {receptacle.name} {receptacle.kind}Type"
        yield f"receptacleAtLocation {receptacle.name} {_location(receptacle.pose)}"
        if receptacle.kind in known.openable:
            yield f"openable {receptacle.name}"
    for shelf in sorted({receptacle.kind for receptacle in house.receptacles}):
        for kind in kinds:
            if kind in known.fits[shelf]:
                yield f"canContain {shelf}Type {kind}Type"
    for item in house.items:
        yield f"objectType {item.name} {item.kind}Type"
        yield f"objectAtLocation {item.name} {_location(item.pose)}"
        if item.place is not None:
            yield f"inReceptacle {item.name} {item.place}"
        if item.kind not in _FIXTURES:
            yield f"pickupable {item.name}"
        if item.kind in known.movable:
            yield f"isReceptacleObject {item.name}"
        if item.cool:
            yield f"isCool {item.name}"
        for affordance in ("Cleanable", "Heatable", "Coolable", "Toggleable", "Sliceable"):
            if item.kind in known.affordances[affordance]:
                yield f"{affordance.lower()} {item.name}"


def _location(pose: Pose) -> str:
    return "loc" + "".join(f"_bar_{value}" for value in pose).replace("-", "_minus_")
