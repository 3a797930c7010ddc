"""Hindsight relabelling: a real episode as if another task had been set.

What an action does to a household does not depend on the task; only the verdict does. So an episode teaches as many
tasks as it fulfils or nearly fulfils (Andrychowicz et al., "Hindsight Experience Replay", 2017). The verdict is the
goal's definition in PDDL, applied to what the episode shows.
"""

from dataclasses import replace

import numpy as np

from dreamgym_envs.core.types import State, Step, Trajectory
from dreamgym_envs.domains.alfworld.focus import hindsight, kind
from dreamgym_envs.domains.alfworld.goal import parse_goal, satisfied
from dreamgym_envs.domains.alfworld.grammar import parse

_PLACE = {
    "": ("put a {o} in {r}.", "put some {o} on {r}."),
    "clean": ("put a clean {o} in {r}.", "clean some {o} and put it in {r}."),
    "hot": ("put a hot {o} in {r}.", "heat some {o} and put it in {r}."),
    "cool": ("put a cool {o} in {r}.", "cool some {o} and put it in {r}."),
    "two": ("put two {o} in {r}.", "find two {o} and put them in {r}."),
}
_LAMP = ("look at {o} under the {l}.", "examine the {o} with the {l}.")
_LAMPS = ("desklamp", "floorlamp")
_ENDS = frozenset({"move", "use", "take", "go"})


def relabel(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
    """Return the episode under another instruction, cut where that is fulfilled; None if it cannot be.

    An episode that would show the goal fulfilled without the agent's doing is refused: no real game starts so.
    """
    instruction = _instruction(trajectory, rng)
    goal = None if instruction is None else parse_goal(instruction)
    if instruction is None or goal is None or instruction == trajectory.task.instruction:
        return None
    steps: list[Step] = []
    for step in trajectory.steps:
        done = satisfied(goal, step.state)
        if done:
            action = parse(step.action)
            if action is None or action.verb not in _ENDS or (action.verb != "move" and not goal.lamp):
                return None
        steps.append(replace(step, reward=float(done), terminated=done, reasoning=""))
        if done:
            break
    task = replace(
        trajectory.task, id=f"{trajectory.task.id}/{instruction}", instruction=instruction, family=goal.family
    )
    episode = replace(trajectory, task=task, steps=tuple(steps))
    hidden = hindsight(trajectory=replace(trajectory, task=task))
    if goal.receptacle and hidden and not goal.flag:
        there = [
            entry["place"]
            for entry in hidden[0].get("hidden", ())
            if kind(entry["name"]) == goal.object and kind(entry["place"]) == goal.receptacle
        ]
        if any(there.count(place) >= goal.count for place in there):
            return None
    return episode


def _instruction(trajectory: Trajectory, rng: np.random.Generator) -> str | None:
    """Return an instruction that something in the episode fulfils, nearly fulfils, or has nothing to do with."""
    seen: dict[str, None] = {}
    moved: list[tuple[str, str, tuple[str, ...]]] = []
    held: dict[str, None] = {}
    used: dict[str, None] = {}
    before: State = trajectory.task.initial
    for step in trajectory.steps:
        action = parse(step.action)
        for item in step.state.public["holding"]:
            held[kind(item["name"])] = None
        if (
            action is not None
            and action.verb == "move"
            and before.public["holding"]
            and not step.state.public["holding"]
        ):
            item = before.public["holding"][0]
            moved.append((kind(item["name"]), kind(action.arguments[1]), item["flags"]))
        if action is not None and action.verb == "use" and kind(action.arguments[0]) in _LAMPS:
            used[kind(action.arguments[0])] = None
        before = step.state
    for row in before.public["receptacles"]:
        for item in row["contents"]:
            seen[kind(item["name"])] = None
    places = list(dict.fromkeys(kind(row["name"]) for row in before.public["receptacles"]))
    objects = list(held) * 3 + list(seen)
    if not objects:
        return None
    roll = rng.random()
    if used and roll < 0.4:
        form = _LAMP[int(rng.integers(2))]
        return form.format(o=objects[int(rng.integers(len(objects)))], l=list(used)[int(rng.integers(len(used)))])
    if moved and roll < 0.85:
        thing, place, flags = moved[int(rng.integers(len(moved)))]
        marks = [flag for flag in flags if flag in _PLACE]
        options = [*marks, *marks, "", "two", "clean", "hot", "cool"]
        form = _PLACE[options[int(rng.integers(len(options)))]][int(rng.integers(2))]
        if rng.random() < 0.4:
            place = places[int(rng.integers(len(places)))]
        elif rng.random() < 0.3:
            thing = objects[int(rng.integers(len(objects)))]
        return form.format(o=thing, r=place)
    thing = objects[int(rng.integers(len(objects)))]
    if rng.random() < 0.2:
        return _LAMP[int(rng.integers(2))].format(o=thing, l=_LAMPS[int(rng.integers(2))])
    form = list(_PLACE.values())[int(rng.integers(len(_PLACE)))][int(rng.integers(2))]
    return form.format(o=thing, r=places[int(rng.integers(len(places)))])
