"""Goals: what an instruction asks for, and whether a state fulfils it.

The six families and their two templates each are those of `alfworld.gen.goal_library`, the conditions those of its PDDL
goals. Checks read the public state; a dream never calls them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.domains.alfworld.grammar import kind

__all__ = ["Goal", "goal_of", "parse_goal", "plausible", "satisfied"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What has to be so in the end. Kinds are words such as "mug", not names such as "mug 1".

    Attributes:
        family: Kind of task, as ALFWorld names it.
        object: Kind of object that is wanted.
        receptacle: Kind of receptacle that it has to be in; empty for "look at".
        flag: "clean", "hot", "cool" or empty.
        count: How many have to be in one and the same receptacle.
        lamp: Kind of lamp to look at it under; empty for all other families.
    """

    family: str
    object: str
    receptacle: str = ""
    flag: str = ""
    count: int = 1
    lamp: str = ""


_FAMILIES = {
    "": "pick_and_place_simple",
    "clean": "pick_clean_then_place_in_recep",
    "hot": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
}
_FLAGS = {"clean": "clean", "heat": "hot", "hot": "hot", "cool": "cool"}
_LAMP = re.compile(r"(?:look at|examine the) (?P<object>\w+) (?:under|with) the (?P<lamp>\w+)")
_TWO = re.compile(r"(?:put two (?P<a>\w+)|find two (?P<b>\w+) and put them) (?:in/on|in|on) (?P<receptacle>\w+)")
_TREATED = re.compile(
    r"(?:put an? (?P<flag>clean|hot|cool) (?P<a>\w+)|(?P<verb>clean|heat|cool) some (?P<b>\w+) and put it)"
    r" (?:in/on|in|on) (?P<receptacle>\w+)"
)
_PLACED = re.compile(r"put (?:an?|some) (?P<object>\w+) (?:in/on|in|on) (?P<receptacle>\w+)")


@lru_cache(maxsize=8192)
def parse_goal(instruction: str) -> Goal | None:
    """Return the goal of an instruction in ALFWorld's templates, None if it is in none of them.

    Example:
        >>> parse_goal("find two pen and put them in desk.")
        Goal(family='pick_two_obj_and_place', object='pen', receptacle='desk', flag='', count=2, lamp='')
    """
    words = " ".join(instruction.lower().rstrip(". ").split())
    if found := _LAMP.fullmatch(words):
        return Goal("look_at_obj_in_light", found["object"], lamp=found["lamp"])
    if found := _TWO.fullmatch(words):
        return Goal("pick_two_obj_and_place", found["a"] or found["b"], found["receptacle"], count=2)
    if found := _TREATED.fullmatch(words):
        flag = _FLAGS[found["flag"] or found["verb"]]
        return Goal(_FAMILIES[flag], found["a"] or found["b"], found["receptacle"], flag)
    if found := _PLACED.fullmatch(words):
        return Goal(_FAMILIES[""], found["object"], found["receptacle"])
    return None


def goal_of(instruction: str) -> Goal:
    """Return the goal of an instruction.

    Raises:
        ValueError: The instruction is in none of ALFWorld's templates.
    """
    goal = parse_goal(instruction)
    if goal is None:
        raise ValueError(
            f"no goal in the instruction {instruction!r}; expected one of ALFWorld's, such as 'put a clean mug in desk'"
        )
    return goal


def satisfied(goal: Goal, state: State) -> bool:
    """Return whether the public state fulfils a goal.

    "Look at" wants a lamp that was turned on, in a receptacle within reach, and the object in the hand; the order does
    not matter. All others want `count` objects with the flag in one receptacle, open or not.
    """
    public = state.public
    if goal.lamp:
        return any(kind(item["name"]) == goal.object for item in public["holding"]) and any(
            kind(item["name"]) == goal.lamp and "on" in item["flags"]
            for row in public["receptacles"]
            if row["name"] in public["location"]
            for item in row["contents"]
        )
    return any(
        _count(goal, row["contents"]) >= goal.count
        for row in public["receptacles"]
        if kind(row["name"]) == goal.receptacle
    )


def plausible(goal: Goal, state: State) -> bool:
    """Return whether a start with its commitments leaves a goal open and, as far as one can tell, possible.

    Every commitment must name a receptacle of the house and a kind that the goal needs; ids of a kind count from 1
    without a gap, as the engine's do; there are enough objects, and a lamp if one is wanted; the objects are not
    already where they have to be.
    """
    hidden = state.private.get("hidden", ())
    places = {row["name"] for row in state.public["receptacles"]}
    if any(entry["place"] not in places for entry in hidden) or satisfied(goal, state):
        return False
    numbers: dict[str, list[int]] = {what: [] for what in (goal.object, goal.lamp) if what}
    for entry in hidden:
        if (what := kind(entry["name"])) not in numbers:
            return False
        numbers[what].append(int(entry["name"].rpartition(" ")[2]))
    if any(sorted(found) != list(range(1, len(found) + 1)) for found in numbers.values()):
        return False
    if len(numbers[goal.object]) < goal.count or (goal.lamp and not numbers[goal.lamp]):
        return False
    there = Counter(
        entry["place"]
        for entry in hidden
        if kind(entry["name"]) == goal.object and kind(entry["place"]) == goal.receptacle
    )
    return bool(goal.flag) or all(count < goal.count for count in there.values())


def _count(goal: Goal, items: Iterable[Mapping[str, JSON]]) -> int:
    return sum(kind(item["name"]) == goal.object and (not goal.flag or goal.flag in item["flags"]) for item in items)
