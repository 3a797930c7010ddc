"""The data that travels: task -> state -> query -> prediction -> transition.

Every value is plain JSON made immutable: objects are dicts that nobody mutates, arrays are tuples, so that states
share structure instead of being copied. `freeze` and `thaw` convert to and from what `json` reads and writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = Any
"""A frozen JSON value: str, int, float, bool, tuple of JSON or dict of str to JSON."""


def freeze(value: Any) -> JSON:
    """Return a JSON value with every list turned into a tuple."""
    if isinstance(value, Mapping):
        return {key: freeze(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: JSON) -> Any:
    """Return a JSON value with every tuple turned into a list, as `json.loads` would give it."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class State:
    """An abstract state of an environment.

    Attributes:
        public: What the agent sees; an instance of the domain's schema without its private properties.
        private: What the experience model has committed to and the agent has not seen yet (DESIGN, idea 6).
            Empty in real environments, which keep their own secrets.
    """

    public: Mapping[str, JSON]
    private: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is asked to do, and the state in which it starts.

    Attributes:
        id: Unique within its domain and split.
        instruction: The task in words, shown to the agent at every step.
        initial: The state at reset, before anything was revealed.
        family: Kind of task, for reports by kind (for example "pick_two_obj_and_place").
        metadata: Anything else that belongs to the task; never shown to agent or model.
    """

    id: str
    instruction: str
    initial: State
    family: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trajectory: the action taken and what came of it.

    Attributes:
        action: The agent's text.
        state: The state after the action.
        reward: Reward of the step.
        terminated: Whether the episode ended in a terminal state.
        reasoning: Why it came out so, one check a line; written by the domain's template or a teacher model.
    """

    action: str
    state: State
    reward: float
    terminated: bool
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Transition:
    """One step with where it started: what a replay buffer holds and a model is trained on."""

    task: Task
    state: State
    action: str
    next_state: State
    reward: float
    terminated: bool
    reasoning: str = ""
    source: str = "real"
    history: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode.

    Attributes:
        task: What was to be done.
        steps: What was done; the first one starts in `task.initial`.
        source: "real" or "dream".
        player: Who acted (for example "expert", "random").
        metadata: Anything else worth keeping, such as the seed.
    """

    task: Task
    steps: tuple[Step, ...]
    source: str = "real"
    player: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        """Whether the last step ended the episode with full reward."""
        return bool(self.steps) and self.steps[-1].terminated and self.steps[-1].reward >= 1.0

    def transitions(self) -> list[Transition]:
        """Return the episode's steps as transitions, each with the steps before it as history."""
        before = [self.task.initial, *(step.state for step in self.steps)]
        return [
            Transition(
                task=self.task,
                state=before[i],
                action=step.action,
                next_state=step.state,
                reward=step.reward,
                terminated=step.terminated,
                reasoning=step.reasoning,
                source=self.source,
                history=self.steps[:i],
            )
            for i, step in enumerate(self.steps)
        ]
