"""The real ALFWorld behind the domain's contract, on generated and on official games."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("textworld", reason="the extra alfworld is not installed")

from dreamgym_envs.core.types import State
from dreamgym_envs.domains.alfworld.domain import ALFWorld
from dreamgym_envs.domains.alfworld.engine import Truth
from dreamgym_envs.domains.alfworld.games import GeneratedGames, OfficialGames, find_games
from dreamgym_envs.domains.alfworld.houses import house
from dreamgym_envs.domains.alfworld.problem import game
from dreamgym_envs.domains.alfworld.real import AlfworldEngine

OFFICIAL = Path(__file__).parents[2] / "shared" / "data" / "alfworld"
SMALL = "valid-000005"
"""Two cloths to the toilet: 17 receptacles."""


def write(root: Path, name: str, family: str, **changes: object) -> Path:
    """Write a game as alfworld-download lays them out, in "<task>/<trial>"."""
    folder = root / name / "trial_T1"
    folder.mkdir(parents=True)
    (folder / "traj_data.json").write_text(json.dumps({"task_type": family}))
    (folder / "game.tw-pddl").write_text(json.dumps({**game(house(SMALL)), "solvable": True, **changes}))
    return folder


# --- playing ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> AlfworldEngine:
    return AlfworldEngine(split="valid")


def test_a_task_starts_with_everything_unseen(real: AlfworldEngine) -> None:
    task = real.reset(np.random.default_rng(0), SMALL)
    assert task.id == SMALL
    assert task.family == "pick_two_obj_and_place"
    assert task.instruction.rstrip(".") == house(SMALL).instruction
    assert len(task.initial.public["receptacles"]) == len(house(SMALL).receptacles)
    assert {row["status"] for row in task.initial.public["receptacles"]} == {"unseen"}
    assert not task.initial.private
    ALFWorld().schema.validate(task.initial)


def test_the_goal_alone_is_rewarded_and_ends_the_episode(real: AlfworldEngine) -> None:
    real.reset(np.random.default_rng(0), SMALL)
    truth = real.truth()
    cloths = [(item, place) for place, items in truth.contents.items() for item in items if item.startswith("cloth ")]
    rewards = []
    for item, place in cloths[:2]:
        moves = [f"go to {place}", f"open {place}", f"take {item} from {place}", "go to toilet 1"]
        rewards += [real.step(action)[1:] for action in moves]
        rewards.append(real.step(f"put {item} in/on toilet 1")[1:])  # the old grammar
    assert rewards == [(0.0, False)] * 9 + [(1.0, True)]
    with pytest.raises(RuntimeError, match="reset"):
        real.step("look")


def known_is_true(state: State, truth: Truth) -> bool:
    rows = [row for row in state.public["receptacles"] if row["status"] in ("open", "surface", "shut")]
    return (
        all(sorted(item["name"] for item in row["contents"]) == list(truth.contents[row["name"]]) for row in rows)
        and tuple(item["name"] for item in state.public["holding"]) == truth.holding
        and set(state.public["location"]) <= set(truth.location)
        and all((row["status"] == "open") == (row["name"] in truth.opened) for row in rows)
    )


def test_the_abstract_state_never_contradicts_the_world(real: AlfworldEngine) -> None:
    domain, rng = ALFWorld(), random.Random(0)
    task = real.reset(np.random.default_rng(0), SMALL)
    state = task.initial
    for _ in range(60):
        # given: what random play can do, doors and hands first
        options = domain.candidates(task, state)
        busy = [option for option in options if not option.startswith("go")]
        action = rng.choice(busy if busy and rng.random() < 0.7 else options)
        # when: it is done in the real engine
        state, _, terminated = real.step(action)
        # then: all that the state claims to know is so
        domain.schema.validate(state)
        assert known_is_true(state, real.truth()), action
        if terminated:
            break


def test_the_generator_alone_decides_which_task_comes(real: AlfworldEngine) -> None:
    engine = AlfworldEngine(split="valid", count=6)
    drawn = [engine.reset(np.random.default_rng(seed)).id for seed in (7, 7)]
    assert drawn[0] == drawn[1]
    assert drawn[0] in engine.task_ids
    assert len(engine.task_ids) == 6
    engine.close()


def test_stepping_before_a_reset_is_refused() -> None:
    with pytest.raises(RuntimeError, match="reset"):
        AlfworldEngine(split="valid").step("look")


# --- which games -----------------------------------------------------------------------------------------------------


def test_generated_splits_have_their_ids() -> None:
    assert GeneratedGames("valid", 2).ids == ("valid-000000", "valid-000001")
    assert GeneratedGames("valid", 2).load("valid-000001").metadata["source"] == "generated"


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (-1, ValueError), ("many", TypeError)])
def test_a_number_of_games_is_at_least_one(count: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"count is {count!r}; expected"):
        find_games(split="test", count=count)


def test_an_unknown_split_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"train, valid, test.*valid_seen"):
        AlfworldEngine(split="dev")


def test_official_games_are_picked_as_alfworld_picks_them(tmp_path: Path) -> None:
    split = tmp_path / "json_2.1.1" / "valid_seen"
    write(split, "pick_two_obj_and_place-Cloth-None-Toilet-1", "pick_two_obj_and_place")
    write(split, "pick_two_obj_and_place-Cloth-None-Toilet-2", "pick_two_obj_and_place", solvable=False)
    write(split, "pick_and_place_with_movable_recep-Pen-Mug-Desk-3", "pick_and_place_with_movable_recep")
    write(split, "pick_two_obj_and_place-AppleSliced-None-Fridge-4", "pick_two_obj_and_place")
    write(split, "pick_two_obj_and_place-Cloth-None-Toilet-5", "pick_two_obj_and_place").joinpath(
        "game.tw-pddl"
    ).unlink()
    found = OfficialGames(tmp_path)
    assert found.ids == ("pick_two_obj_and_place-Cloth-None-Toilet-1/trial_T1",)
    assert found.load(found.ids[0]).family == "pick_two_obj_and_place"


@pytest.mark.parametrize("below", [".", "json_2.1.1", "json_2.1.1/valid_seen"])
def test_the_folder_may_be_any_of_the_three(tmp_path: Path, below: str) -> None:
    write(tmp_path / "json_2.1.1" / "valid_seen", "look_at_obj_in_light-Pen-None-DeskLamp-1", "look_at_obj_in_light")
    assert len(OfficialGames(tmp_path / below).ids) == 1


def test_official_games_are_found_through_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "json_2.1.1" / "valid_seen", "look_at_obj_in_light-Pen-None-DeskLamp-1", "look_at_obj_in_light")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert len(find_games(split="valid_seen").ids) == 1
    assert len(find_games("official", "valid_seen").ids) == 1
    assert find_games(split="train").ids[0] == "train-000000"  # generated houses unless asked


def test_missing_games_say_what_is_missing_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no folder .*valid_seen \(ALFWORLD_DATA.*alfworld-download"):
        find_games(split="valid_seen")
    (tmp_path / "valid_seen" / "empty").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"no playable game below .*split='test'"):
        find_games(tmp_path, "valid_seen")


def test_a_broken_official_game_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "valid_seen", "look_at_obj_in_light-Pen-None-DeskLamp-1", "look_at_obj_in_light")
    (folder / "game.tw-pddl").write_text('{"solvable": tr')
    with pytest.raises(ValueError, match="trial_T1 holds no ALFWorld game"):
        OfficialGames(tmp_path)


def test_an_unknown_game_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "valid_seen", "look_at_obj_in_light-Pen-None-DeskLamp-1", "look_at_obj_in_light")
    with pytest.raises(ValueError, match="no official game 'mars'"):
        AlfworldEngine(tmp_path, "valid_seen").reset(np.random.default_rng(0), "mars")


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason=f"no official games at {OFFICIAL}")
def test_the_official_games_play() -> None:
    engine = AlfworldEngine(OFFICIAL, "valid_seen")
    assert len(engine.task_ids) == 140
    task = engine.reset(np.random.default_rng(0), engine.task_ids[0])
    place = task.initial.public["receptacles"][0]["name"]
    state, reward, terminated = engine.step(f"go to {place}")
    assert state.public["location"][0] == place
    assert (reward, terminated) == (0.0, False)
    engine.close()
