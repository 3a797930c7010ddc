"""Scripted players: who plays to measure dreams against reality, and who makes training data.

"expert", "noisy" and "random" are for measuring, in dreams as in the real environment. The others are for recording:
"explorer" looks into every receptacle first; "nearmiss" almost reaches the goal, so that a model learns what success
is not; "prober" tries what cannot be done, so that it learns what fails. All of them act on the public state alone and
draw every choice from the generator that they are given.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.alfworld.expert import Expert
from dreamgym_envs.domains.alfworld.goal import Goal
from dreamgym_envs.domains.alfworld.grammar import LAMPS, STATIONS, candidates, kind
from dreamgym_envs.domains.alfworld.skills import VERBS
from dreamgym_envs.domains.base import Player

__all__ = ["PLAYERS", "Explorer", "NearMiss", "Noisy", "Prober", "Random", "player"]

T = TypeVar("T")
Stage = Callable[[], str | None]
"""A part of a near miss: the next action, or None when it is over."""

_PATIENCE = 25
"""Most actions of a stage."""


class Random:
    """Takes any candidate action, all alike."""

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Get ready for a task."""
        self._task, self._rng = task, rng

    def act(self, state: State) -> str:
        """Return the next action."""
        return _pick(self._rng, candidates(self._task, state))


class Noisy(Expert):
    """The expert, who now and then takes any candidate action instead.

    Args:
        noise: How often, between 0 and 1.
    """

    def __init__(self, noise: float = 0.6) -> None:
        self.noise = noise

    def choose(self, state: State) -> str:
        """Return the next action; `skills` has seen the state."""
        return self.any(state) if self.rng.random() < self.noise else super().choose(state)


class Explorer(Expert):
    """Looks into every receptacle, then plays as the expert: what a house hides becomes known in one episode."""

    def pursue(self, goal: Goal) -> str | None:
        """Return the next action towards a goal, None if there is no way."""
        return self.skills.explore(()) or super().pursue(goal)


class NearMiss(Expert):
    """Goes astray near the goal up to five times, then mostly goes on to reach it.

    What it does wrong, as far as the goal has it: another kind of object; another place; the flag missing, another
    flag, or the flag undone; one object put twice, or two in two places; the lamp used with empty hands, with another
    object in the hand, with the object beside it, or not at all.

    Args:
        noise: How often it takes any candidate action instead.
        gives_up: How often it never turns to the goal.
    """

    def __init__(self, noise: float = 0.05, gives_up: float = 0.2) -> None:
        self.noise, self.gives_up = noise, gives_up

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Get ready for a task."""
        super().reset(task, rng)
        self._left = 99 if rng.random() < self.gives_up else int(rng.integers(1, 6))
        self._stages: list[Stage] = []
        self._spent = 0

    def choose(self, state: State) -> str:
        """Return the next action; `skills` has seen the state."""
        if self.rng.random() < self.noise:
            return self.any(state)
        if not self._stages and self._left and self._found():
            self._left -= 1
            self._stages = self._mistake()
        while self._stages:
            action = self._stages[0]()
            self._spent += 1
            if action is not None and self._spent <= _PATIENCE and self.skills.failed[action] < 2:
                return action
            del self._stages[0]
            self._spent = 0
        return super().choose(state)

    def _found(self) -> bool:
        """Return whether what the goal needs is known: the search for it has no mistakes to offer."""
        skills, goal = self.skills, self.goal
        return bool(skills.holds(goal.object) or skills.things(goal.object)) and bool(
            not goal.lamp or skills.things(goal.lamp)
        )

    def _mistake(self) -> list[Stage]:
        return self._under_the_lamp() if self.goal.lamp else self._in_place()

    def _in_place(self) -> list[Stage]:
        """Return the stages of a mistake with a goal that puts things somewhere."""
        skills, goal = self.skills, self.goal
        target, _ = self._target(goal)
        places = skills.places(goal.receptacle)
        if target is None:
            return []
        hold, put, treat = partial(skills.hold, goal.object), partial(skills.put, target), self._treat(goal.flag)
        wrong = partial(skills.put, self._elsewhere(target))
        ways: list[list[Stage]] = [
            [partial(skills.hold, self._other_kind()), *treat, put],
            [hold, *treat, wrong],
        ]
        if goal.flag:
            others = [flag for flag in VERBS if flag != goal.flag]
            ways += [[hold, put], [hold, *self._treat(_pick(self.rng, others)), put]]
            if goal.flag in _UNDONE:
                ways.append([hold, *treat, *self._treat(_UNDONE[goal.flag]), put])
        if goal.count > 1:
            ways += [
                [hold, put, hold, wrong],
                [hold, put, hold, put],
                [hold, put, hold, partial(skills.put, places[-1])],
            ]
        return _pick(self.rng, ways)

    def _under_the_lamp(self) -> list[Stage]:
        """Return the stages of a mistake with a goal that looks at something."""
        skills, goal = self.skills, self.goal
        hold, light = partial(skills.hold, goal.object), partial(skills.light, goal.lamp)
        lamp = skills.things(goal.lamp)[0]
        desk = skills.where[lamp]
        away = partial(skills.approach, self._elsewhere(desk))
        ways: list[list[Stage]] = [
            [skills.drop, light, away],
            [partial(skills.hold, self._other_kind()), light],
            [hold, partial(skills.put, desk), light],
            [hold, partial(skills.approach, desk), away],
            [hold, self._once(f"use {goal.object} 1"), self._once(f"use {lamp}"), away],
        ]
        return _pick(self.rng, ways)

    def _treat(self, flag: str) -> list[Stage]:
        return [partial(self.skills.treat, flag)] if flag else []

    def _other_kind(self) -> str:
        """Return a kind of object that is known and is not the goal's."""
        goal = self.goal
        known = sorted({kind(name) for name in self.skills.where} - {goal.object} - LAMPS)
        return _pick(self.rng, known or [goal.object])

    def _elsewhere(self, place: str) -> str:
        """Return a receptacle of another kind than a place, within reach of what is known if there is one."""
        rows = self.skills.rows
        others = [name for name in rows if kind(name) != kind(place)]
        easy = [name for name in others if rows[name]["status"] in ("open", "surface")]
        return _pick(self.rng, easy or others or [place])

    def _once(self, action: str) -> Stage:
        """Return a stage of a single action."""
        left = [action]
        return lambda: left.pop() if left else None


_UNDONE = {"hot": "cool", "cool": "hot"}
"""Flag to the one that replaces it."""


class Prober(Expert):
    """The expert, who often tries instead what may be impossible, or changes nothing.

    Probes aim near the edge of what works: at what is within reach or held more than elsewhere, at appliances and lamps
    more than at other things.

    Args:
        share: How often it probes, between 0 and 1.
    """

    def __init__(self, share: float = 0.4) -> None:
        self.share = share

    def choose(self, state: State) -> str:
        """Return the next action; `skills` has seen the state."""
        return self._probe(state) if self.rng.random() < self.share else super().choose(state)

    def _probe(self, state: State) -> str:
        verb = _pick(self.rng, _PROBES)
        if verb in ("inventory", "look"):
            return verb
        if verb in ("go to", "open", "close"):
            return f"{verb} {self._place(state)}"
        if verb == "examine":
            return f"examine {self._place(state) if self.rng.random() < 0.5 else self._thing(state)}"
        if verb == "use":
            lamps = self.skills.lamps()
            return f"use {_pick(self.rng, lamps) if lamps and self.rng.random() < 0.5 else self._thing(state)}"
        if verb == "slice":
            knives = [name for name in self._known() if kind(name) in ("knife", "butterknife")]
            return f"slice {self._thing(state)} with {_pick(self.rng, knives or self._known())}"
        if verb == "take":
            thing = self._thing(state, held=0.1)
            at = self.skills.where.get(thing) if self.rng.random() < 0.6 else None
            return f"take {thing} from {at or self._place(state)}"
        if verb == "move":
            return f"move {self._thing(state, held=0.8)} to {self._place(state)}"
        appliances = [name for name in self.skills.rows if kind(name) in STATIONS.values()]
        if verb == "approach":
            return f"go to {_pick(self.rng, appliances) if appliances else self._place(state)}"
        near = [name for name in state.public["location"] if name in appliances]
        place = _pick(self.rng, near) if near and self.rng.random() < 0.8 else self._place(state)
        return f"{verb} {self._thing(state, held=0.8)} with {place}"

    def _known(self) -> list[str]:
        """Return the known objects, and one that need not be there."""
        held = self.skills.held
        return [*self.skills.where, *([held["name"]] if held else []), f"{self.goal.object} 1"]

    def _place(self, state: State) -> str:
        """Return a receptacle, mostly one within reach."""
        reach: tuple[str, ...] = state.public["location"]
        return _pick(self.rng, reach if reach and self.rng.random() < 0.7 else tuple(self.skills.rows))

    def _thing(self, state: State, held: float = 0.4) -> str:
        """Return an object: the one in the hand with a probability, else mostly one within reach."""
        if self.skills.held is not None and self.rng.random() < held:
            return str(self.skills.held["name"])
        reach = state.public["location"]
        near = [name for name, place in self.skills.where.items() if place in reach]
        return _pick(self.rng, near if near and self.rng.random() < 0.8 else self._known())


_PROBES = (
    *("move",) * 4,
    *("take",) * 3,
    *("clean", "heat", "cool", "use", "open") * 2,
    *("close", "go to", "approach", "slice", "examine", "examine", "inventory", "look"),
)

PLAYERS: Mapping[str, Callable[[], Player]] = {
    "expert": Expert,
    "noisy": Noisy,
    "random": Random,
    "explorer": Explorer,
    "nearmiss": NearMiss,
    "prober": Prober,
}
"""Kind of player to what makes one."""


def player(name: str) -> Player:
    """Return a new player of a kind.

    Raises:
        ValueError: There is no such kind.

    Example:
        >>> player("expert").reset(task, np.random.default_rng(0))  # doctest: +SKIP
    """
    if name not in PLAYERS:
        raise ValueError(f"no player {name!r}; there are: {', '.join(PLAYERS)}")
    return PLAYERS[name]()


def _pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    return options[int(rng.integers(len(options)))]
