"""One environment's episodes: what is asked of the model, what becomes of the answer, what the agent gets to see.

An episode never calls a model or an engine. In a dream, `start` and `ask` leave a query behind and `resolve` puts the
queries of any number of episodes to the model in one batch; in a real environment, `record` takes what the engine said.
So one environment and 64 of them run the same code, and give the same episodes for the same seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium.error import ResetNeeded

from dreamgym_envs.core.delta import apply_delta
from dreamgym_envs.core.text import FreeText
from dreamgym_envs.core.types import State, Step, Task
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.model import ExperienceModel, Prediction, Query

MAX_ACTION_LENGTH = 2048
"""Most characters of an action in the action space; longer ones are still parsed."""

START_RESAMPLES = 4
"""How often a start whose commitments are not plausible is drawn anew."""


def action_space() -> FreeText:
    """Return the space of actions, which is the same for every domain: text, read by the domain's grammar."""
    return FreeText(MAX_ACTION_LENGTH, min_length=1)


@dataclass(frozen=True, slots=True)
class Moment:
    """Where an episode stands: all that its continuation depends on but the random numbers.

    Attributes:
        task: What is being attempted.
        state: The state now, private part included.
        steps: Steps taken.
        history: The last of them, oldest first.
        reward: Reward of the last step.
        terminated: Whether the last step ended the episode.
        truncated: Whether the last step was the last one allowed.
        invalid_action: Whether the last action was not in the grammar.
        reasoning: The model's reasoning about the last step.
    """

    task: Task
    state: State
    steps: int = 0
    history: tuple[Step, ...] = ()
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    invalid_action: bool = False
    reasoning: str = ""

    @property
    def ended(self) -> bool:
        """Whether there is no next step."""
        return self.terminated or self.truncated

    @property
    def success(self) -> bool:
        """Whether the episode ended with full reward."""
        return self.terminated and self.reward >= 1.0


class Episode:
    """The current episode of one environment.

    Args:
        domain: Whose actions and states these are.
        source: "dream" or "real".
        max_episode_steps: Steps after which an episode is truncated; None leaves that to a TimeLimit.
        history_length: Most steps that a query's history holds.
        validate: Check every state against the schema.

    Attributes:
        query: What the model has to be asked before the episode can go on.
        failed_starts: Starts kept although no resampling made their commitments plausible.
    """

    def __init__(
        self,
        domain: Domain,
        source: Literal["dream", "real"],
        *,
        max_episode_steps: int | None = None,
        history_length: int = 0,
        validate: bool = False,
    ) -> None:
        if history_length < 0:
            raise ValueError(f"history_length is {history_length}; expected 0 (no past steps in a query) or more")
        self.domain = domain
        self.source = source
        self.max_episode_steps = max_episode_steps
        self.history_length = history_length
        self.validate = validate
        self.query: Query | None = None
        self.failed_starts = 0
        self._moment: Moment | None = None
        self._rng: np.random.Generator | None = None
        self._resamples = 0

    @property
    def started(self) -> bool:
        """Whether there is a moment to speak of."""
        return self._moment is not None

    @property
    def moment(self) -> Moment:
        """Where the episode stands.

        Raises:
            ResetNeeded: No episode has been started.
        """
        if self._moment is None:
            raise ResetNeeded("no episode has started; call env.reset() first")
        return self._moment

    # --- what happens to an episode ----------------------------------------------------------------------------------

    def start(self, task: Task, rng: np.random.Generator) -> None:
        """Begin an episode of `task`; in a dream, ask the model what the world hides, if this one hides anything."""
        self._rng = rng
        if self.source == "dream" and self.domain.schema.private_names:
            # The episode before lasts until the model has answered: if it fails to, nothing has happened yet.
            self._resamples = 0
            self.query = Query(task, task.initial, None, rng=rng)
        else:
            self._place(Moment(task, task.initial))

    def resume(self, moment: Moment, rng: np.random.Generator) -> None:
        """Go on from a moment of this or another environment."""
        self._rng = rng
        self._place(moment)

    def accept(self, action: Any) -> bool:
        """Return whether an action is in the grammar; one that is not is rejected here and counts as a step.

        Raises:
            TypeError: The action is not a string.
            ResetNeeded: There is no episode to act in.
        """
        self.check(action)
        if self.domain.parse(action) is not None:
            return True
        state = self.domain.rejection(self.moment.state)
        self._advance(str(action), state, 0.0, False, "", invalid_action=True)
        return False

    def check(self, action: Any) -> None:
        """Raise what `accept` raises, and change nothing."""
        check_action(action)
        moment = self.moment
        if moment.ended:
            how = "terminated" if moment.terminated else f"was truncated after {moment.steps} steps"
            raise ResetNeeded(f"the episode {how}; call env.reset() to start the next one")

    def ask(self, action: str) -> None:
        """Leave the query for an accepted action."""
        moment = self.moment
        self.query = Query(moment.task, moment.state, str(action), moment.history, rng=self._rng)

    def record(self, action: str, state: State, reward: float, terminated: bool) -> None:
        """Take the step that an engine has taken."""
        self._advance(action, state, reward, terminated, "")

    def answer(self, prediction: Prediction) -> None:
        """Take the model's answer to `query`; an implausible start leaves the same query again."""
        query, self.query = self.query, None
        assert query is not None
        state = apply_delta(self.domain.schema, query.state, prediction.delta)
        if query.action is not None:
            state = self.domain.settle(state)
            self._advance(query.action, state, prediction.reward, prediction.terminated, prediction.reasoning)
            return
        # A commitment decides what is hidden, never what is seen. Its reasoning would give the secret away.
        start = State(query.task.initial.public, state.private)
        if not self.domain.plausible_start(query.task, start):
            if self._resamples < START_RESAMPLES:
                self._resamples += 1
                self.query = query
                return
            self.failed_starts += 1
        self._place(Moment(query.task, start))

    def _advance(
        self,
        action: str,
        state: State,
        reward: float,
        terminated: bool,
        reasoning: str,
        *,
        invalid_action: bool = False,
    ) -> None:
        before = self.moment
        steps = before.steps + 1
        step = Step(action, state, float(reward), bool(terminated), reasoning)
        # [-0:] would keep everything.
        history = (*before.history, step)[-self.history_length :] if self.history_length else ()
        truncated = self.max_episode_steps is not None and steps >= self.max_episode_steps
        self._place(
            Moment(
                before.task, state, steps, history, step.reward, step.terminated, truncated, invalid_action, reasoning
            )
        )

    def _place(self, moment: Moment) -> None:
        if self.validate:
            self.domain.schema.validate(moment.state)
        self._moment = moment
        self.query = None

    # --- what the agent gets -----------------------------------------------------------------------------------------

    def observation(self, public: Mapping[str, Any]) -> dict[str, Any]:
        """Return the observation of a public state: the moment's own, or a copy where the receiver may change it."""
        return {"instruction": self.moment.task.instruction, **self.domain.schema.observation(public)}

    def info(self, public: Mapping[str, Any]) -> dict[str, Any]:
        """Return the info of a public state.

        It has the state as plain data, the instruction, the candidate actions, the model's reasoning, whether the
        episode ended in success, whether the last action was invalid, the source ("dream" or "real"), and the task's id
        and family. Nothing in it depends on more than the episode's past and the seed.
        """
        moment = self.moment
        return {
            "state": public,
            "instruction": moment.task.instruction,
            "candidate_actions": self.domain.candidates(moment.task, moment.state),
            "reasoning": moment.reasoning,
            "success": moment.success,
            "invalid_action": moment.invalid_action,
            "source": self.source,
            "task_id": moment.task.id,
            "task_family": moment.task.family,
        }

    def render(self) -> str:
        """Return the state for a person at a terminal."""
        moment = self.moment
        return self.domain.render(moment.task, moment.state)


def check_action(action: Any) -> None:
    """Raise a TypeError unless the action is a string."""
    if not isinstance(action, str):
        raise TypeError(
            f"an action is a str such as those in info['candidate_actions'], not {action!r:.40} "
            f"({type(action).__name__}); for indices wrap the environment in dreamgym_envs.wrappers.CandidateActions"
        )


def resolve(model: ExperienceModel, episodes: Sequence[Episode]) -> None:
    """Ask the model the queries of all episodes in one batch, then again those of starts that have to be resampled."""
    waiting = [(episode, episode.query) for episode in episodes if episode.query is not None]
    while waiting:
        predictions = model.predict([query for _, query in waiting])
        for (episode, _), prediction in zip(waiting, predictions, strict=True):
            episode.answer(prediction)
        waiting = [(episode, episode.query) for episode, _ in waiting if episode.query is not None]
