"""Fidelity: what the metrics of an experience model say about models whose faults are known."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dreamgym_envs.core.delta import Edit, diff
from dreamgym_envs.core.knowledge import known, revealed
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import State, Task, Trajectory, Transition
from dreamgym_envs.domains import DOMAINS, get_domain
from dreamgym_envs.evaluation.consistency import contradictions
from dreamgym_envs.evaluation.fidelity import fidelity
from dreamgym_envs.evaluation.one_step import judge, one_step_metrics, real_transitions
from dreamgym_envs.evaluation.rollouts import Start, dream_rollouts
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.trajectories.record import Plan, play_episode
from tests.toy import SCHEMA as TOY
from tests.toy import Boxes, thing

SCHEMA = Boxes.schema
LAMP = {"lamp": {"enum": ["on", "off"]}}


class Seeker:
    """Looks into the boxes in turn and takes what is wanted as soon as it is seen; a careless one looks at random."""

    def __init__(self, domain: Boxes, careless: bool) -> None:
        self.domain, self.careless = domain, careless

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        self.task, self.rng = task, rng

    def act(self, state: State) -> str:
        assert not state.private, "a player sees what an agent sees"
        options = self.domain.candidates(self.task, state)
        wanted = f"take {self.task.instruction.split()[-1]}"
        good = [option for option in options if option.startswith(wanted)]
        good = good or [f"look {box['name']}" for box in state.public["boxes"] if box["status"] == "unseen"]
        return str(self.rng.choice(options)) if self.careless or not good else good[0]


class PlayedBoxes(Boxes):
    """Boxes with an expert and a random player."""

    def player(self, kind: str) -> Any:
        return Seeker(self, careless={"expert": False, "random": True}[kind])


DOMAIN = PlayedBoxes()


class Honest:
    """Knows the rules of the boxes; makes up at reset where the two wanted things are, and nothing else."""

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        return [self.answer(query) for query in queries]

    def answer(self, query: Query) -> Prediction:
        wanted = query.task.instruction.split()[-1]
        if query.action is None:
            assert query.rng is not None, "commitments are drawn"
            places = [f"box {int(query.rng.integers(1, 4))}" for _ in range(2)]
            secret = tuple({"name": f"{wanted} {i}", "place": place} for i, place in enumerate(places, start=1))
            return Prediction("", (Edit("set", ("hidden",), secret),), 0.0, False)
        public = dict(query.state.public)
        verb, _, name = query.action.partition(" ")
        box = next((box for box in public["boxes"] if box["name"] == name), None)
        reward = 0.0
        if verb == "look" and box is not None:
            inside = box["contents"]
            if box["status"] == "unseen":
                inside = tuple(thing(e["name"]) for e in query.state.private["hidden"] if e["place"] == name)
            public["at"], public["feedback"] = (name,), f"You look into {name}."
            seen = {**box, "status": "seen", "contents": inside}
            public["boxes"] = tuple(seen if other is box else other for other in public["boxes"])
        elif verb == "take" and not public["holding"] and self.here(public, name):
            public["holding"], public["feedback"] = (thing(name),), f"You take {name}."
            public["boxes"] = tuple(
                {**box, "contents": tuple(o for o in box["contents"] if o["name"] != name)} for box in public["boxes"]
            )
            reward = float(name.startswith(wanted))
        else:
            public["feedback"] = "Nothing."
            reward = float(any(held["name"].startswith(wanted) for held in public["holding"]))
        delta = diff(SCHEMA, query.state, State(public, query.state.private))
        return self.say(query, Prediction("fine", delta, reward, reward == 1.0))

    def here(self, public: dict[str, Any], name: str) -> bool:
        return any(o["name"] == name for box in public["boxes"] if box["name"] in public["at"] for o in box["contents"])

    def say(self, query: Query, prediction: Prediction) -> Prediction:
        return prediction


class Faulty(Honest):
    """Honest but for one fault, made by `spoil`."""

    def __init__(self, spoil: Callable[[Query, Prediction], Prediction]) -> None:
        self.say = spoil  # type: ignore[method-assign]


def real_episodes(count: int, **players: float) -> list[Trajectory]:
    engine = DOMAIN.engine()
    plan = Plan(players or {"expert": 1, "random": 1}, 0, DOMAIN.max_episode_steps)
    return [play_episode(DOMAIN, engine, plan, index) for index in range(count)]


EPISODES = real_episodes(60)


def measure(model: Any, episodes: list[Trajectory] = EPISODES, **options: Any) -> dict[str, Any]:
    return fidelity(DOMAIN, model, episodes, data="test", **options)


# --- one step at a time ----------------------------------------------------------------------------------------------


def test_an_honest_model_is_exact_wherever_nothing_is_revealed() -> None:
    result = measure(Honest())
    assert result["deterministic_exact"] == 1.0
    assert result["success_recall"] == 1.0
    assert result["false_success_per_1000"] == 0.0
    assert result["invalid"] == 0
    assert 0 < result["deterministic"] < result["n"]
    assert result["all_exact"] < 1.0  # it cannot know what junk is in a box


def test_a_wrong_feedback_is_an_inexact_state() -> None:
    def mumble(query: Query, prediction: Prediction) -> Prediction:
        return replace(prediction, delta=(*prediction.delta, Edit("set", ("feedback",), "Hm.")))

    assert measure(Faulty(mumble))["deterministic_exact"] == 0.0


def test_a_wrong_reward_alone_is_inexact_and_a_wrong_end_too() -> None:
    stingy = measure(Faulty(lambda query, prediction: replace(prediction, reward=0.0)))
    endless = measure(Faulty(lambda query, prediction: replace(prediction, terminated=False)))
    for result in (stingy, endless):
        assert result["success_recall"] == 0.0 and result["deterministic_exact"] < 1.0
        assert result["expert_success_dream"] == 0.0


def test_false_successes_are_counted_per_thousand_transitions() -> None:
    def generous(query: Query, prediction: Prediction) -> Prediction:
        return replace(prediction, reward=1.0, terminated=True) if query.action == "look box 1" else prediction

    result = measure(Faulty(generous))
    lies = sum(t.action == "look box 1" for t in real_transitions(DOMAIN, EPISODES))
    assert result["false_successes"] == lies > 0
    assert result["false_success_per_1000"] == pytest.approx(1000 * lies / result["n"])
    assert result["paid_satisfied"] < 1.0  # and the dreams' audit sees them, too


def test_precision_is_the_share_of_the_predicted_successes_that_are_true() -> None:
    def generous(query: Query, prediction: Prediction) -> Prediction:
        return replace(prediction, reward=1.0, terminated=True) if query.action == "look box 1" else prediction

    result = measure(Faulty(generous))
    assert measure(Honest())["success_precision"] == 1.0
    assert result["success_precision"] == result["successes"] / (result["successes"] + result["false_successes"]) < 1
    assert measure(Faulty(lambda _, said: replace(said, reward=0.0)))["success_precision"] is None


def test_the_error_of_the_reward_is_over_the_ends_of_episodes_true_or_predicted() -> None:
    stingy = measure(Faulty(lambda query, said: replace(said, reward=said.reward * 0.75)))
    assert measure(Honest())["reward_mae"] == 0.0
    assert stingy["reward_mae"] == pytest.approx(0.25)

    def hasty(query: Query, said: Prediction) -> Prediction:
        return replace(said, reward=0.5, terminated=True) if query.action == "look box 1" else said

    result = measure(Faulty(hasty))
    wrong = sum(t.action == "look box 1" for t in real_transitions(DOMAIN, EPISODES))
    assert result["reward_mae"] == pytest.approx(0.5 * wrong / (wrong + result["successes"]))
    looks = [replace(EPISODES[0], steps=EPISODES[0].steps[:1])]
    assert measure(Honest(), looks)["reward_mae"] is None  # nothing ends


def test_each_enum_of_the_public_state_has_its_accuracy() -> None:
    class Lit(PlayedBoxes):
        """Boxes under a lamp that is always on."""

        schema = Schema({**TOY, "required": [*TOY["required"], "lamp"], "properties": {**TOY["properties"], **LAMP}})

    def lit(state: State) -> State:
        return State({**state.public, "lamp": "on"}, state.private)

    def dark(query: Query, said: Prediction) -> Prediction:
        edits = {"look box 1": Edit("set", ("lamp",), "off"), "look box 2": Edit("set", ("lamp",), "broken")}
        return replace(said, delta=(*said.delta, edits[query.action])) if query.action in edits else said

    transitions = [
        replace(t, state=lit(t.state), next_state=lit(t.next_state)) for t in real_transitions(DOMAIN, EPISODES)
    ]
    result = one_step_metrics(list(judge(Lit(), Faulty(dark), transitions)))
    wrong = sum(t.action in ("look box 1", "look box 2") for t in transitions)
    assert result["enum_accuracy"] == {"lamp": pytest.approx(1 - wrong / len(transitions))}
    assert measure(Honest())["enum_accuracy"] == {}  # boxes have none


@pytest.mark.parametrize(
    "edit", [Edit("set", ("colour",), "red"), Edit("set", ("feedback",), 7), Edit("remove", ("boxes",), ("box 9",))]
)
def test_a_prediction_that_breaks_the_schema_is_invalid_and_not_exact(edit: Edit) -> None:
    model = Faulty(lambda query, prediction: replace(prediction, delta=(*prediction.delta, edit)))
    judgements = list(judge(DOMAIN, model, real_transitions(DOMAIN, EPISODES[:5])))
    metrics = one_step_metrics(judgements)
    assert metrics["invalid"] == metrics["n"] and metrics["all_exact"] == 0.0
    assert all(judgement.error and judgement.predicted is None for judgement in judgements)


def test_the_order_in_keyed_arrays_does_not_matter() -> None:
    def shuffle(query: Query, prediction: Prediction) -> Prediction:
        boxes = [edit for edit in prediction.delta if edit.path[0] != "boxes"]
        return replace(prediction, delta=(*boxes, *reversed([e for e in prediction.delta if e.path[0] == "boxes"])))

    def turn(query: Query, prediction: Prediction) -> Prediction:
        turned = tuple(reversed(query.state.public["boxes"]))
        return replace(prediction, delta=(Edit("set", ("boxes",), turned), *shuffle(query, prediction).delta))

    assert measure(Faulty(turn))["deterministic_exact"] == 1.0


def test_queries_have_what_the_episode_reveals_later_and_no_chance() -> None:
    asked: list[Query] = []

    class Curious(Honest):
        def answer(self, query: Query) -> Prediction:
            asked.append(query)
            return super().answer(query)

    transitions = list(real_transitions(DOMAIN, EPISODES))
    batches = [len(batch) for batch in [list(judge(DOMAIN, Curious(), transitions, batch_size=7))]]
    assert batches == [len(transitions)] == [len(asked)]
    assert all(query.rng is None and not query.demonstrations and len(query.history) <= 8 for query in asked)
    assert any(query.state.private["hidden"] for query in asked)


def test_actions_outside_the_grammar_are_no_question_for_the_model() -> None:
    [first, *rest] = EPISODES[0].steps
    odd = replace(EPISODES[0], steps=(replace(first, action="jump"), *rest))
    assert len(list(real_transitions(DOMAIN, [odd]))) == len(rest)


def test_shares_by_verb_add_up() -> None:
    result = measure(Honest())
    assert result["by_verb"].keys() == {"look", "take"}
    assert sum(part["n"] for part in result["by_verb"].values()) == result["n"]


def test_mistakes_are_shown_on_demand() -> None:
    stingy = Faulty(lambda query, prediction: replace(prediction, reward=0.0))
    assert measure(stingy)["mistakes"] == []
    [first, _] = measure(stingy, mistakes=2)["mistakes"]
    assert first["expected"] == [1.0, True] and first["predicted"] == [0.0, True] and first["reasoning"] == "fine"
    assert measure(Honest(), mistakes=2)["mistakes"] == []


def test_a_limit_bounds_the_single_steps() -> None:
    assert measure(Honest(), limit=10)["n"] == 10


# --- what is revealed ------------------------------------------------------------------------------------------------


def test_a_transition_reveals_if_a_hidden_array_becomes_known() -> None:
    [trajectory] = real_episodes(1, expert=1)
    first = trajectory.transitions()[0]
    assert first.action == "look box 1"
    assert DOMAIN.reveals(first)
    assert revealed(SCHEMA, first.state, first.next_state) == {("boxes", "box 1", "contents")}
    assert known(SCHEMA, first.state) == frozenset()
    again = Transition(first.task, first.next_state, first.action, first.next_state, 0.0, False)
    assert not DOMAIN.reveals(again)


# --- contradictions --------------------------------------------------------------------------------------------------


def boxes(*contents: tuple[str, ...] | None, held: str = "", wet: str = "") -> State:
    """Return a state of boxes; None is a box that nobody has looked into."""
    return State(
        {
            "at": (),
            "holding": (thing(held),) if held else (),
            "boxes": tuple(
                {
                    "name": f"box {i}",
                    "status": "unseen" if inside is None else "seen",
                    "contents": tuple(thing(name, *(["wet"] if name == wet else [])) for name in inside or ()),
                }
                for i, inside in enumerate(contents, start=1)
            ),
            "feedback": "",
        }
    )


@pytest.mark.parametrize(
    ("after", "touched", "what"),
    [
        (boxes(("ball 1",), None), [], None),
        (boxes(("ball 1",), ("pin 1",)), [], None),
        (boxes((), None, held="ball 1"), ["ball 1"], None),
        (boxes(("ball 1",), None, wet="ball 1"), ["ball 1"], None),
        (boxes(("ball 1", "pin 1"), None), ["pin 1"], None),
        (boxes((), None, held="ball 1"), [], "ball 1 changed"),
        (boxes(("ball 1",), None, wet="ball 1"), [], "ball 1 changed"),
        (boxes((), None), [], "ball 1 is gone"),
        (boxes((), None), ["ball 1"], "ball 1 is gone"),
        (boxes(("ball 1",), ("ball 1",)), [], "ball 1 is in 2 places: boxes/box 1/contents, boxes/box 2/contents"),
        (boxes(("ball 1",), None, held="ball 1"), ["ball 1"], "ball 1 is in 2 places"),
        (boxes(("ball 1", "pin 1"), None), [], "pin 1 joined boxes/box 1/contents"),
        (boxes(None, None), ["ball 1"], "boxes/box 1/contents was known and is hidden again"),
        (boxes(("ball 1",)), [], "boxes/box 2 is gone"),
    ],
)
def test_a_contradiction_is_a_revealed_fact_that_no_longer_holds(
    after: State, touched: list[str], what: str | None
) -> None:
    found = contradictions(SCHEMA, boxes(("ball 1",), None), after, touched)
    assert (found == []) if what is None else any(what in sentence for sentence in found)


LETTERS = Schema(
    {
        "type": "object",
        "required": ["sender", "letters", "piles", "marks", "weather"],
        "properties": {
            "sender": {"type": "string", "x-fixed": True},
            "letters": {
                "type": "array",
                "x-key": "name",
                "items": {
                    "type": "object",
                    "required": ["name", "stamp", "status", "lines", "notes"],
                    "properties": {
                        "name": {"type": "string", "x-unique": "letter"},
                        "stamp": {"type": "string", "x-fixed": True},
                        "status": {"enum": ["shut", "read"]},
                        "lines": {
                            "type": "array",
                            "items": {"type": "string"},
                            "x-known": {"field": "status", "values": ["read"]},
                            "x-fixed": True,
                        },
                        "notes": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
            "piles": {
                "type": "array",
                "x-key": "name",
                "items": {
                    "type": "object",
                    "required": ["name", "letters"],
                    "properties": {
                        "name": {"type": "string"},
                        "letters": {"type": "array", "x-fixed": True, "items": {"type": "string", "x-ref": "letters"}},
                    },
                },
            },
            "marks": {
                "type": "array",
                "x-key": "name",
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            },
            "weather": {"enum": ["sun", "rain"]},
        },
    }
)
"""Letters with stamps and, once they are read, lines, that nothing changes; marks come and go."""


def post(stamp: str = "blue", lines: tuple[str, ...] | None = None, **changes: Any) -> State:
    """Return a state with one letter, which nobody has read if it has no lines."""
    letter = {
        "name": "a",
        "stamp": stamp,
        "status": "shut" if lines is None else "read",
        "lines": lines or (),
        "notes": changes.pop("notes", ()),
    }
    piles = ({"name": "left", "letters": ("a",)},)
    mark = ({"name": "cross"},)
    public = {"sender": "Eve", "letters": (letter,), "piles": piles, "marks": mark, "weather": "sun", **changes}
    return State(public)


@pytest.mark.parametrize(
    ("before", "after", "touched", "what"),
    [
        (post(), post(weather="rain"), [], []),
        (post(), post(lines=("hello",)), ["a"], []),
        (post(lines=("hello",)), post(lines=("hello",), notes=("short",)), ["a"], []),
        (post(), post(marks=()), [], []),
        (post(), post(stamp="red"), ["a"], ["letters/a/stamp changed although it is fixed"]),
        (post(lines=("hello",)), post(lines=("bye",)), ["a"], ["letters/a/lines changed although it is fixed"]),
        (post(), post(stamp="red"), [], ["a changed although the action does not touch it"]),
        (post(), post(sender="Ann"), ["a"], ["sender changed although it is fixed"]),
        (
            post(),
            post(piles=({"name": "left", "letters": ()},)),
            ["a"],
            ["piles/left/letters changed although it is fixed"],
        ),
        (post(), post(piles=()), ["a"], ["piles/left is gone"]),
        (post(lines=("hello",)), post(letters=()), ["a"], ["a is gone"]),
        (post(lines=("hello",)), post(), ["a"], ["letters/a/lines was known and is hidden again"]),
    ],
)
def test_what_is_fixed_stays_whatever_the_action_touches(
    before: State, after: State, touched: list[str], what: list[str]
) -> None:
    assert contradictions(LETTERS, before, after, touched) == what


def test_real_episodes_have_no_contradictions() -> None:
    for trajectory in EPISODES:
        for transition in trajectory.transitions():
            action = DOMAIN.parse(transition.action)
            assert action is not None
            touched = DOMAIN.touched(transition.state, action)
            assert not contradictions(SCHEMA, transition.state, transition.next_state, touched)


@pytest.mark.parametrize("name", DOMAINS)
def test_no_real_environment_contradicts_itself(name: str) -> None:
    domain = get_domain(name)
    try:
        engine = domain.engine(**domain.held_out["generated"])
    except ImportError as error:
        pytest.skip(str(error))
    plan = Plan({"expert": 1, "noisy": 2, "random": 1}, 0, domain.max_episode_steps)
    transitions = [t for index in range(8) for t in play_episode(domain, engine, plan, index).transitions()]
    engine.close()
    assert len(transitions) > 100
    for transition in transitions:
        action = domain.parse(transition.action)
        touched = domain.touched(transition.state, action) if action is not None else ()
        assert not contradictions(domain.schema, transition.state, transition.next_state, touched)


def test_contradictions_are_counted_per_hundred_steps_of_dream() -> None:
    def forget(query: Query, prediction: Prediction) -> Prediction:
        if query.action == "look box 3":
            return replace(prediction, delta=(*prediction.delta, Edit("remove", ("boxes",), ("box 2",))))
        return prediction

    assert measure(Honest())["contradictions_per_100"] == 0.0
    result = measure(Faulty(forget), episodes=real_episodes(10, expert=1))
    assert result["contradictions_per_100"] > 0
    assert "box 2 is gone" in result["contradiction_examples"][0]


# --- players, dreamt and real ----------------------------------------------------------------------------------------


def test_players_play_the_same_tasks_in_the_dream() -> None:
    result = measure(Honest())
    assert result["expert_success_real"] > 0.9 and result["expert_success_dream"] > 0.9
    assert result["random_success_real"] < 0.9
    low, high = result["random_success_dream_ci95"]
    assert low <= result["random_success_dream"] <= high
    assert result["noisy_success_dream"] is None  # nobody of that kind played
    assert result["paid_satisfied"] == 1.0 and result["failed_starts"] == 0


def test_a_shorter_limit_counts_for_both() -> None:
    result = measure(Honest(), max_steps=1)
    assert result["expert_success_dream"] == result["expert_success_real"] == 0.0


def test_an_episode_depends_on_seed_and_number_not_on_the_batch() -> None:
    starts = [Start(trajectory.task, "random") for trajectory in EPISODES[:9]]
    one = dream_rollouts(DOMAIN, Honest(), starts, 6, seed=5, batch_size=1)
    four = dream_rollouts(DOMAIN, Honest(), starts, 6, seed=5, batch_size=4)
    other = dream_rollouts(DOMAIN, Honest(), starts, 6, seed=6, batch_size=4)
    assert one == four != other
    assert all(dream.source == "dream" and len(dream.steps) <= 6 for dream in one)


def test_progress_reaches_its_end() -> None:
    told: dict[str, tuple[int, int]] = {}
    measure(Honest(), progress=lambda stage, done, total: told.update({stage: (done, total)}))
    assert told.keys() == {"single steps", "dreamt episodes"}
    assert all(done == total for done, total in told.values())


@pytest.mark.parametrize(
    ("episodes", "message"), [([], "dreamgym record"), ([replace(EPISODES[0], source="dream")], "dreamt")]
)
def test_it_takes_real_episodes(episodes: list[Trajectory], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure(Honest(), episodes)
