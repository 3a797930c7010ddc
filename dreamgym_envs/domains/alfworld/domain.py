"""ALFWorld: a household in text, as a domain."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import JSON, State, Task, Trajectory, Transition
from dreamgym_envs.domains.alfworld import focus, goal, grammar, players, reasoning, relabel, reveals
from dreamgym_envs.domains.base import Action, Domain, Engine, Player


class ALFWorld(Domain):
    """Find, clean, heat, cool, place and look at things in a household."""

    name = "alfworld"
    title = "ALFWorld"
    max_episode_steps = 50
    max_candidates = 96
    held_out: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "generated": {"split": "valid"},
        "official": {"games": "official", "split": "valid_seen"},
    }

    def __init__(self) -> None:
        self.schema = Schema.load(Path(str(resources.files("dreamgym_envs.assets"))) / "schemas" / "alfworld.json")

    def parse(self, action: str) -> Action | None:
        return grammar.parse(action)

    def candidates(self, task: Task, state: State) -> tuple[str, ...]:
        return grammar.candidates(task, state)

    def rejection(self, state: State) -> State:
        return State({**state.public, "feedback": "Nothing happens."}, state.private)

    def focus(self, task: Task, state: State, action: Action | None) -> Mapping[str, JSON]:
        return focus.focus(task, state, action)

    def explain(self, transition: Transition) -> str:
        return reasoning.explain(transition)

    def hindsight(self, trajectory: Trajectory) -> list[Mapping[str, JSON]]:
        return focus.hindsight(trajectory)

    def settle(self, state: State) -> State:
        hidden = state.private.get("hidden", ())
        if not hidden:
            return state
        seen = {item["name"] for row in state.public["receptacles"] for item in row["contents"]}
        seen.update(item["name"] for item in state.public["holding"])
        left = tuple(entry for entry in hidden if entry["name"] not in seen)
        return state if len(left) == len(hidden) else State(state.public, {**state.private, "hidden": left})

    def relabel(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
        return relabel.relabel(trajectory, rng)

    def plausible_start(self, task: Task, state: State) -> bool:
        return goal.plausible(goal.parse_goal(task.instruction), state)

    def reveals(self, transition: Transition) -> bool:
        return reveals.reveals(transition)

    def goal_satisfied(self, task: Task, state: State) -> bool:
        found = goal.parse_goal(task.instruction)
        return found is not None and goal.satisfied(found, state)

    def render(self, task: Task, state: State) -> str:
        public = state.public
        lines = [f"Task: {task.instruction}", f"> {public['feedback']}"]
        lines.append(f"At: {', '.join(public['location']) or 'the middle of the room'}")
        held = [" ".join((*item["flags"], item["name"])) for item in public["holding"]]
        lines.append(f"Holding: {', '.join(held) or 'nothing'}")
        for row in public["receptacles"]:
            inside = ", ".join(" ".join((*item["flags"], item["name"])) for item in row["contents"])
            known = inside or "empty" if row["status"] in ("open", "surface", "shut") else "?"
            lines.append(f"  {row['name']} ({row['status']}): {known}")
        return "\n".join(lines)

    def engine(self, **options: Any) -> Engine:
        from dreamgym_envs.domains.alfworld.real import AlfworldEngine

        return AlfworldEngine(**options)

    def player(self, kind: str) -> Player:
        return players.player(kind)
