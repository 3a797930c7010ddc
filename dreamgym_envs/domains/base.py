"""What a domain has to say for itself; everything else in the package knows no domain by name.

A domain is one folder: its abstract state (a JSON Schema in assets/schemas), its action grammar, how much of the state
an action touches, how to read the real environment, and what makes training data (players, reasoning templates).
Nothing here computes what an action leads to: that is the experience model's part.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from dreamgym_envs.core.knowledge import revealed, share_known
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import JSON, State, Task, Trajectory, Transition
from dreamgym_envs.trajectories.imported import Imported
from dreamgym_envs.trajectories.tasks import shipped_tasks


@dataclass(frozen=True, slots=True)
class Action:
    """An action's text, parsed by its domain's grammar.

    Attributes:
        verb: Name of the rule that matched, such as "take".
        arguments: The strings that the action names, in order of the text, such as ("mug 1", "desk 1").
    """

    verb: str
    arguments: tuple[str, ...] = ()


class Engine(Protocol):
    """A real environment of a domain, already translated to abstract states. One episode at a time.

    Attributes:
        task_ids: Ids of the tasks that `reset` draws from and accepts.
    """

    @property
    def task_ids(self) -> Sequence[str]:
        """See the class."""
        ...

    def reset(self, rng: np.random.Generator, task_id: str | None = None) -> Task:
        """Start an episode of the given task, or of one drawn with `rng`; return it with its initial state."""
        ...

    def step(self, action: str) -> tuple[State, float, bool]:
        """Take an action that the domain's grammar accepts; return the next state, reward and terminated."""
        ...

    def close(self) -> None:
        """Free what the engine holds."""
        ...


def open_engine(engine: Callable[..., Engine], options: Mapping[str, Any]) -> Engine:
    """Return an engine with a user's options.

    Raises:
        ValueError: It has no such option; the message names those it has.
    """
    known = signature(engine).parameters
    for name in options:
        if name not in known:
            raise ValueError(f"the real environment has no option {name!r}; it has {', '.join(known)}")
    return engine(**options)


class Player(Protocol):
    """Somebody who plays by the abstract state alone, in a dream as in the real environment."""

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Forget the last episode and get ready for `task`."""
        ...

    def act(self, state: State) -> str:
        """Return the next action."""
        ...


class Domain(ABC):
    """One kind of environment.

    Attributes:
        name: Folder and file name, lower case.
        title: Name in environment ids: `DreamGym/<title>-v0`.
        max_episode_steps: Steps after which an episode is truncated.
        max_candidates: Most candidate actions that a state offers.
        demonstrations: Demonstrations of a warm start that succeeds now and then and has much left to learn.
        held_out: Options of `engine` by name of real data that no shipped model was trained on; "generated" is what
            every installation has, "official" the benchmark's own, if its data is there.
        reference: Options of `engine` with which it does at every step all that the original does, where the default
            leaves out what nobody here reads; speed is compared with both.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    max_episode_steps: ClassVar[int]
    max_candidates: ClassVar[int]
    demonstrations: ClassVar[int] = 60
    held_out: ClassVar[Mapping[str, Mapping[str, Any]]] = {"generated": {"split": "valid"}}
    reference: ClassVar[Mapping[str, Any]] = {}
    schema: Schema

    # --- actions -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def parse(self, action: str) -> Action | None:
        """Return the action's parts, or None if it is not in the grammar."""

    @abstractmethod
    def candidates(self, task: Task, state: State) -> tuple[str, ...]:
        """Return the actions worth considering, computed from the public state alone, in a fixed order, no doubles."""

    @abstractmethod
    def rejection(self, state: State) -> State:
        """Return the state after an action that is not in the grammar: only the failure feedback differs."""

    # --- what the experience model sees and says ---------------------------------------------------------------------

    @abstractmethod
    def focus(self, task: Task, state: State, action: Action | None) -> Mapping[str, JSON]:
        """Return the part of the state, private part included, that the action can touch or depend on.

        Same shape as the schema, with properties and array elements left out. `None` asks for what a model needs to
        commit to the hidden part of an initial state.
        """

    def comparisons(self, task: Task, state: State, action: Action | None) -> tuple[str, ...]:
        """Return how numbers of the state compare with the instruction's, in a few fixed words, as the action needs it.

        A small model reads words well and digits badly, so the prompt has these words beside the digits. They say
        nothing that the public state does not. By default there is nothing to compare.
        """
        return ()

    def owed(self, task: Task, state: State, action: Action) -> Mapping[tuple[str, ...], Sequence[str]]:
        """Return which promises of the private state fall due with an action: strings that join the array at a path.

        Decoding holds the model to them. By default a promise is only due when its array becomes known ("x-known").
        """
        return {}

    @abstractmethod
    def explain(self, transition: Transition) -> str:
        """Return the reasoning of a real transition, one check a line: training data where no teacher wrote any."""

    def settle(self, state: State) -> State:
        """Return a predicted state with commitments that have been revealed dropped from its private part."""
        return state

    def hindsight(self, trajectory: Trajectory) -> list[Mapping[str, JSON]]:
        """Return the private part before each step, as far as the rest of the episode reveals it.

        Item 0 belongs to the initial state. The default knows of no secrets.
        """
        return [{} for _ in trajectory.steps]

    def disclosed(self, trajectory: Trajectory) -> float:
        """Return how much of what its world hid an episode has revealed, from 0 to 1; resets are learnt from the rest.

        By default: the share of hidden arrays (schema keyword "x-known") that are known in its last state.
        """
        return share_known(self.schema, trajectory.steps[-1].state) if trajectory.steps else 0.0

    def relabel(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
        """Return a real episode as if another task had been set, with the rewards that this gives: more training data.

        None where that cannot be said; the default never can.
        """
        return None

    def plausible_start(self, task: Task, state: State) -> bool:
        """Return whether a start with its commitments leaves the task open and solvable as far as one can tell."""
        return True

    # --- measuring and showing ---------------------------------------------------------------------------------------

    def reveals(self, transition: Transition) -> bool:
        """Return whether a real transition shows what nothing before it could tell; the others are deterministic.

        By default: whether a hidden array (schema keyword "x-known") becomes known.
        """
        return bool(revealed(self.schema, transition.state, transition.next_state))

    def touched(self, state: State, action: Action) -> Sequence[str]:
        """Return the names of the things that an action may change; by default those that it names."""
        return action.arguments

    @abstractmethod
    def goal_satisfied(self, task: Task, state: State) -> bool:
        """Return whether a state satisfies the instruction. A rule that measures; a dream never calls it."""

    @abstractmethod
    def render(self, task: Task, state: State) -> str:
        """Return the public state for a person at a terminal."""

    # --- the real thing, and who plays it ----------------------------------------------------------------------------

    def tasks(self, split: str = "train") -> Sequence[Task]:
        """Return the tasks in which a dream can start; by default those that ship.

        Raises:
            FileNotFoundError: None ship.
            ValueError: There is no such split.
        """
        return shipped_tasks(self.name, split)

    def import_episodes(self, path: Path) -> Imported:
        """Return the episodes of a file that others have recorded in a format of their own.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is not in a format that the domain reads; by default there is none.
        """
        raise ValueError(
            f"{self.name} reads no episodes in formats of others; record some with `dreamgym record {self.name}`"
        )

    @abstractmethod
    def engine(self, **options: Any) -> Engine:
        """Return the real environment; imports what it needs only here.

        Raises:
            ImportError: With the extra to install.
        """

    @abstractmethod
    def player(self, kind: str) -> Player:
        """Return a player of the given kind: at least "expert", "noisy" and "random"."""
