"""The environments: every registered id keeps Gymnasium's promises; dreams keep theirs, one or many at a time.

The promises are checked on boxes (tests/toy.py) whose experience model is scripted below, and on every id of the
registration table that this machine has what it takes for.
"""

import importlib.util
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode

import dreamgym_envs  # noqa: F401  (registers)
from dreamgym_envs.core.delta import Edit, diff
from dreamgym_envs.core.schema import Schema, StateError
from dreamgym_envs.core.types import State, Step, Task
from dreamgym_envs.domains import DOMAINS, get_domain
from dreamgym_envs.domains.base import Action
from dreamgym_envs.envs import DreamEnv, DreamVectorEnv, RealEnv, Snapshot, restore
from dreamgym_envs.envs.episode import START_RESAMPLES
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.registration import ENVIRONMENTS, Registration, register_all
from tests.toy import Boxes, thing

# --- given: boxes, dreamt by a script that draws everything it makes up from the query's random numbers --------------

BOXES = Boxes()
PLACES = ("box 1", "box 2", "box 3")


class BoxesDream:
    """Commits to where one wanted thing is; boxes hold it and some junk; taking it ends the episode with reward 1."""

    def __init__(self) -> None:
        self.batches: list[list[Query]] = []

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        self.batches.append(list(queries))
        return [self.answer(query) for query in queries]

    def answer(self, query: Query) -> Prediction:
        assert query.rng is not None
        wanted = query.task.instruction.split()[-1]
        if query.action is None:
            place = PLACES[int(query.rng.integers(3))]
            secret = ({"name": f"{wanted} 1", "place": place},)
            return Prediction(f"it is in {place}", (Edit("set", ("hidden",), secret),), 0.0, False)
        before, public = query.state, dict(query.state.public)
        verb, _, name = query.action.partition(" ")
        reward, public["feedback"] = 0.0, f"Nothing {int(query.rng.integers(1000))}."
        box = next((box for box in public["boxes"] if box["name"] == name), None)
        if verb == "look" and box is not None:
            inside = box["contents"]
            if box["status"] == "unseen":
                junk = thing(f"pin {int(query.rng.integers(1000))}")
                inside = (*(thing(e["name"]) for e in before.private["hidden"] if e["place"] == name), junk)
            public["at"] = (name,)
            opened = {**box, "status": "seen", "contents": inside}
            public["boxes"] = tuple(opened if other is box else other for other in public["boxes"])
        elif verb == "take":
            reward = float(name.startswith(wanted))
        delta = diff(BOXES.schema, before, State(public, before.private))
        return Prediction(f"{verb}: fine", delta, reward, reward == 1.0)


def make_boxes(**kwargs: Any) -> DreamEnv:
    return DreamEnv(BOXES, BoxesDream(), **kwargs)


def make_boxes_vec(num_envs: int, **kwargs: Any) -> DreamVectorEnv:
    return DreamVectorEnv(BOXES, num_envs, BoxesDream(), **kwargs)


def make_real_boxes(**kwargs: Any) -> RealEnv:
    return RealEnv(BOXES, **kwargs)


DREAM, REAL = "Test/Boxes-v0", "Test/BoxesReal-v0"
gym.register(
    DREAM,
    entry_point=f"{__name__}:make_boxes",
    vector_entry_point=f"{__name__}:make_boxes_vec",
    max_episode_steps=BOXES.max_episode_steps,
)
gym.register(REAL, entry_point=f"{__name__}:make_real_boxes", max_episode_steps=BOXES.max_episode_steps)

DREAMS = [DREAM, *(row.id for row in ENVIRONMENTS if row.kind == "dream")]
IDS = [DREAM, REAL, *(row.id for row in ENVIRONMENTS)]
PAIRS = [
    (dream.id, real.id)
    for dream in ENVIRONMENTS
    for real in ENVIRONMENTS
    if (dream.domain, dream.kind, real.kind) == (real.domain, "dream", "real")
]
ENGINES = {"alfworld": "textworld", "webshop": "bm25s"}
"""The module without which a domain has no engine."""


def require(env_id: str) -> None:
    """Skip the test if this machine lacks the optional extra that the id needs."""
    row = next((row for row in ENVIRONMENTS if row.id == env_id), None)
    if row is not None and row.kind == "real" and importlib.util.find_spec(ENGINES[row.domain]) is None:
        pytest.skip(f"{env_id} needs its engine: pip install 'dreamgym-envs[{row.domain}]'")


@pytest.fixture
def make() -> Iterator[Callable[..., gym.Env[Any, Any]]]:
    made: list[gym.Env[Any, Any]] = []

    def make_one(env_id: str, **kwargs: Any) -> gym.Env[Any, Any]:
        require(env_id)
        made.append(gym.make(env_id, **kwargs))
        return made[-1]

    yield make_one
    for env in made:
        env.close()


def play(env: gym.Env[Any, Any], steps: int, seed: int, reset: tuple[Any, Any] | None = None) -> list[Any]:
    """Play candidates chosen with `seed`, every fifth action being nonsense; return all that the environment said."""
    chance = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed) if reset is None else reset
    said: list[Any] = [(observation, info)]
    for _ in range(steps):
        action = str(chance.choice(info["candidate_actions"])) if chance.random() < 0.8 else "sing"
        observation, reward, terminated, truncated, info = env.step(action)
        said.append((observation, reward, terminated, truncated, info))
        if terminated or truncated:
            break
    return said


# --- every id --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_finds_no_fault_with(env_id: str, make: Any) -> None:
    env = make(env_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_the_same_seed_and_actions_give_the_same_episode(env_id: str, make: Any) -> None:
    once, again = make(env_id), make(env_id)
    assert play(once, 12, seed=7) == play(again, 12, seed=7) == play(once, 12, seed=7)


@pytest.mark.parametrize("env_id", IDS)
def test_observation_and_info_are_what_the_documentation_says(env_id: str, make: Any) -> None:
    env = make(env_id)
    observation, info = env.reset(seed=0)
    for _ in range(3):
        assert observation in env.observation_space
        assert observation == {
            "instruction": info["instruction"],
            **env.unwrapped.domain.schema.observation(info["state"]),
        }
        assert set(info) == {
            *("state", "instruction", "candidate_actions", "reasoning", "success", "invalid_action"),
            *("source", "task_id", "task_family"),
        }
        assert info["source"] == ("real" if "Real" in env_id else "dream")
        json.dumps(info)
        candidates = info["candidate_actions"]
        assert 0 < len(candidates) <= env.unwrapped.domain.max_candidates
        assert len(set(candidates)) == len(candidates)
        assert all(action in env.action_space for action in candidates)
        assert all(env.unwrapped.domain.parse(action) is not None for action in candidates)
        observation, reward, terminated, truncated, info = env.step(candidates[0])
        assert [type(value) for value in (reward, terminated, truncated)] == [float, bool, bool]


@pytest.mark.parametrize("env_id", IDS)
def test_an_episode_is_truncated_after_max_episode_steps(env_id: str, make: Any) -> None:
    env = make(env_id, max_episode_steps=3)
    env.reset(seed=0)
    ends = [env.step("sing")[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize("env_id", IDS)
def test_an_action_outside_the_grammar_changes_the_feedback_alone_and_pays_nothing(env_id: str, make: Any) -> None:
    env = make(env_id)
    _, before = env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("sing a song to the moon")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["invalid_action"] and not info["success"] and not before["invalid_action"]
    domain = env.unwrapped.domain
    assert info["state"] == domain.rejection(State(before["state"])).public
    _, _, _, _, info = env.step(info["candidate_actions"][0])
    assert not info["invalid_action"]


@pytest.mark.parametrize("env_id", IDS)
def test_bad_calls_are_told_what_to_do(env_id: str, make: Any) -> None:
    env = make(env_id).unwrapped
    with pytest.raises(ResetNeeded, match=r"call env.reset\(\) first"):
        env.step("look")
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"an action is a str such as .* not 3 \(int\).*CandidateActions"):
        env.step(3)
    with pytest.raises(ValueError, match=r"no reset option 'task_ids'; there are: .*task_id"):
        env.reset(options={"task_ids": ["x"]})
    with pytest.raises(ValueError, match="no render mode 'human'"):
        gym.make(env_id, render_mode="human")


@pytest.mark.parametrize("env_id", IDS)
def test_the_spec_rebuilds_the_environment_through_json(env_id: str, make: Any) -> None:
    env = make(env_id, max_episode_steps=9, render_mode="ansi")
    env.reset(seed=3)
    rebuilt = gym.make(EnvSpec.from_json(env.spec.to_json()))
    rebuilt.reset(seed=3)
    assert rebuilt.spec == env.spec
    assert rebuilt.render() == env.render() != ""
    rebuilt.close()


@pytest.mark.parametrize("env_id", IDS)
def test_a_reset_can_name_its_task(env_id: str, make: Any) -> None:
    env = make(env_id)
    names = {env.reset(seed=seed)[1]["task_id"] for seed in range(3)}
    for name in names:
        assert env.reset(seed=99, options={"task_id": name})[1]["task_id"] == name
    if env_id != REAL:  # the toy engine trusts its caller
        with pytest.raises(ValueError, match="no such task"):
            env.reset(options={"task_id": "no such task"})


@pytest.mark.parametrize("env_id", IDS)
def test_many_are_stepped_as_one(env_id: str) -> None:
    require(env_id)
    envs = gym.make_vec(env_id, num_envs=2)
    observations, infos = envs.reset(seed=0)
    for _ in range(3):
        assert observations in envs.observation_space
        actions = [candidates[0] for candidates in infos["candidate_actions"]]
        observations, rewards, _, _, infos = envs.step(actions)
        assert rewards.shape == (2,)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    envs.close()


@pytest.mark.parametrize(("dream_id", "real_id"), [(DREAM, REAL), *PAIRS])
def test_a_dream_and_its_reality_have_the_same_spaces(dream_id: str, real_id: str, make: Any) -> None:
    dream, real = make(dream_id), make(real_id)
    assert dream.observation_space == real.observation_space
    assert dream.action_space == real.action_space


# --- registration ----------------------------------------------------------------------------------------------------


def test_importing_the_package_registers_every_id_and_imports_nothing_heavy() -> None:
    code = """
import sys, json, gymnasium
before = set(sys.modules)
import dreamgym_envs
registered = [name for name in gymnasium.registry if name.startswith("DreamGym/")]
print(json.dumps([registered, sorted(set(sys.modules) - before)]))
"""
    registered, imported = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    assert registered == [row.id for row in ENVIRONMENTS]
    assert imported == ["dreamgym_envs", "dreamgym_envs.registration"]


def test_registering_twice_changes_nothing() -> None:
    before = dict(gym.registry)
    register_all()
    assert gym.registry == before


@pytest.mark.parametrize("row", ENVIRONMENTS, ids=lambda row: row.id)
def test_the_table_agrees_with_the_domain(row: Registration) -> None:
    domain = get_domain(row.domain)
    suffix = "Real" if row.kind == "real" else ""
    assert row.id == f"DreamGym/{domain.title}{suffix}-v0"
    assert row.max_episode_steps == domain.max_episode_steps
    assert domain.name == row.domain


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_is_one_object(name: str) -> None:
    assert get_domain(name) is get_domain(name)


def test_an_unknown_domain_is_told_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no domain 'alfwrold'; there are: .*alfworld"):
        get_domain("alfwrold")
    with pytest.raises(ValueError, match="no domain 'alfwrold'"):
        gym.make("DreamGym/ALFWorld-v0", domain="alfwrold")


@pytest.mark.parametrize("row", [row for row in ENVIRONMENTS if row.kind == "real"], ids=lambda row: row.id)
def test_an_engine_that_is_not_installed_is_one_line_with_the_extra(row: Registration) -> None:
    # In a process of its own: in this one the engine may be in use already
    code = f"""
import sys
sys.modules[{ENGINES[row.domain]!r}] = None
import gymnasium, dreamgym_envs
try:
    gymnasium.make({row.id!r})
except ImportError as error:
    print(error)
"""
    message = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert message.count("\n") == 1 and f"dreamgym-envs[{row.domain}]" in message


# --- a dream ---------------------------------------------------------------------------------------------------------


def test_a_step_is_the_models_prediction_applied_to_the_state() -> None:
    # Given an episode whose hidden thing is in a box
    env = make_boxes()
    env.reset(seed=0)
    (secret,) = env.state.private["hidden"]
    # When the agent looks there
    observation, reward, terminated, _, info = env.step(f"look {secret['place']}")
    # Then it sees the thing, nothing is hidden any more, and taking it ends the episode
    box = next(box for box in observation["boxes"] if box["name"] == secret["place"])
    assert box["contents"][0]["name"] == secret["name"]
    assert env.state.private == {"hidden": ()}
    assert (reward, terminated, info["success"], info["reasoning"]) == (0.0, False, False, "look: fine")
    _, reward, terminated, _, info = env.step(f"take {secret['name']}")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_a_reset_asks_once_what_is_hidden_and_shows_none_of_it() -> None:
    env = make_boxes()
    observation, info = env.reset(seed=0)
    assert [[query.action for query in batch] for batch in env.model.batches] == [[None]]
    assert "hidden" not in observation and "hidden" not in info["state"]
    assert info["reasoning"] == ""


def test_a_model_is_told_of_the_last_steps_and_not_asked_about_nonsense() -> None:
    env = make_boxes(history_length=2)
    env.reset(seed=0)
    for action in ("look box 1", "sing", "look box 2", "look box 3"):
        env.step(action)
    queries = [query for (query,) in env.model.batches[1:]]
    assert [query.action for query in queries] == ["look box 1", "look box 2", "look box 3"]
    assert [[step.action for step in query.history] for query in queries] == [
        [],
        ["look box 1", "sing"],
        ["sing", "look box 2"],
    ]
    assert queries[1].history[1] == Step("sing", queries[1].state, 0.0, False)
    assert queries[1].state.public["feedback"] == "What?"


def test_no_history_is_kept_if_none_is_wanted() -> None:
    env = make_boxes(history_length=0)
    env.reset(seed=0)
    env.step("look box 1")
    env.step("look box 2")
    assert all(query.history == () for (query,) in env.model.batches)


def test_the_observation_may_be_changed_without_harm() -> None:
    env = make_boxes()
    observation, info = env.reset(seed=0)
    observation["boxes"][0]["status"] = "seen"
    info["state"]["boxes"][1]["status"] = "seen"
    assert [box["status"] for box in env.state.public["boxes"]] == ["unseen"] * 3


class Doubtful(Boxes):
    """Finds the first few starts implausible."""

    def __init__(self, bad: int) -> None:
        self.bad = bad

    def plausible_start(self, task: Task, state: State) -> bool:
        self.bad -= 1
        return self.bad < 0


@pytest.mark.parametrize(("bad", "asked", "failed"), [(0, 1, 0), (2, 3, 0), (4, 5, 0), (9, START_RESAMPLES + 1, 1)])
def test_an_implausible_start_is_drawn_anew_a_few_times_and_then_kept(bad: int, asked: int, failed: int) -> None:
    env = DreamEnv(Doubtful(bad), BoxesDream())
    env.reset(seed=0)
    assert len(env.model.batches) == asked
    assert env.episode.failed_starts == failed
    assert len(env.state.private["hidden"]) == 1


def test_resets_draw_from_the_tasks_asked_for() -> None:
    env = make_boxes(tasks=["train-2", "train-3"])
    assert {env.reset(seed=seed)[1]["task_id"] for seed in range(20)} == {"train-2", "train-3"}


def test_a_reset_takes_a_task_of_ones_own() -> None:
    env = make_boxes()
    task = BOXES.tasks()[0]
    own = Task("mine", "take the pin", task.initial)
    assert env.reset(options={"task": own})[1]["task_id"] == "mine"
    broken = Task("broken", "take the pin", State({**task.initial.public, "at": "box 1"}))
    with pytest.raises(StateError, match="at: 'box 1' is not of type 'array'"):
        env.reset(options={"task": broken})
    with pytest.raises(TypeError, match="not 'mine'; by id: 'task_id'"):
        env.reset(options={"task": "mine"})


def test_a_missing_task_or_split_is_told_what_there_is() -> None:
    with pytest.raises(ValueError, match="no split 'test'"):
        make_boxes(split="test")
    with pytest.raises(ValueError, match="no task 'x' in split 'train' of boxes, which has 4, such as 'train-0'"):
        make_boxes(tasks=["x"])
    with pytest.raises(ValueError, match="no tasks to start from"):
        make_boxes(tasks=[])


def test_an_ended_episode_takes_no_more_steps() -> None:
    env = make_boxes(max_episode_steps=1)
    env.reset(seed=0)
    assert env.step("sing")[3]
    with pytest.raises(ResetNeeded, match=r"was truncated after 1 steps; call env.reset\(\) to start the next"):
        env.step("sing")
    env.reset(seed=0)
    env.step("take ball 1" if "ball" in env.task.instruction else "take cube 1")
    with pytest.raises(ResetNeeded, match="the episode terminated"):
        env.step("sing")


def test_validation_refuses_a_state_that_breaks_the_schema() -> None:
    class Careless(BoxesDream):
        def answer(self, query: Query) -> Prediction:
            if query.action is None:
                return super().answer(query)
            return Prediction("", (Edit("set", ("at",), "box 1"),), 0.0, False)

    trusting, checking = DreamEnv(BOXES, Careless()), DreamEnv(BOXES, Careless(), validate=True)
    for env in (trusting, checking):
        env.reset(seed=0)
    trusting.step("look box 1")
    with pytest.raises(StateError, match="at: 'box 1' is not of type 'array'"):
        checking.step("look box 1")


def test_a_model_is_loaded_by_its_string_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def load_model(spec: str, domain: Any, **options: Any) -> BoxesDream:
        calls.append((spec, domain, options))
        return BoxesDream()

    monkeypatch.setattr("dreamgym_envs.experience.load_model", load_model)
    DreamEnv(BOXES, "runs/mine", model_options={"cache": 10})
    DreamVectorEnv(BOXES, 2)
    assert calls == [("runs/mine", BOXES, {"cache": 10}), ("embedded", BOXES, {})]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match='a model is "embedded", a path or an object with predict'):
        DreamEnv(BOXES, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"model_options .* leave them out"):
        DreamEnv(BOXES, BoxesDream(), model_options={"cache": 10})


def test_a_reset_that_the_model_fails_leaves_the_episode_before() -> None:
    class Unreachable(BoxesDream):
        down = False

        def answer(self, query: Query) -> Prediction:
            if self.down:
                raise ConnectionError("no answer")
            return super().answer(query)

    envs = DreamVectorEnv(BOXES, 2, Unreachable(), max_episode_steps=1)
    envs.reset(seed=0)
    envs.step(["sing", "sing"])
    envs.model.down = True
    with pytest.raises(ConnectionError):
        envs.step(["sing", "sing"])
    # Both episodes are still over, so the next step tries once more to begin the next ones.
    envs.model.down = False
    _, _, _, truncations, infos = envs.step(["sing", "sing"])
    assert not truncations.any() and not infos["invalid_action"].any()


def test_nothing_is_rendered_without_a_render_mode() -> None:
    env, envs = make_boxes(), make_boxes_vec(2)
    env.reset()
    envs.reset()
    for silent in (env, envs):
        with pytest.warns(UserWarning, match='make the environments? with render_mode="ansi"'):
            assert silent.render() is None


# --- the real thing --------------------------------------------------------------------------------------------------


def test_a_real_step_is_the_engines_and_nonsense_never_reaches_it() -> None:
    env = make_real_boxes()
    env.reset(seed=0)
    heard = []
    step = env.engine.step
    env.engine.step = lambda action: heard.append(action) or step(action)  # type: ignore[method-assign]
    env.step("sing")
    observation, *_ = env.step("look box 1")
    assert heard == ["look box 1"]
    assert {thing["name"] for thing in observation["boxes"][0]["contents"]} == {
        name for name, place in env.engine.places.items() if place == "box 1"
    }
    assert env.state.private == {}


# --- many dreams -----------------------------------------------------------------------------------------------------

MODES = list(AutoresetMode)


def actions_for(infos: dict[str, Any], chance: np.random.Generator, known: list[tuple[str, ...]]) -> list[str]:
    for i in np.flatnonzero(infos["_candidate_actions"]):
        known[i] = infos["candidate_actions"][i]
    return [str(chance.choice(options)) if chance.random() < 0.8 else "sing" for options in known]


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_of_dreams_is_gymnasiums_vector_of_single_dreams(mode: AutoresetMode) -> None:
    # Given the same five environments, once natively batched and once in Gymnasium's own vector environment
    ours = gym.make_vec(DREAM, num_envs=5, autoreset_mode=mode)
    theirs = gym.make_vec(DREAM, num_envs=5, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode})
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    # When both are played through many episodes
    outcome, expected = ours.reset(seed=11), theirs.reset(seed=11)
    assert data_equivalence(outcome, expected, exact=True)
    chance, known, episodes = np.random.default_rng(0), [()] * 5, 0
    for _ in range(60):
        actions = actions_for(outcome[-1], chance, known)
        outcome, expected = ours.step(actions), theirs.step(actions)
        # Then observations, rewards, ends and infos are the same, final ones included
        assert data_equivalence(outcome, expected, exact=True)
        assert outcome[0] in ours.observation_space
        over = outcome[2] | outcome[3]
        episodes += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            outcome = ours.reset(options={"reset_mask": over})
            assert data_equivalence(outcome, theirs.reset(options={"reset_mask": over}), exact=True)
    assert episodes > 20


@pytest.mark.parametrize("env_id", DREAMS)
def test_the_same_seed_gives_the_same_episodes_alone_and_among_sixteen(env_id: str) -> None:
    require(env_id)
    seed, count, steps = 5, 16, 14

    def lives(envs: gym.vector.VectorEnv[Any, Any, Any], first: int, size: int) -> list[list[Any]]:
        """Play `size` environments, each by the chance of its own seed; return what each of them showed."""
        chances = [np.random.default_rng(first + i) for i in range(size)]
        observations, infos = envs.reset(seed=first)
        shown: list[list[Any]] = [[] for _ in range(size)]
        rewards = np.zeros(size)
        for _ in range(steps):
            for i in range(size):
                instruction, task = observations["instruction"][i], infos["task_id"][i]
                state = {name: values[i] for name, values in observations.items()}
                shown[i].append((instruction, task, state, float(rewards[i]), infos["reasoning"][i]))
            actions = [str(chances[i].choice(infos["candidate_actions"][i])) for i in range(size)]
            observations, rewards, _, _, infos = envs.step(actions)
        return shown

    together = gym.make_vec(env_id, num_envs=count, max_episode_steps=6)
    among = lives(together, seed, count)
    alone = gym.make_vec(env_id, num_envs=1, max_episode_steps=6)
    for i in (0, 7, 15):
        assert lives(alone, seed + i, 1) == [among[i]]
    assert len({str(life) for life in among}) > 1


@pytest.mark.parametrize("mode", MODES)
def test_a_step_is_one_batched_prediction(mode: AutoresetMode) -> None:
    envs = make_boxes_vec(8, max_episode_steps=2, autoreset_mode=mode)
    envs.reset(seed=0)
    envs.step(["look box 1"] * 8)
    assert [len(batch) for batch in envs.model.batches] == [8, 8]
    # When half of the environments end, resets share the call of the next step, or have one of their own in this one
    envs.step(["look box 2"] * 4 + ["sing"] * 4)
    sizes = [len(batch) for batch in envs.model.batches[2:]]
    if mode is AutoresetMode.SAME_STEP:
        assert sizes == [4, 8]
    elif mode is AutoresetMode.NEXT_STEP:
        envs.step(["look box 1"] * 8)
        assert sizes == [4] and len(envs.model.batches[3]) == 8
    else:
        with pytest.raises(ResetNeeded, match="was truncated after 2 steps"):
            envs.step(["look box 1"] * 8)


def test_steps_and_resets_share_a_prediction() -> None:
    envs = make_boxes_vec(2, tasks=["train-0"])
    envs.reset(seed=0)
    envs.step(["take ball 1", "look box 1"])
    envs.step(["look box 1", "look box 2"])
    assert [query.action for query in envs.model.batches[-1]] == [None, "look box 2"]


def test_one_bad_action_steps_no_environment() -> None:
    envs = make_boxes_vec(3)
    envs.reset(seed=0)
    before = [episode.moment for episode in envs.episodes]
    with pytest.raises(TypeError, match="an action is a str"):
        envs.step(["sing", "look box 1", 4])
    for actions in (["sing"], "sing"):
        with pytest.raises(ValueError, match="for 3 environments; expected one action each"):
            envs.step(actions)
    assert [episode.moment for episode in envs.episodes] == before


def test_options_are_for_all_environments_or_for_each() -> None:
    envs = make_boxes_vec(3)
    _, infos = envs.reset(seed=0, options={"task_id": "train-2"})
    assert list(infos["task_id"]) == ["train-2"] * 3
    _, infos = envs.reset(seed=0, options={"task_id": ["train-0", None, "train-3"]})
    assert infos["task_id"][0] == "train-0" and infos["task_id"][2] == "train-3"
    own = Task("mine", "take the pin", BOXES.tasks()[0].initial)
    _, infos = envs.reset(options={"task": [own, None, None], "reset_mask": np.array([True, False, False])})
    assert infos["task_id"][0] == "mine" and list(infos["_task_id"]) == [True, False, False]
    with pytest.raises(ValueError, match=r"options\['task_id'\] lists 2 values for 3 environments"):
        envs.reset(options={"task_id": ["train-0", "train-1"]})


@pytest.mark.parametrize("mask", [[True, False], np.array([1, 0]), np.array([True]), np.array([False, False])])
def test_a_wrong_reset_mask_is_told_what_is_expected(mask: Any) -> None:
    envs = make_boxes_vec(2)
    envs.reset()
    with pytest.raises(ValueError, match="expected a numpy array of 2 bools, not all false"):
        envs.reset(options={"reset_mask": mask})


def test_the_first_reset_is_of_all_environments() -> None:
    envs = make_boxes_vec(2)
    with pytest.raises(ResetNeeded, match="never reset; reset all at first"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="no episode has started"):
        envs.step(["sing", "sing"])


def test_seeds_are_one_for_all_or_one_each() -> None:
    envs = make_boxes_vec(2)
    envs.reset(seed=3)
    assert envs.np_random_seed == (3, 4)
    envs.reset(seed=[8, None])
    assert envs.np_random_seed == (8, 4)
    with pytest.raises(ValueError, match="1 seeds for 2 environments"):
        envs.reset(seed=[1])


def test_a_vector_needs_an_environment() -> None:
    with pytest.raises(ValueError, match="num_envs is 0; expected at least 1"):
        make_boxes_vec(0)
    with pytest.raises(ValueError, match="max_episode_steps is 0; expected at least 1"):
        make_boxes_vec(1, max_episode_steps=0)


# --- numbers in a state ----------------------------------------------------------------------------------------------


class Scales(Boxes):
    """A state of numbers: a box that is looked into gets heavier by some chance."""

    name = "scales"
    schema = Schema(
        {
            "type": "object",
            "required": ["weight", "looks", "day", "lit", "page"],
            "properties": {
                "weight": {"type": "number"},
                "looks": {"type": "integer", "minimum": 0},
                "day": {"type": "integer", "minimum": 0, "maximum": 9},
                "lit": {"type": "boolean"},
                "page": {"type": "object", "required": ["rows"], "properties": {"rows": {"type": "integer"}}},
            },
        }
    )

    def parse(self, action: str) -> Action | None:
        return Action("look") if action == "look" else None

    def candidates(self, task: Task, state: State) -> tuple[str, ...]:
        return ("look", "look again")[: 1 + state.public["looks"] % 2]

    def rejection(self, state: State) -> State:
        return state

    def settle(self, state: State) -> State:
        return state

    def tasks(self, split: str = "train") -> list[Task]:
        public = {"weight": 0.5, "looks": 0, "day": 3, "lit": False, "page": {"rows": 2}}
        return [Task("weigh", "weigh it", State(public))]


class ScalesDream:
    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        assert all(query.action is not None and query.rng is not None for query in queries)
        return [
            Prediction(
                "",
                (
                    Edit("set", ("weight",), float(query.rng.random())),
                    Edit("set", ("looks",), query.state.public["looks"] + 1),
                    Edit("set", ("lit",), not query.state.public["lit"]),
                    Edit("set", ("page", "rows"), 7),
                ),
                0.25,
                query.state.public["looks"] == 3,
            )
            for query in queries
            if query.rng is not None
        ]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_numbers_are_batched_as_gymnasium_batches_them(mode: AutoresetMode) -> None:
    ours = DreamVectorEnv(Scales(), 3, ScalesDream(), autoreset_mode=mode)
    theirs = gym.vector.SyncVectorEnv([lambda: DreamEnv(Scales(), ScalesDream())] * 3, autoreset_mode=mode)
    assert data_equivalence(ours.reset(seed=1), theirs.reset(seed=1), exact=True)
    for _ in range(9):
        outcome = ours.step(["look"] * 3)
        assert data_equivalence(outcome, theirs.step(["look"] * 3), exact=True)
        assert outcome[0] in ours.observation_space
        assert outcome[0]["weight"].shape == (3,)


def test_a_domain_without_secrets_is_not_asked_for_any() -> None:
    env = DreamEnv(Scales(), ScalesDream())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observation, info = env.reset(seed=0)
        assert observation in env.observation_space
    assert isinstance(observation["weight"], np.ndarray) and type(info["state"]["weight"]) is float


# --- snapshots -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", DREAMS)
def test_a_restored_rollout_goes_on_as_it_would_have(env_id: str, make: Any) -> None:
    # Given a rollout in its middle, put down as JSON
    env = make(env_id)
    play(env, 2, seed=1)
    text = env.unwrapped.snapshot().to_json()
    # When it is taken up in this environment, much later, and in another one that was never reset
    here = play(env, 20, seed=2, reset=restore(env, text))
    env.reset(seed=77)
    again = play(env, 20, seed=2, reset=restore(env, Snapshot.from_json(text)))
    other = make(env_id)
    elsewhere = play(other, 20, seed=2, reset=restore(other, text))
    # Then everything comes out the same, the truncation after max_episode_steps included
    assert here == again == elsewhere


def test_what_is_restored_is_what_was_there() -> None:
    env = make_boxes()
    env.reset(seed=0)
    env.step("look box 1")
    *seen, info = env.step("sing")
    observation, restored = restore(make_boxes(), env.snapshot())
    assert (observation, restored) == (seen[0], info)


@pytest.mark.parametrize("late", [0, 1, 5])
def test_a_restored_rollout_is_truncated_at_the_right_step(late: int) -> None:
    # Given a snapshot after two of six steps, whatever was played since then
    env = gym.make(DREAM)
    env.reset(seed=0)
    for _ in range(2):
        env.step("sing")
    snapshot = env.unwrapped.snapshot()
    for _ in range(min(late, 4)):
        env.step("sing")
    # When it is restored
    restore(env, snapshot)
    # Then four more steps are left, as often as it is restored
    for _ in range(2):
        assert [env.step("sing")[3] for _ in range(4)] == [False, False, False, True]
        restore(env, snapshot)


def test_a_fork_with_a_seed_starts_from_the_same_moment_and_goes_its_own_way() -> None:
    env = make_boxes()
    env.reset(seed=0)
    fork = env.snapshot()
    futures = []
    for seed in (1, 2, 1):
        observation, _ = restore(env, fork, seed=seed)
        assert observation["boxes"] == fork.moment.state.public["boxes"]
        futures.append([env.step(f"look {place}")[0] for place in PLACES])
    assert futures[0] == futures[2] != futures[1]


def test_one_environment_of_a_vector_is_put_down_and_taken_up_in_others() -> None:
    # Given a vector whose second environment has taken two steps
    envs = make_boxes_vec(3, max_episode_steps=6)
    envs.reset(seed=0)
    for place in PLACES[:2]:
        envs.step([f"look {place}"] * 3)
    snapshot = envs.snapshot(1)
    third = envs.episodes[2].moment
    # When it is restored in the first two
    observations, infos = restore(envs, [snapshot, snapshot.to_json(), None])
    # Then these go on alike, from that moment, for four more steps, and the third as if nothing had happened
    assert envs.episodes[2].moment is third and list(infos["_state"]) == [True, True, False]
    assert observations["boxes"][0] == observations["boxes"][1] == snapshot.moment.state.public["boxes"]
    for steps in range(4):
        observations, _, _, truncations, infos = envs.step(["look box 3"] * 3)
        assert observations["feedback"][0] == observations["feedback"][1]
        assert list(truncations) == [steps == 3] * 3
    # And alone it goes on just so
    alone = make_boxes(max_episode_steps=6)
    restore(alone, snapshot)
    for _ in range(4):
        observation, *_ = alone.step("look box 3")
    assert observation["feedback"] == observations["feedback"][0]


def test_a_group_of_rollouts_starts_from_one_moment() -> None:
    envs = make_boxes_vec(4)
    envs.reset(seed=0)
    restore(envs, [envs.snapshot(2)] * 4, seed=9)
    observations, *_ = envs.step(["look box 1"] * 4)
    assert len(set(observations["instruction"])) == 1
    assert len(set(observations["feedback"])) == 4 or len({str(boxes) for boxes in observations["boxes"]}) == 4


@pytest.mark.parametrize(
    ("snapshot", "complaint"),
    [
        ("{}", "not a snapshot .* a Snapshot needs 'domain'"),
        ("[", "not a snapshot"),
        (3, "what env.unwrapped.snapshot"),
    ],
)
def test_what_is_no_snapshot_is_refused(snapshot: Any, complaint: str) -> None:
    with pytest.raises((ValueError, TypeError), match=complaint):
        restore(make_boxes(), snapshot)


@pytest.mark.parametrize(
    ("where", "value", "complaint"),
    [
        (("moment", "steps"), -1, "-1 steps behind it"),
        (("moment", "reward"), float("nan"), "a reward of nan"),
        (("moment", "task", "initial", "public"), {}, "required property"),
        (("rng",), {}, "rng is no state of PCG64"),
        (("rng", "state", "state"), -5, "rng is no state of PCG64"),
    ],
)
def test_a_snapshot_that_was_changed_is_refused(where: tuple[str, ...], value: Any, complaint: str) -> None:
    env = make_boxes()
    env.reset(seed=0)
    document = json.loads(env.snapshot().to_json())
    part = document
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    with pytest.raises(ValueError, match=complaint):
        restore(env, json.dumps(document))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [("train-0", "reset options are a dict"), ({"task_id": 3}, "is a str"), ({"task_id": ["train-0"]}, "is a str")],
)
def test_reset_options_of_another_kind_are_told_what_is_expected(options: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        make_boxes().reset(options=options)


def test_a_history_has_no_negative_length() -> None:
    with pytest.raises(ValueError, match="history_length is -1; expected 0"):
        make_boxes(history_length=-1)


def test_a_snapshot_of_another_domain_or_schema_is_refused() -> None:
    env = DreamEnv(Scales(), ScalesDream())
    env.reset(seed=0)
    foreign = env.snapshot()
    with pytest.raises(ValueError, match="belongs to the domain 'scales', the environment to 'boxes'"):
        restore(make_boxes(), foreign)
    with pytest.raises(StateError, match=r"Additional|required property"):
        restore(make_boxes(), Snapshot("boxes", foreign.moment, foreign.rng))
