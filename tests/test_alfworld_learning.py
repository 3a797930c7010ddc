"""What an ALFWorld episode teaches: what an action touches, why it came out so, what was hidden, what it reaches."""

import numpy as np
import pytest

from dreamgym_envs.core.types import State, Step, Task, Trajectory
from dreamgym_envs.domains import get_domain
from dreamgym_envs.domains.alfworld.focus import focus, hindsight
from dreamgym_envs.domains.alfworld.goal import goal_of, satisfied
from dreamgym_envs.domains.alfworld.grammar import parse
from dreamgym_envs.domains.alfworld.reasoning import explain
from dreamgym_envs.domains.alfworld.relabel import relabel
from dreamgym_envs.domains.alfworld.text import initial_state, instruction, observe
from dreamgym_envs.experience.dataset import dataset
from tests.household import Household


def episode(house: Household, *actions: str) -> Trajectory:
    """Play actions and return the episode."""
    state = initial_state(house.intro())
    task = Task("t", instruction(house.intro()), state)
    steps = []
    for action in actions:
        answer, done = house.step(action)
        state = observe(state, action, answer)
        steps.append(Step(action, state, float(done), done))
    return Trajectory(task, tuple(steps))


def kitchen(task: str) -> Household:
    contents = {
        "countertop 1": ["apple 1", "mug 1"],
        "countertop 2": [],
        "fridge 1": ["apple 2"],
        "sinkbasin 1": [],
        "microwave 1": [],
        "shelf 1": ["mug 2"],
    }
    return Household(
        task, contents, openable={"fridge 1", "microwave 1"}, refused=frozenset({("apple", "shelf"), ("mug", "fridge")})
    )


HOT_APPLE = (
    "go to countertop 1",
    "take apple 1 from countertop 1",
    "go to countertop 2",
    "move apple 1 to countertop 2",
    "take apple 1 from countertop 2",
    "go to microwave 1",
    "heat apple 1 with microwave 1",
    "go to countertop 2",
    "move apple 1 to countertop 2",
)


def test_a_focus_holds_what_the_action_and_the_instruction_name_and_nothing_else() -> None:
    # Given a kitchen of which the countertop is known
    played = episode(kitchen("put a hot mug in shelf."), "go to countertop 1")
    state = State(played.steps[-1].state.public, {"hidden": ({"name": "mug 2", "place": "shelf 1"},)})
    # When the agent takes the apple
    part = focus(played.task, state, parse("take apple 1 from countertop 1"))
    # Then the countertop is shown with the apple and with the mug that the task needs
    (row,) = part["receptacles"]
    assert (row["name"], [item["name"] for item in row["contents"]]) == ("countertop 1", ["apple 1", "mug 1"])
    assert "hidden" not in part
    # And a way to the shelf shows what was promised there
    assert focus(played.task, state, parse("go to shelf 1"))["hidden"] == ({"name": "mug 2", "place": "shelf 1"},)
    assert "hidden" not in focus(played.task, state, parse("go to fridge 1"))


def test_a_success_is_explained_by_every_condition_and_its_evidence() -> None:
    played = episode(kitchen("put a hot apple in countertop."), *HOT_APPLE)
    lines = [explain(transition).splitlines() for transition in played.transitions()]
    assert played.success
    assert lines[3][-3:] == ["countertop 2 is where: yes", "hot: no", "task not done"]
    assert lines[-1] == [
        "holding apple 1: yes",
        "at countertop 2: yes",
        "accessible: yes",
        "fits: yes",
        "apple 1 is what is wanted: yes",
        "countertop 2 is where: yes",
        "it is hot",
        "hot: yes",
        "task done",
    ]


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (("take apple 1 from countertop 1",), "at countertop 1: no"),
        (("go to fridge 1", "take apple 2 from fridge 1"), "accessible: no"),
        (("go to countertop 1", "take apple 2 from countertop 1"), "apple 2 there: no"),
        (
            ("go to countertop 1", "take apple 1 from countertop 1", "take mug 1 from countertop 1"),
            "hand empty: no",
        ),
        (
            ("go to countertop 1", "take apple 1 from countertop 1", "go to shelf 1", "move apple 1 to shelf 1"),
            "fits: no",
        ),
        (("go to countertop 1", "clean apple 1 with countertop 1"), "holding apple 1: no"),
        (
            ("go to countertop 1", "take apple 1 from countertop 1", "clean apple 1 with countertop 1"),
            "countertop 1 is for it: no",
        ),
        (("go to countertop 1", "close countertop 1"), "open: no"),
        (("go to countertop 1", "use mug 1"), "has a switch: no"),
        (("go to countertop 1", "go to countertop 1"), "countertop 1 is here: yes"),
    ],
)
def test_a_failure_is_explained_by_the_first_condition_that_does_not_hold(
    actions: tuple[str, ...], reason: str
) -> None:
    played = episode(kitchen("put a hot apple in countertop."), *actions)
    lines = explain(played.transitions()[-1]).splitlines()
    assert lines[-1] == "nothing happens"
    assert reason in lines
    assert all(not line.endswith(": no") for line in lines[: lines.index(reason)])


def test_hindsight_knows_where_everything_was_before_anybody_saw_it() -> None:
    played = episode(
        kitchen("put two apple in countertop."),
        "go to shelf 1",
        "go to fridge 1",
        "open fridge 1",
        "go to countertop 1",
    )
    first = {"name": "apple 2", "place": "fridge 1"}
    second = {"name": "apple 1", "place": "countertop 1"}
    expected = [(first, second)] * 3 + [(second,)]
    assert [private["hidden"] for private in hindsight(played)] == expected


@pytest.mark.parametrize("seed", range(40))
def test_a_relabelled_episode_is_paid_exactly_where_its_goal_is_reached(seed: int) -> None:
    # Given an episode that places a hot apple, seen again under another instruction
    played = episode(kitchen("put a hot apple in countertop."), *HOT_APPLE, "go to shelf 1", "take mug 2 from shelf 1")
    other = relabel(played, np.random.default_rng(seed))
    if other is None:
        return
    goal = goal_of(other.task.instruction)
    assert other.task.instruction != played.task.instruction
    assert other.task.family == goal.family
    # Then only the last step can be paid, and is if and only if it reaches the goal
    paid = [step.reward for step in other.steps]
    assert paid == [float(satisfied(goal, step.state)) for step in other.steps]
    assert all(reward == 0.0 for reward in paid[:-1])
    assert len(other.steps) <= len(played.steps)


def test_no_relabelled_episode_shows_its_goal_reached_without_the_agent() -> None:
    # Given a mug that stands on the shelf from the start
    played = episode(kitchen("put a hot apple in countertop."), "go to shelf 1", "take mug 2 from shelf 1")
    for seed in range(200):
        other = relabel(played, np.random.default_rng(seed))
        assert other is None or other.task.instruction not in ("put a mug in shelf.", "put some mug on shelf.")


def test_another_task_teaches_only_what_it_makes_a_difference_to() -> None:
    # Given an episode, when it is seen again as if many other tasks had been set
    domain = get_domain("alfworld")
    played = episode(kitchen("put a hot apple in countertop."), *HOT_APPLE)
    own = {query.action: target for query, target in dataset(domain, [played], relabels=0, start_relabels=0)}
    pairs = dataset(domain, [played], relabels=40, start_relabels=0)
    others = [(query, target) for query, target in pairs if query.task.id != played.task.id and query.action]
    # Then only the moves that could end them are told again, with other answers
    assert others
    assert all(target != own[query.action] for query, target in others)
    assert {query.action.split()[0] for query, _ in others} == {"move"}


def test_the_domain_answers_for_its_parts() -> None:
    domain = get_domain("alfworld")
    played = episode(kitchen("put a hot apple in countertop."), *HOT_APPLE)
    hidden = domain.hindsight(played)[0]
    assert domain.plausible_start(played.task, State(played.task.initial.public, hidden))
    seen = State(played.steps[0].state.public, hidden)
    assert domain.settle(seen).private["hidden"] == ()
    assert domain.goal_satisfied(played.task, played.steps[-1].state)
