"""ALFWorld as a domain: a household in text, in which things are to be found, treated, placed and looked at."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from dreamgym_envs.assets import asset
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import JSON, State, Task, Trajectory, Transition
from dreamgym_envs.domains.alfworld import focus, goal, grammar, players, reasoning, relabel, reveals
from dreamgym_envs.domains.base import Action, Domain, Engine, Player, open_engine


class ALFWorld(Domain):
    """Shridhar et al., "ALFWorld: Aligning Text and Embodied Environments" (ICLR 2021), in its six families of tasks.

    The schema in assets/schemas/alfworld.json says what a state holds, `text` how the engine's texts become one.
    """

    name = "alfworld"
    title = "ALFWorld"
    max_episode_steps = 50
    max_candidates = grammar.MAX_CANDIDATES
    held_out: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "generated": {"split": "valid"},
        "official": {"games": "official", "split": "valid_seen"},
    }
    reference: ClassVar[Mapping[str, Any]] = {"lists_commands": True}

    def __init__(self) -> None:
        self.schema = Schema.load(asset("schemas", f"{self.name}.json"))

    def parse(self, action: str) -> Action | None:
        """Return a command's parts; see `grammar.parse`."""
        return grammar.parse(action)

    def candidates(self, task: Task, state: State) -> tuple[str, ...]:
        """Return the actions worth considering; see `grammar.candidates`."""
        return grammar.candidates(task, state)

    def rejection(self, state: State) -> State:
        """Return the state after an action that is no command: the engine's answer to it, and nothing else."""
        return State({**state.public, "feedback": grammar.FAILURE}, state.private)

    def focus(self, task: Task, state: State, action: Action | None) -> Mapping[str, JSON]:
        """Return what an action touches; see `focus.focus`."""
        return focus.focus(task, state, action)

    def explain(self, transition: Transition) -> str:
        """Return the checklist behind a transition; see `reasoning.explain`."""
        return reasoning.explain(transition)

    def settle(self, state: State) -> State:
        """Return a state without the commitments to objects that the agent sees by now."""
        hidden = state.private.get("hidden", ())
        if not hidden:
            return state
        promised = {entry["name"] for entry in hidden}
        seen = {item["name"] for row in state.public["receptacles"] for item in row["contents"]} & promised
        seen |= {item["name"] for item in state.public["holding"]} & promised
        if not seen:
            return state
        return State(state.public, {**state.private, "hidden": tuple(e for e in hidden if e["name"] not in seen)})

    def hindsight(self, trajectory: Trajectory) -> list[Mapping[str, JSON]]:
        """Return where the objects that matter were hidden; see `focus.hindsight`."""
        return focus.hindsight(trajectory)

    def relabel(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
        """Return an episode as if another task had been set; see `relabel.relabel`."""
        return relabel.relabel(trajectory, rng)

    def plausible_start(self, task: Task, state: State) -> bool:
        """Return whether a start's commitments leave the task open and possible; see `goal.plausible`."""
        wanted = goal.parse_goal(task.instruction)
        return wanted is not None and goal.plausible(wanted, state)

    def reveals(self, transition: Transition) -> bool:
        """Return whether a transition shows what was hidden; see `reveals.reveals`."""
        return reveals.reveals(transition)

    def goal_satisfied(self, task: Task, state: State) -> bool:
        """Return whether a state satisfies the instruction; False for one in none of ALFWorld's templates."""
        wanted = goal.parse_goal(task.instruction)
        return wanted is not None and goal.satisfied(wanted, state)

    def render(self, task: Task, state: State) -> str:
        """Return the state for a person: what is known of the receptacles, a line each, and which are still unknown."""
        public = state.public
        lines = [
            f"Task: {task.instruction}",
            f"> {public['feedback']}",
            f"Within reach: {', '.join(public['location']) or 'nothing'}",
            f"In the hand: {_listed(public['holding'])}",
        ]
        unseen = []
        for row in public["receptacles"]:
            if row["status"] == "unseen":
                unseen.append(row["name"])
            elif row["status"] == "closed":
                lines.append(f"  {row['name']}, closed")
            else:
                status = "" if row["status"] == "surface" else f", {row['status']}"
                lines.append(f"  {row['name']}{status}: {_listed(row['contents'])}")
        if unseen:
            lines.append(f"Not seen yet: {', '.join(_ranges(unseen))}")
        return "\n".join(lines)

    def engine(self, **options: Any) -> Engine:
        """Return the real ALFWorld; for the options see `real.AlfworldEngine`.

        Raises:
            ImportError: The extra "alfworld" is not installed.
            ValueError: An option is unknown or wrong.
        """
        from dreamgym_envs.domains.alfworld.real import AlfworldEngine

        return open_engine(AlfworldEngine, options)

    def player(self, kind: str) -> Player:
        """Return a player of a kind; see `players.PLAYERS`.

        Raises:
            ValueError: There is no such kind.
        """
        return players.player(kind)


def _listed(items: Iterable[Mapping[str, JSON]]) -> str:
    return ", ".join(" ".join((*item["flags"], item["name"])) for item in items) or "nothing"


def _ranges(names: Iterable[str]) -> Iterable[str]:
    """Yield names with runs of numbers contracted: "drawer 1-3" for three drawers."""
    numbered = ((grammar.kind(name), int(name.rpartition(" ")[2])) for name in names)
    for (what, _), run in groupby(enumerate(numbered), lambda pair: (pair[1][0], pair[1][1] - pair[0])):
        numbers = [number for _, (_, number) in run]
        yield f"{what} {numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"{what} {numbers[0]}"
