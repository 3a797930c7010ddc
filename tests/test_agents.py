"""The RL path on three boxes: from the vector environment to an agent that is trained, saved, resumed and evaluated."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from safetensors.torch import load_file, save_file
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from dreamgym_envs.agents.actors import make_actor
from dreamgym_envs.agents.agent import AgentConfig, AgentError, CandidateAgent, load_agent
from dreamgym_envs.agents.cloning import CloneConfig, clone
from dreamgym_envs.agents.policy import CandidatePolicy, CandidateScorer
from dreamgym_envs.agents.processes import ProcessVectorEnv, make_vector
from dreamgym_envs.agents.sb3 import GymVectorToSB3
from dreamgym_envs.agents.training import PPOConfig, train
from dreamgym_envs.core.delta import diff
from dreamgym_envs.core.types import Step, Trajectory
from dreamgym_envs.domains import DOMAINS, get_domain
from dreamgym_envs.domains.base import Engine
from dreamgym_envs.envs.dream import DreamEnv
from dreamgym_envs.envs.real import RealEnv
from dreamgym_envs.envs.vector import DreamVectorEnv
from dreamgym_envs.evaluation.transfer import evaluate
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.wrappers.candidates import VectorCandidateActions
from dreamgym_envs.wrappers.text import VectorTextArrays
from tests.toy import Boxes, BoxesEngine, episodes

REAL, DREAM = "Toy/BoxesReal-v0", "Toy/Boxes-v0"
torch.set_num_threads(1)


class Looker:
    """Looks at random until it sees what is wanted, then takes it."""

    def reset(self, task: Any, rng: np.random.Generator) -> None:
        self.wanted, self.rng = task.instruction.split()[-1], rng

    def act(self, state: Any) -> str:
        for box in state.public["boxes"]:
            for item in box["contents"]:
                if item["name"].startswith(self.wanted) and box["name"] in state.public["at"]:
                    return f"take {item['name']}"
        return f"look box {int(self.rng.integers(1, 4))}"


class PlayableBoxes(Boxes):
    def engine(self, **options: Any) -> Engine:
        return BoxesEngine(self)

    def player(self, kind: str) -> Any:
        return Looker()


DOMAIN = PlayableBoxes()


class Oracle:
    """An experience model that keeps to the rules of the boxes; what is where depends on the task alone."""

    calls = 0

    def __init__(self, pays: Sequence[str] = ()) -> None:
        self.pays = pays

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        type(self).calls += 1
        return [self._one(query) for query in queries]

    def _one(self, query: Query) -> Prediction:
        if query.action is None:
            return Prediction("", (), 0.0, False)
        engine = BoxesEngine(DOMAIN)
        engine.reset(np.random.default_rng(int(query.task.id[-1])), query.task.id)
        engine.state = query.state
        state, reward, done = engine.step(query.action)
        if any(query.action.startswith(verb) for verb in self.pays):
            reward, done = 1.0, True
        return Prediction("", diff(DOMAIN.schema, query.state, state), reward, done)


def _dream(domain: str, pays: Sequence[str] = (), **options: Any) -> DreamEnv:
    return DreamEnv(domain, Oracle(pays), **options)


def _dreams(domain: str, pays: Sequence[str] = (), **options: Any) -> DreamVectorEnv:
    return DreamVectorEnv(domain, model=Oracle(pays), **options)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(DOMAINS, "boxes", "PlayableBoxes")
    monkeypatch.setitem(sys.modules, "dreamgym_envs.domains.boxes.domain", sys.modules[__name__])
    gym.register(REAL, RealEnv, max_episode_steps=6, kwargs={"domain": "boxes"})
    gym.register(DREAM, _dream, vector_entry_point=_dreams, max_episode_steps=6, kwargs={"domain": "boxes"})
    yield
    del gym.registry[REAL], gym.registry[DREAM]
    get_domain.cache_clear()


def arrays(env_id: str, n: int = 4, **options: Any) -> VectorTextArrays:
    return VectorTextArrays(
        VectorCandidateActions(make_vector(env_id, n, processes=0, env_options=options), 8), buckets=512
    )


def demonstrations(count: int = 60) -> list[Trajectory]:
    """Return episodes of the expert, some of them failures."""
    rng, engine, player = np.random.default_rng(0), BoxesEngine(DOMAIN), Looker()
    found = []
    for _ in range(count):
        start = engine.reset(rng)
        player.reset(start, rng)
        steps: list[Step] = []
        while len(steps) < DOMAIN.max_episode_steps and not (steps and steps[-1].terminated):
            action = player.act(steps[-1].state if steps else start.initial)
            steps.append(Step(action, *engine.step(action)))
        found.append(Trajectory(start, tuple(steps), player="expert"))
    return found


def untrained() -> CandidateAgent:
    torch.manual_seed(0)
    return CandidateAgent(small(), domain=DOMAIN)


def small(**changes: Any) -> AgentConfig:
    return AgentConfig(**{"domain": "boxes", "candidates": 8, "buckets": 512, "embedding": 8, "hidden": 16, **changes})


QUICK = PPOConfig(n_steps=8, batch_size=32, n_epochs=2)


# --- environments side by side ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [0, 2])
def test_environments_in_processes_give_the_episodes_of_single_ones(processes: int) -> None:
    envs = ProcessVectorEnv(REAL, 3, processes=processes)
    try:
        _, infos = envs.reset(seed=5)
        singles = [gym.make(REAL) for _ in range(3)]
        expected = [single.reset(seed=5 + i)[1] for i, single in enumerate(singles)]
        for _ in range(9):
            assert infos["instruction"].tolist() == [info["instruction"] for info in expected]
            assert [infos["state"]["feedback"][i] for i in range(3)] == [i["state"]["feedback"] for i in expected]
            actions = [offered[-1] for offered in infos["candidate_actions"]]
            _, rewards, terminations, truncations, infos = envs.step(actions)
            for i, single in enumerate(singles):
                _, reward, terminated, truncated, expected[i] = single.step(actions[i])
                assert (rewards[i], terminations[i], truncations[i]) == (reward, terminated, truncated)
                if terminated or truncated:
                    assert infos["final_info"]["task_id"][i] == expected[i]["task_id"]
                    expected[i] = single.reset()[1]
    finally:
        envs.close()


def test_reset_options_may_differ_between_environments() -> None:
    envs = ProcessVectorEnv(REAL, 2, autoreset_mode=AutoresetMode.DISABLED)
    _, infos = envs.reset(seed=0, options={"task_id": ["train-3", "train-1"]})
    assert infos["task_id"].tolist() == ["train-3", "train-1"]
    _, infos = envs.reset(options={"task_id": ["train-0", None], "reset_mask": np.array([True, False])})
    assert infos["_task_id"].tolist() == [True, False]
    assert infos["task_id"][0] == "train-0"


def test_what_fails_in_a_process_is_told_with_its_traceback() -> None:
    envs = ProcessVectorEnv(REAL, 2, processes=2)
    try:
        envs.reset(seed=0)
        with pytest.raises(RuntimeError, match="an action is a str"):
            envs.step([3, 4])
    finally:
        envs.close()


# --- the VecEnv that SB3 sees ----------------------------------------------------------------------------------------


def test_ended_episodes_reach_sb3_in_its_own_terms() -> None:
    venv = GymVectorToSB3(arrays(REAL, 2))
    venv.seed(3)
    venv.reset()
    for _ in range(6):
        observations, rewards, dones, infos = venv.step(np.array([7, 7]))  # no such candidate: time passes
    assert rewards.dtype == np.float32
    assert dones.tolist() == [True, True]
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["is_success"] is False
    assert infos[0]["episode"] == {"r": 0.0, "l": 6}
    assert venv.observation_space.contains(infos[0]["terminal_observation"])
    assert infos[0]["state"]["feedback"] == "What?"  # what the ended episode said, not the next one
    assert not (infos[0]["terminal_observation"]["context"] == observations["context"][0]).all()


def test_masks_are_found_as_sb3_contrib_looks_for_them() -> None:
    venv = GymVectorToSB3(arrays(REAL, 3))
    venv.reset()
    assert venv.has_attr("action_masks")
    assert not venv.has_attr("no_such_thing")
    assert np.stack(venv.env_method("action_masks")).sum(1).tolist() == [3, 3, 3]
    assert len(venv.env_method("action_masks", indices=[1])) == 1


def test_the_same_seed_gives_the_same_steps() -> None:
    seen = []
    for _ in range(2):
        venv = GymVectorToSB3(arrays(REAL, 2))
        venv.seed(11)
        seen.append([venv.reset()["context"], *(venv.step(np.array([0, 1]))[0]["context"] for _ in range(8))])
    assert all((one == other).all() for one, other in zip(*seen, strict=True))


def test_another_autoreset_mode_is_refused_with_the_remedy() -> None:
    envs = gym.make_vec(DREAM, num_envs=2)
    with pytest.raises(ValueError, match='autoreset_mode="SameStep"'):
        GymVectorToSB3(envs)


# --- the policy ------------------------------------------------------------------------------------------------------


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    observations, _ = arrays(REAL, 5).reset(seed=0)
    return torch.from_numpy(observations["candidates"]), torch.from_numpy(observations["context"])


def test_a_candidate_is_scored_by_what_it_says_not_by_where_it_stands() -> None:
    torch.manual_seed(0)
    scorer = CandidateScorer(512, 8, 16)
    torch.nn.init.normal_(scorer.score.weight)
    candidates, context = batch()
    order = torch.tensor([2, 0, 1, 3, 4, 5, 6, 7])
    scores, values = scorer(candidates, context)
    moved, same = scorer(candidates[:, order], context)
    torch.testing.assert_close(moved, scores[:, order])
    torch.testing.assert_close(same, values)


def test_padding_changes_nothing_and_absent_candidates_have_no_chance() -> None:
    scorer = CandidateScorer(512, 8, 16)
    candidates, context = batch()
    scores, values = scorer(candidates, context)
    wider, _ = scorer(torch.nn.functional.pad(candidates, (0, 5, 0, 4)), torch.nn.functional.pad(context, (0, 3)))
    torch.testing.assert_close(wider[:, :8], scores)
    assert torch.softmax(scores, 1)[:, 3:].sum() == 0
    assert values.shape == (5, 1)


@pytest.mark.parametrize("algorithm", [PPO, MaskablePPO])
def test_ppo_with_and_without_masks_picks_only_what_is_there(algorithm: Any) -> None:
    venv = GymVectorToSB3(arrays(REAL, 4))
    model = algorithm(CandidatePolicy, venv, n_steps=8, batch_size=16, n_epochs=1, device="cpu")
    model.learn(64)
    observations = venv.reset()
    actions, _ = model.predict(observations)
    assert (actions < 3).all()


def test_other_observations_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"TextArrays\(CandidateActions\(env\)\)"):
        MaskablePPO(CandidatePolicy, "CartPole-v1", device="cpu")


# --- cloning ---------------------------------------------------------------------------------------------------------


def test_a_clone_does_what_was_demonstrated() -> None:
    agent = clone(
        DOMAIN,
        demonstrations(),
        CloneConfig(epochs=15, batch_size=32, learning_rate=1e-2),
        agent=small(),
        progress=False,
    )
    cloned = evaluate(REAL, agent, 100, processes=0, progress=False)
    chance = evaluate(REAL, untrained(), 100, processes=0, progress=False)
    assert cloned.ci95[0] > chance.ci95[1]
    assert agent.config.provenance["agreement"] > 0.5


def test_only_successful_demonstrations_count() -> None:
    failures = [t for t in episodes(80) if not t.success]
    with pytest.raises(ValueError, match="record some with `dreamgym record boxes`"):
        clone(DOMAIN, failures, progress=False)
    strangers = [Trajectory(t.task, t.steps, player="passer-by") for t in demonstrations(60)]
    with pytest.raises(ValueError, match="none of 60 episodes"):
        clone(DOMAIN, strangers, progress=False)


def test_actions_that_are_no_candidates_are_left_out_and_counted() -> None:
    # Random players also say "take pin 1" and "drop pin 1" where they are no candidates.
    sloppy = [t for t in episodes(80) if t.success]
    agent = clone(DOMAIN, sloppy, CloneConfig(epochs=1, players=("random",)), agent=small(), progress=False)
    states = sum(len(t.steps) for t in sloppy)
    assert 0 < agent.config.provenance["states_left_out"] == states - agent.config.provenance["states"]


def test_cloning_is_reproducible() -> None:
    twins = [
        clone(DOMAIN, demonstrations(), CloneConfig(epochs=2, seed=4), agent=small(), progress=False) for _ in "ab"
    ]
    for one, other in zip(*(twin.scorer.parameters() for twin in twins), strict=True):
        assert torch.equal(one, other)


# --- agents on disk --------------------------------------------------------------------------------------------------


def saved(path: Path) -> CandidateAgent:
    torch.manual_seed(3)
    agent = CandidateAgent(small(provenance={"seed": 3}), domain=DOMAIN)
    agent.save(path)
    return agent


def test_an_agent_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    agent = saved(tmp_path / "agent")
    loaded = load_agent(tmp_path / "agent")
    assert loaded.config == agent.config
    state = DOMAIN.tasks()[0].initial
    arguments = (["take the ball"], [state.public], [DOMAIN.candidates(DOMAIN.tasks()[0], state)])
    assert (loaded.probabilities(*arguments)[0] == agent.probabilities(*arguments)[0]).all()


def test_an_agent_is_read_without_pickle(tmp_path: Path) -> None:
    saved(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.json", "model.safetensors"]
    json.loads((tmp_path / "agent.json").read_text())
    load_file(tmp_path / "model.safetensors")


def test_what_is_no_agent_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"is no directory; make one with `dreamgym train"):
        load_agent(tmp_path / "nowhere")
    with pytest.raises(AgentError, match=r"has no agent\.json"):
        load_agent(tmp_path)
    (tmp_path / "agent.json").write_text('{"domain": "boxes"}')
    with pytest.raises(AgentError, match="describes no agent"):
        load_agent(tmp_path)
    (tmp_path / "agent.json").write_text("[1, 2")
    with pytest.raises(AgentError, match="describes no agent"):
        load_agent(tmp_path)


@pytest.mark.parametrize("wrong", [{"hidden": -5}, {"hidden": "wide"}, {"candidates": 0}, {"temperature": -1}])
def test_sizes_that_no_agent_has_are_refused_by_name(tmp_path: Path, wrong: dict[str, Any]) -> None:
    saved(tmp_path)
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong}))
    with pytest.raises(AgentError, match=f"describes no agent: {next(iter(wrong))} is"):
        load_agent(tmp_path)


def test_weights_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    saved(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({**weights, "gate.bias": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(AgentError, match=r"gate\.bias has shape \(3,\), expected \(8,\)"):
        load_agent(tmp_path)
    del weights["gate.bias"]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(AgentError, match=r"gate\.bias has shape None"):
        load_agent(tmp_path)


def test_truncated_weights_are_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(AgentError, match="missing or damaged"):
        load_agent(tmp_path)


def test_an_agent_chooses_alike_alone_and_in_company() -> None:
    torch.manual_seed(0)
    agent = CandidateAgent(small(), domain=DOMAIN)
    tasks = DOMAIN.tasks()
    rngs = [np.random.default_rng(i) for i in range(4)]
    states = [task.initial.public for task in tasks]
    offered = [DOMAIN.candidates(task, task.initial) for task in tasks]
    together = agent.act([task.instruction for task in tasks], states, offered, rngs)
    for i, task in enumerate(tasks):
        alone = agent.act([task.instruction], [states[i]], [offered[i]], [np.random.default_rng(i)])
        assert alone == [together[i]]


def test_at_temperature_zero_the_best_candidate_is_taken() -> None:
    agent = CandidateAgent(small(), domain=DOMAIN).with_temperature(0)
    start = DOMAIN.tasks()[0].initial
    chances = agent.probabilities(["take the ball"], [start.public], [DOMAIN.candidates(DOMAIN.tasks()[0], start)])[0]
    assert sorted(chances) == [0, 0, 1]
    with pytest.raises(ValueError, match="temperature is -1"):
        agent.with_temperature(-1)


# --- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [REAL, DREAM])
@pytest.mark.parametrize("algo", ["maskable_ppo", "ppo"])
def test_training_writes_an_agent_and_its_log(env_id: str, algo: str, tmp_path: Path) -> None:
    result = train(env_id, tmp_path / "a", algo=algo, steps=100, num_envs=4, processes=0, config=QUICK, progress=False)
    assert result.steps == 128  # whole updates of 4 x 8
    assert result.episodes > 15
    assert load_agent(tmp_path / "a").config.provenance["env"] == env_id
    lines = [json.loads(line) for line in (tmp_path / "a" / "progress.jsonl").read_text().splitlines()]
    assert [line["steps"] for line in lines] == [32, 64, 96, 128]
    assert set(lines[-1]["by_family"]) <= {"ball", "cube"}
    assert "approx_kl" in lines[-1]


def test_reinforcement_learning_improves_on_nothing(tmp_path: Path) -> None:
    config = PPOConfig(n_steps=16, batch_size=64, n_epochs=4, learning_rate=3e-3, gamma=0.9)
    train(DREAM, tmp_path / "a", steps=4000, num_envs=16, warm_start=untrained(), config=config, progress=False)
    before = evaluate(REAL, untrained(), 100, processes=0, progress=False)
    after = evaluate(REAL, tmp_path / "a", 100, processes=0, progress=False)
    assert after.ci95[0] > before.ci95[1]


def test_a_run_starts_from_its_warm_start(tmp_path: Path) -> None:
    start = clone(DOMAIN, demonstrations(), CloneConfig(epochs=1), agent=small(), progress=False)
    frozen = PPOConfig(n_steps=8, batch_size=32, n_epochs=1, learning_rate=0.0, final_learning_rate=0.0)
    train(DREAM, tmp_path / "a", steps=32, num_envs=4, warm_start=start, config=frozen, progress=False)
    trained = load_agent(tmp_path / "a")
    for one, other in zip(start.scorer.parameters(), trained.scorer.parameters(), strict=True):
        assert torch.equal(one, other)
    assert trained.config.provenance["warm_start"]["method"] == "behaviour cloning"


def test_the_same_seed_trains_the_same_agent(tmp_path: Path) -> None:
    for name in "ab":
        train(
            DREAM, tmp_path / name, steps=64, seed=5, num_envs=4, warm_start=untrained(), config=QUICK, progress=False
        )
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_what_was_paid_is_kept_and_checked_against_the_goal(tmp_path: Path) -> None:
    # Given a dream that pays for looking
    options = {"pays": ["look"]}
    result = train(DREAM, tmp_path / "a", steps=32, num_envs=4, env_options=options, config=QUICK, progress=False)
    lines = [json.loads(line) for line in (tmp_path / "a" / "successes.jsonl").read_text().splitlines()]
    assert result.paid == len(lines) > 0
    # Then the rule finds out, though training has not
    assert result.false_paid == sum(not line["satisfied"] for line in lines) > 0
    assert result.success == 1.0
    # And an honest dream has nothing to find
    honest = train(DREAM, tmp_path / "b", steps=320, num_envs=4, warm_start=untrained(), config=QUICK, progress=False)
    assert honest.paid > 0
    assert honest.false_paid == 0


def test_an_interrupted_run_goes_on_where_its_checkpoint_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a run that is interrupted in its fourth update
    real_step = DreamVectorEnv.step
    steps = 0

    def step(self: DreamVectorEnv, actions: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 27:
            raise KeyboardInterrupt
        return real_step(self, actions)

    monkeypatch.setattr(DreamVectorEnv, "step", step)
    settings: dict[str, Any] = {"num_envs": 4, "config": QUICK, "checkpoint_every": 32, "progress": False}
    settings["warm_start"] = untrained()
    with pytest.raises(KeyboardInterrupt):
        train(DREAM, tmp_path / "a", steps=160, **settings)
    state = json.loads((tmp_path / "a" / "checkpoint" / "state.json").read_text())
    assert state["steps"] == 96
    # When it is resumed, then it takes the steps that are left, with the optimiser it had
    result = train(DREAM, tmp_path / "a", steps=160, resume=True, **settings)
    assert result.steps == 160
    assert [json.loads(line)["steps"] for line in (tmp_path / "a" / "progress.jsonl").read_text().splitlines()] == [
        32,
        64,
        96,
        128,
        160,
    ]
    moments = load_file(next((tmp_path / "a" / "checkpoint").glob("optimiser-160*")))
    assert float(moments["0.step"]) == 10  # updates of 2 gradient steps each, none lost
    # And a finished run has nothing left to do
    assert train(DREAM, tmp_path / "a", steps=160, resume=True, **settings).steps == 160


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    train(DREAM, tmp_path / "a", steps=32, num_envs=4, config=QUICK, progress=False)
    with pytest.raises(FileExistsError, match="holds an agent already"):
        train(DREAM, tmp_path / "a", steps=32, num_envs=4, config=QUICK, progress=False)
    with pytest.raises(AgentError, match=r"is of env='Toy/Boxes-v0', not 'Toy/BoxesReal-v0'"):
        train(REAL, tmp_path / "a", steps=64, num_envs=4, processes=0, resume=True, config=QUICK, progress=False)
    (tmp_path / "a" / "checkpoint" / "state.json").write_text("{}")
    with pytest.raises(AgentError, match="damaged"):
        train(DREAM, tmp_path / "a", steps=64, num_envs=4, resume=True, config=QUICK, progress=False)


def test_mistakes_in_the_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no algorithm 'dqn'; there are: maskable_ppo, ppo"):
        train(DREAM, tmp_path / "a", algo="dqn")
    with pytest.raises(ValueError, match="steps is 0"):
        train(DREAM, tmp_path / "a", steps=0)
    stranger = CandidateAgent(small(domain="elsewhere"), domain=DOMAIN)
    with pytest.raises(AgentError, match="the warm start acts in 'elsewhere', the environment is 'boxes'"):
        train(DREAM, tmp_path / "a", warm_start=stranger, num_envs=2)


# --- evaluation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [REAL, DREAM])
def test_an_evaluation_reports_success_by_family(env_id: str) -> None:
    found = evaluate(env_id, "expert", 40, seed=1, processes=0, progress=False)
    document = found.to_dict()
    assert json.dumps(document)
    assert list(document)[:7] == ["env", "agent", "episodes", "success", "ci95", "mean_return", "mean_length"]
    assert document["episodes"] == sum(int(family["episodes"]) for family in document["by_family"].values()) == 40
    assert set(document["by_family"]) == {"ball", "cube"}
    assert document["ci95"][0] < document["success"] <= document["ci95"][1]
    assert document["mean_return"] == document["success"]
    assert document["false_successes"] == 0


def test_tasks_are_drawn_without_replacement() -> None:
    found = evaluate(REAL, "random", 10, seed=2, processes=0, progress=False)
    ids = [result.task_id for result in found.results]
    for first in (0, 4):
        assert sorted(ids[first : first + 4]) == ["train-0", "train-1", "train-2", "train-3"]
    assert [result.number for result in found.results] == list(range(10))


@pytest.mark.parametrize("agent", ["expert", "trained"])
def test_results_do_not_depend_on_what_runs_side_by_side(agent: str, tmp_path: Path) -> None:
    if agent == "trained":
        agent = str(tmp_path)
        saved(tmp_path)
    alone = evaluate(DREAM, agent, 11, seed=3, num_envs=1, progress=False)
    assert evaluate(DREAM, agent, 11, seed=3, num_envs=4, progress=False).results == alone.results
    assert evaluate(DREAM, agent, 11, seed=4, num_envs=4, progress=False).results != alone.results
    one = evaluate(REAL, agent, 11, seed=3, processes=0, progress=False)
    assert evaluate(REAL, agent, 11, seed=3, processes=2, progress=False).results == one.results


def test_idle_environments_cost_no_predictions() -> None:
    Oracle.calls = 0
    found = evaluate(DREAM, "expert", 5, seed=0, num_envs=5, progress=False)
    # One call a step while anybody plays, one for the first reset and at most one for each that is idle.
    assert Oracle.calls <= max(result.length for result in found.results) + 1 + 5


def test_mistakes_in_an_evaluation_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="episodes is 0"):
        evaluate(REAL, "random", 0)
    for processes in (0, 2):
        with pytest.raises(AgentError, match="expected random, expert, noisy or the directory"):
            evaluate(REAL, "exprt", 3, processes=processes, progress=False)
    with pytest.raises(AgentError, match="the agent acts in 'elsewhere'"):
        make_actor(CandidateAgent(small(domain="elsewhere"), domain=DOMAIN), DOMAIN)
