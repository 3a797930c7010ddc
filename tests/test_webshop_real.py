"""The real shop behind the domain's contract: goals by split, episodes by seed, and a user's own files."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dreamgym_envs.assets import asset
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.domains.base import Engine
from dreamgym_envs.domains.webshop import grammar
from dreamgym_envs.domains.webshop.generator import generate
from dreamgym_envs.domains.webshop.goals import SPLITS, split_of
from dreamgym_envs.domains.webshop.real import WebShopEngine
from dreamgym_envs.domains.webshop.records import CatalogueError

SCHEMA = Schema.load(asset("schemas", "webshop.json"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return WebShopEngine(split="test")


def episode(engine: Engine, seed: int, steps: int = 20) -> list:
    """Play at random from a seed; return everything that came of it."""
    rng = np.random.default_rng(seed)
    task = engine.reset(rng)
    state, trace = task.initial, [task]
    for _ in range(steps):
        offered = grammar.candidates(task, state)
        state, reward, terminated = engine.step(offered[int(rng.integers(len(offered)))])
        trace.append((state, reward, terminated))
        if terminated:
            break
    return trace


def test_every_split_has_goals_of_its_own_products_alone():
    seen: dict[str, set[str]] = {}
    for split in SPLITS:
        engine = WebShopEngine(split=split)
        seen[split] = {engine.goal(task_id).product.asin for task_id in engine.task_ids}
        assert all(split_of(asin) == split for asin in seen[split])
        assert all(task_id.startswith(f"{split}-") for task_id in engine.task_ids)
        assert len(engine.task_ids) >= 400
    assert not seen["train"] & seen["test"] and not seen["valid"] & seen["test"]


def test_held_out_products_are_not_for_sale_in_the_shop_of_training():
    rng = np.random.default_rng(0)
    train, test = WebShopEngine(split="train"), WebShopEngine(split="test")
    held_out = {test.goal(task_id).product.asin.lower() for task_id in test.task_ids}
    for task_id in test.task_ids[:30]:
        train.reset(rng)
        title = test.goal(task_id).product.title
        state, _, _ = train.step(f"search[{title}]")
        assert held_out.isdisjoint(item["id"] for item in state.public["items"])
        test.reset(rng, task_id)
        state, _, _ = test.step(f"search[{title}]")
        assert test.goal(task_id).product.asin.lower() in {item["id"] for item in state.public["items"]}


def test_the_same_seed_gives_the_same_episode_and_all_states_fit_the_schema(engine):
    for seed in range(20):
        trace = episode(engine, seed)
        assert trace == episode(engine, seed)
        for state, reward, terminated in trace[1:]:
            SCHEMA.validate(state)
            assert 0.0 <= reward <= 1.0
            assert terminated == (state.public["page"] == "done")
            assert reward == 0.0 or terminated


def test_whatever_an_agent_says_the_episode_goes_on_in_states_that_fit_the_schema(engine):
    rng = np.random.default_rng(5)
    said = ["", "search[]", "search[ ]", "search[\u2764 [x]]", "click[", "click[]]", "click[search]", "buy"]
    said += [f"search[{'a b ' * 400}]", *(f"click[{button}]" for button in grammar.BUTTONS)]
    for _ in range(60):
        task = engine.reset(rng)
        state, terminated = task.initial, False
        for _ in range(40):
            choices = grammar.candidates(task, state) if rng.random() < 0.5 else said
            state, _, terminated = engine.step(choices[int(rng.integers(len(choices)))])
            SCHEMA.validate(state)
            if terminated:
                break


def test_goal_ids_are_stable():
    # Recordings and reports name them: a change here is a new catalogue.
    assert WebShopEngine(split="test").task_ids[:2] == ("test-B0V7K095A3-0", "test-B0V7K095A3-1")


def test_a_goal_is_played_by_its_id_and_the_task_says_what_it_asks(engine):
    task_id = engine.task_ids[7]
    task = engine.reset(np.random.default_rng(0), task_id)
    goal = engine.goal(task_id)
    assert (task.id, task.instruction, task.family) == (task_id, goal.instruction, goal.kind)
    assert task.metadata["asin"] == goal.product.asin
    assert task.initial.public["page"] == "search"


def test_a_shopper_that_knows_the_goal_is_paid_in_full(engine):
    paid = []
    for task_id in engine.task_ids[:40]:
        engine.reset(np.random.default_rng(0), task_id)
        goal = engine.goal(task_id)
        engine.step(f"search[{goal.product.title}]")
        engine.step(f"click[{goal.product.asin}]")
        for value in goal.options:
            engine.step(f"click[{value}]")
        _, reward, terminated = engine.step("click[buy now]")
        assert terminated
        paid.append(reward)
    assert paid == [1.0] * 40


def test_count_takes_the_first_goals():
    assert WebShopEngine(split="valid", count=5).task_ids == WebShopEngine(split="valid").task_ids[:5]


def test_no_episode_no_step(engine):
    with pytest.raises(RuntimeError, match="call reset first"):
        WebShopEngine(split="test").step("search[shirt]")
    engine.reset(np.random.default_rng(0))
    engine.close()
    with pytest.raises(RuntimeError, match="call reset first"):
        engine.step("search[shirt]")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "valid_seen"}, "no split 'valid_seen'; there are: train, valid, test"),
        ({"count": 0}, "count is 0; expected at least 1 goal"),
        ({"count": 1.5}, "count is 1.5"),
        ({"attributes": "a.json"}, "without products"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        WebShopEngine(**options)


def test_an_unknown_goal_is_named(engine):
    with pytest.raises(ValueError, match=r"no goal 'x'; there are \d+, the first is 'test-"):
        engine.reset(np.random.default_rng(0), "x")


def files(folder: Path, count: int = 300) -> list[Path]:
    paths = []
    for name, data in zip(("items", "attributes", "human"), generate(seed=1, count=count), strict=True):
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(data), encoding="utf-8")
    return paths


def test_a_users_files_make_a_shop_with_human_goals_or_those_of_the_attribute_file(tmp_path):
    products, attributes, human = files(tmp_path)
    with_people = WebShopEngine(products, attributes, human, split="test")
    by_template = WebShopEngine(products, attributes, split="test")
    assert len(with_people.task_ids) < len(by_template.task_ids)
    assert all(not with_people.goal(task_id).option_names for task_id in with_people.task_ids)
    assert any(by_template.goal(task_id).option_names for task_id in by_template.task_ids)
    assert episode(by_template, 0)[1:]


def test_files_without_instructions_have_no_goals(tmp_path):
    products, *_ = files(tmp_path, count=60)
    with pytest.raises(ValueError, match="no goals in the split 'test'"):
        WebShopEngine(products)


def test_missing_and_malformed_files_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError):
        WebShopEngine(tmp_path / "items.json")
    (tmp_path / "items.json").write_text("[")
    with pytest.raises(CatalogueError, match="no JSON"):
        WebShopEngine(tmp_path / "items.json")


def test_without_the_extra_the_error_names_it():
    program = (
        "import sys; sys.modules.update({name: None for name in %r})\n"
        "try:\n"
        "    from dreamgym_envs.domains.webshop.real import WebShopEngine\n"
        "    WebShopEngine()\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    for names in (("rapidfuzz",), ("bm25s",), ("Stemmer",)):
        done = subprocess.run([sys.executable, "-c", program % (names,)], capture_output=True, text=True, check=True)
        assert "pip install 'dreamgym-envs[webshop]'" in done.stdout, (names, done)


def test_a_fresh_process_opens_the_shop_in_seconds():
    program = (
        "import time; start = time.process_time()\n"
        "from dreamgym_envs.domains.webshop.real import WebShopEngine\n"
        "WebShopEngine(split='test')\n"
        "print(time.process_time() - start)\n"
    )
    seconds = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    # It takes 1.1 to 1.4 s where nothing else runs; the limit is for machines that are busy.
    assert min(seconds) < 10.0


def test_a_second_engine_shares_what_the_first_has_read(engine):
    start = time.process_time()
    WebShopEngine(split="test")
    assert time.process_time() - start < 1.0
