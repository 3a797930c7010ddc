"""How true a dream is: an experience model measured on real episodes that it was not trained on.

Three looks at it. One step at a time: is the prediction right, are successes found and none made up (`one_step`)? Over
20 steps: does the dream contradict what it has shown (`consistency`)? Over whole episodes: do the same players do as
well on the same tasks as they really did?
"""

from collections.abc import Callable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from dreamgym_envs.core.types import State, Trajectory
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.evaluation.consistency import contradictions
from dreamgym_envs.evaluation.one_step import judge, one_step_metrics, real_transitions
from dreamgym_envs.evaluation.rollouts import Start, dream_rollouts
from dreamgym_envs.evaluation.statistics import wilson_interval
from dreamgym_envs.experience.model import ExperienceModel

__all__ = ["ROLLOUT_STEPS", "consistency_metrics", "fidelity", "player_metrics"]

ROLLOUT_STEPS = 20
"""Steps of a dream within which contradictions are counted."""

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done and how much there is."""


def fidelity(
    domain: Domain,
    model: ExperienceModel,
    trajectories: Sequence[Trajectory],
    *,
    data: str = "",
    limit: int | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    batch_size: int = 64,
    mistakes: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure an experience model on real episodes.

    Args:
        domain: The domain.
        model: The model.
        trajectories: Real episodes that it was not trained on. Those with a kind of player are dreamt of, too.
        data: Where they come from, for the report.
        limit: Most transitions judged one by one; None judges all. Whole episodes are dreamt of in any case.
        max_steps: Steps after which an episode is cut, dreamt or real; the domain's limit by default.
        seed: Seed of the dreams.
        batch_size: Queries put to the model at once.
        mistakes: Most wrong predictions to report in full.
        progress: Told how far it is.

    Returns:
        A JSON document: domain, data, episodes; the keys of `one_step_metrics`; contradictions_per_100; for each
        player {player}_success_real and {player}_success_dream with {...}_ci95 (Wilson) and {player}_episodes;
        `paid_satisfied`, the share of paid successes in the dream that satisfy the goal by the domain's rule (None
        without successes); failed_starts, the dreams whose start was never plausible; mistakes.

    Raises:
        ValueError: There are no episodes, or one is not real.
    """
    if not trajectories:
        raise ValueError("no episodes to measure with; record some with `dreamgym record`")
    if any(trajectory.source != "real" for trajectory in trajectories):
        raise ValueError("fidelity is measured on real episodes; some of these were dreamt")

    def tell(stage: str, done: int, total: int) -> None:
        if progress is not None:
            progress(stage, done, total)

    transitions = list(real_transitions(domain, trajectories))[:limit]
    judgements = []
    for judgement in judge(domain, model, transitions, batch_size):
        judgements.append(judgement)
        tell("single steps", len(judgements), len(transitions))

    starts = [Start(trajectory.task, trajectory.player) for trajectory in trajectories if trajectory.player]
    max_steps = max_steps or domain.max_episode_steps
    dreams = dream_rollouts(
        domain,
        model,
        starts,
        max_steps,
        seed=seed,
        batch_size=batch_size,
        progress=lambda done: tell("dreamt episodes", done, len(starts)),
    )
    return {
        "domain": domain.name,
        "data": data,
        "episodes": len(trajectories),
        **one_step_metrics(judgements),
        **consistency_metrics(domain, dreams),
        **player_metrics(domain, trajectories, dreams, max_steps),
        "mistakes": [judgement.describe() for judgement in islice(filter(attrgetter("wrong"), judgements), mistakes)],
    }


def consistency_metrics(domain: Domain, dreams: Sequence[Trajectory], steps: int = ROLLOUT_STEPS) -> dict[str, Any]:
    """Count what dreams contradict within their first steps.

    Returns:
        contradictions_per_100 (steps), contradiction_examples (at most five).
    """
    found: list[str] = []
    taken = 0
    for dream in dreams:
        before = dream.task.initial
        for step in dream.steps[:steps]:
            action = domain.parse(step.action)
            touched = domain.touched(before, action) if action is not None else ()
            found += [f"{step.action}: {text}" for text in contradictions(domain.schema, before, step.state, touched)]
            before = step.state
            taken += 1
    return {
        "contradictions_per_100": 100 * len(found) / taken if taken else None,
        "contradiction_examples": found[:5],
    }


def player_metrics(
    domain: Domain, real: Sequence[Trajectory], dreams: Sequence[Trajectory], max_steps: int
) -> dict[str, Any]:
    """Compare players' success within `max_steps` on the same tasks, and audit what the dream has paid for."""
    result: dict[str, Any] = {}
    for player in sorted({trajectory.player for trajectory in real if trajectory.player}):
        for source, episodes in (("real", real), ("dream", dreams)):
            outcomes = [
                trajectory.success and len(trajectory.steps) <= max_steps
                for trajectory in episodes
                if trajectory.player == player
            ]
            result[f"{player}_success_{source}"] = sum(outcomes) / len(outcomes)
            result[f"{player}_success_{source}_ci95"] = list(wilson_interval(sum(outcomes), len(outcomes)))
        result[f"{player}_episodes"] = len(outcomes)
    for player in ("expert", "noisy", "random"):
        for source in ("real", "dream"):
            result.setdefault(f"{player}_success_{source}", None)
    paid = [dream for dream in dreams if dream.success]
    true = sum(domain.goal_satisfied(dream.task, State(dream.steps[-1].state.public)) for dream in paid)
    result["paid_satisfied"] = true / len(paid) if paid else None
    result["failed_starts"] = sum(bool(dream.metadata["failed_start"]) for dream in dreams)
    return result
