"""The expert: reaches any goal of the six families from what the public state tells."""

import numpy as np

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.alfworld.goal import Goal, goal_of
from dreamgym_envs.domains.alfworld.grammar import candidates, kind
from dreamgym_envs.domains.alfworld.skills import Skills

__all__ = ["Expert"]

_PATIENCE = 2
"""Failures of an action after which the expert may try something else, in a dream that does not answer as it should."""


class Expert:
    """Plays by the abstract state alone, searching likely places first.

    It decides from the state, not from a plan, so others may play between its steps: `Noisy` and the like build on it.

    Raises:
        ValueError: At reset, for an instruction in none of ALFWorld's templates.
    """

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Get ready for a task."""
        self.task, self.rng = task, rng
        self.goal = goal_of(task.instruction)
        self.skills = Skills(rng)
        self._last: str | None = None

    def act(self, state: State) -> str:
        """Return the next action."""
        self.skills.see(state, self._last)
        self._last = self.choose(state)
        return self._last

    def choose(self, state: State) -> str:
        """Return the next action; `skills` has seen the state."""
        action = self.pursue(self.goal)
        if action is None or (self.skills.failed[action] >= _PATIENCE and self.rng.random() < 0.5):
            return self.any(state)
        return action

    def any(self, state: State) -> str:
        """Return a random candidate action."""
        offered = candidates(self.task, state)
        return offered[int(self.rng.integers(len(offered)))]

    def pursue(self, goal: Goal) -> str | None:
        """Return the next action towards a goal, None if there is no way."""
        skills = self.skills
        if goal.lamp:
            return skills.hold(goal.object, also=() if skills.things(goal.lamp) else (goal.lamp,)) or skills.light(
                goal.lamp
            )
        target, there = self._target(goal)
        action = skills.hold(goal.object, spare=there, flag=goal.flag)
        if action is None and goal.flag:
            action = skills.treat(goal.flag)
        return action or (None if target is None else skills.put(target))

    def _target(self, goal: Goal) -> tuple[str | None, tuple[str, ...]]:
        """Return the receptacle to fill, where most is done already, and the objects that may stay in it.

        Between two that hold as much the name decides, not the way: else the expert would turn around on its way.
        """
        best, done = None, ()
        for place in self.skills.places(goal.receptacle):
            there = tuple(
                item["name"]
                for item in self.skills.rows[place]["contents"]
                if kind(item["name"]) == goal.object and (not goal.flag or goal.flag in item["flags"])
            )
            if best is None or len(there) > len(done) or (there and len(there) == len(done) and place < best):
                best, done = place, there
        return best, done
