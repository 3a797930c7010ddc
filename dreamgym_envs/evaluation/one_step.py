"""One step at a time: the experience model's prediction beside what really came of an action.

Each query has the true state, with the hidden part that the episode revealed in hindsight, and no demonstrations;
decoding is greedy. Every prediction is applied and checked against the schema.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dreamgym_envs.core.delta import DeltaError, apply_delta
from dreamgym_envs.core.schema import Node, StateError
from dreamgym_envs.core.types import JSON, State, Trajectory, Transition, thaw
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.model import ExperienceModel, Prediction, Query

__all__ = ["Judgement", "judge", "one_step_metrics", "real_transitions"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A prediction beside the truth.

    Attributes:
        transition: What really happened; the state before it has its hidden part.
        verb: Verb of the action.
        deterministic: Whether the transition reveals nothing, so that there is one right answer.
        prediction: What the model says.
        predicted: The state that it leads to; None if it cannot be applied or breaks the schema.
        error: Why it is invalid, empty if it is not.
        state_right: Whether the next public state is right; the order within keyed arrays does not matter.
        enums_right: For each enum at the root of the public state, whether it is right.
    """

    transition: Transition
    verb: str
    deterministic: bool
    prediction: Prediction
    predicted: State | None
    error: str
    state_right: bool
    enums_right: Mapping[str, bool]

    @property
    def exact(self) -> bool:
        """Whether state, reward and end are all right."""
        return (
            self.state_right
            and abs(self.prediction.reward - self.transition.reward) < 1e-6
            and self.prediction.terminated == self.transition.terminated
        )

    @property
    def wrong(self) -> bool:
        """Whether a perfect model would have said something else: deterministic and not exact, or success misjudged."""
        return (self.deterministic and not self.exact) or self.predicted_success != self.success

    def describe(self) -> dict[str, Any]:
        """Return what was predicted beside what happened, for somebody who looks for the reason; a JSON document."""
        return {
            "instruction": self.transition.task.instruction,
            "action": self.transition.action,
            "expected": [self.transition.reward, self.transition.terminated],
            "predicted": [self.prediction.reward, self.prediction.terminated],
            "state_right": self.state_right,
            "delta": [[edit.op, "/".join(edit.path), thaw(edit.value)] for edit in self.prediction.delta],
            "reasoning": self.prediction.reasoning,
            "error": self.error,
        }

    @property
    def success(self) -> bool:
        """Whether the transition really ends the episode in success."""
        return self.transition.terminated and self.transition.reward >= 1.0

    @property
    def predicted_success(self) -> bool:
        """Whether the model says so."""
        return self.prediction.terminated and self.prediction.reward >= 1.0


def real_transitions(
    domain: Domain, trajectories: Iterable[Trajectory], history_length: int = 8
) -> Iterator[Transition]:
    """Yield the transitions that a model can be asked, with the hidden part that their episode revealed."""
    for trajectory in trajectories:
        hidden = domain.hindsight(trajectory)
        for transition, private in zip(trajectory.transitions(), hidden, strict=True):
            if domain.parse(transition.action) is not None:
                yield Transition(
                    task=transition.task,
                    state=State(transition.state.public, private),
                    action=transition.action,
                    next_state=transition.next_state,
                    reward=transition.reward,
                    terminated=transition.terminated,
                    history=transition.history[-history_length:],
                )


def judge(
    domain: Domain, model: ExperienceModel, transitions: Iterable[Transition], batch_size: int = 64
) -> Iterator[Judgement]:
    """Yield the model's greedy prediction of each transition, compared with the truth, in order.

    Args:
        domain: The domain of the transitions.
        model: The model to be judged.
        transitions: From `real_transitions`.
        batch_size: Queries put to the model at once.
    """
    source = iter(transitions)
    while batch := list(islice(source, batch_size)):
        queries = [Query(t.task, t.state, t.action, t.history) for t in batch]
        for transition, prediction in zip(batch, model.predict(queries), strict=True):
            yield _compare(domain, transition, prediction)


def _compare(domain: Domain, transition: Transition, prediction: Prediction) -> Judgement:
    action = domain.parse(transition.action)
    assert action is not None
    predicted: State | None = None
    error = ""
    try:
        predicted = domain.settle(apply_delta(domain.schema, transition.state, prediction.delta))
        domain.schema.validate(predicted)
    except (DeltaError, StateError) as problem:
        predicted, error = None, str(problem)
    truth = transition.next_state.public
    return Judgement(
        transition=transition,
        verb=action.verb,
        deterministic=not domain.reveals(transition),
        prediction=prediction,
        predicted=predicted,
        error=error,
        state_right=predicted is not None and _same(domain.schema.root, predicted.public, truth),
        enums_right={
            name: predicted is not None and predicted.public[name] == truth[name]
            for name in domain.schema.public_names
            if domain.schema.root.children[name].kind == "enum"
        },
    )


def _same(node: Node, left: JSON, right: JSON) -> bool:
    """Return whether two values below a node are equal up to the order within keyed arrays."""
    if left == right:
        return True
    if node.kind == "object":
        return all(_same(child, left[n], right[n]) for n, child in node.children.items() if not child.private)
    if node.kind == "array" and node.key is not None and node.items is not None and len(left) == len(right):
        others = {element[node.key]: element for element in right}
        return all(e[node.key] in others and _same(node.items, e, others[e[node.key]]) for e in left)
    return False


def one_step_metrics(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Return the one-step part of a fidelity report; shares are None where there is nothing to share.

    Keys: n, all_exact, deterministic (how many transitions are), deterministic_exact, successes (how many transitions
    are), success_recall (share of the true successes that are predicted), success_precision (share of the predicted
    successes that are true), false_successes, false_success_per_1000, reward_mae (mean absolute error of the reward
    of the transitions that end the episode, in truth or by the prediction), enum_accuracy (for each enum at the root of
    the public state, such as the kind of a page, the share of predictions that have it right; an invalid one has not),
    invalid (predictions that break the schema), by_verb (the shares of exact ones for each verb of the grammar).
    """
    successes = [j for j in judgements if j.success]
    claimed = [j for j in judgements if j.predicted_success]
    false = sum(not j.success for j in claimed)
    misses = [
        abs(j.prediction.reward - j.transition.reward)
        for j in judgements
        if j.transition.terminated or j.prediction.terminated
    ]
    verbs = sorted({j.verb for j in judgements})
    return {
        **_exactness(judgements),
        "successes": len(successes),
        "success_recall": _share([j.predicted_success for j in successes]),
        "success_precision": _share([j.success for j in claimed]),
        "false_successes": false,
        "false_success_per_1000": 1000 * false / len(judgements) if judgements else None,
        "reward_mae": sum(misses) / len(misses) if misses else None,
        "enum_accuracy": {
            name: _share([j.enums_right[name] for j in judgements])
            for name in (judgements[0].enums_right if judgements else ())
        },
        "invalid": sum(bool(j.error) for j in judgements),
        "by_verb": {verb: _exactness([j for j in judgements if j.verb == verb]) for verb in verbs},
    }


def _exactness(judgements: Sequence[Judgement]) -> dict[str, Any]:
    deterministic = [j.exact for j in judgements if j.deterministic]
    return {
        "n": len(judgements),
        "all_exact": _share([j.exact for j in judgements]),
        "deterministic": len(deterministic),
        "deterministic_exact": _share(deterministic),
    }


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
