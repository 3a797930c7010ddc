"""The real ALFWorld engine: memoised without a difference, and the facts of its world that the rest relies on."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("textworld", reason="the extra alfworld is not installed")

from dreamgym_envs.domains.alfworld import engine
from dreamgym_envs.domains.alfworld.engine import AlfworldGame, UnsolvableGame
from dreamgym_envs.domains.alfworld.furnishing import Item, Receptacle
from dreamgym_envs.domains.alfworld.houses import House, house
from dreamgym_envs.domains.alfworld.problem import game

SINK, COUNTER, OVEN, COLD, CUPBOARDS = (0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 0), (4, 0, 0, 0)


def kitchen(family: str = "pick_heat_then_place_in_recep", target: str = "Mug", parent: str = "Cabinet") -> House:
    """Two cupboards used from one place, a sink, a counter with mugs, a spoon and a lamp, a microwave, a fridge."""

    def name(kind: str, number: int) -> str:
        return f"{kind}_bar_{number}" + ("_bar_SinkBasin" if kind == "Sink" else "")

    receptacles = (
        Receptacle(name("Cabinet", 1), "Cabinet", CUPBOARDS),
        Receptacle(name("Cabinet", 2), "Cabinet", CUPBOARDS),
        Receptacle(name("Sink", 1), "SinkBasin", SINK),
        Receptacle(name("CounterTop", 1), "CounterTop", COUNTER),
        Receptacle(name("Microwave", 1), "Microwave", OVEN),
        Receptacle(name("Fridge", 1), "Fridge", COLD),
    )
    items = (
        Item(name("Mug", 1), "Mug", name("CounterTop", 1), COUNTER),
        Item(name("Mug", 2), "Mug", name("CounterTop", 1), COUNTER),
        Item(name("DeskLamp", 1), "DeskLamp", name("CounterTop", 1), COUNTER),
        Item(name("Spoon", 1), "Spoon", name("CounterTop", 1), COUNTER),
        Item(name("Plate", 1), "Plate", name("Cabinet", 2), CUPBOARDS),
    )
    return House(
        "test-kitchen",
        family,
        "kitchen",
        0,
        "put a hot mug in cabinet",
        target,
        parent,
        (9, 9, 0, 0),
        receptacles,
        items,
    )


TOUR = (
    "go to countertop 1",
    "take mug 1 from countertop 1",
    "go to cabinet 1",
    "open cabinet 1",
    "look",
    "open cabinet 2",
)


@pytest.fixture(scope="module")
def played() -> AlfworldGame:
    play = AlfworldGame()
    play.load(game(kitchen()))
    return play


def say(play: AlfworldGame, *commands: str) -> str:
    """Give commands after a reset and return the last answer."""
    play.reset()
    answer = ""
    for command in commands:
        answer, _ = play.step(command)
    return answer


# --- memoisation -----------------------------------------------------------------------------------------------------


def stream(play: AlfworldGame, seed: int, steps: int) -> list[object]:
    """Play at random, now and then nonsense, and return all that the engine says."""
    rng = random.Random(seed)
    said: list[object] = [play.reset(), play.admissible_commands]
    for _ in range(steps):
        command = rng.choice([*play.admissible_commands, "take moon 1 from sky 1", "use drawer 1"])
        said += [command, play.step(command), play.admissible_commands]
    return said


@pytest.mark.parametrize(
    ("home", "steps"), [(kitchen(), 12), pytest.param(house("valid-000005"), 25, marks=pytest.mark.slow)]
)
def test_the_memoised_engine_says_what_the_plain_one_says(home: House, steps: int) -> None:
    plain, memoised = AlfworldGame(memoise=False), AlfworldGame()
    plain.load(game(home))
    for seed in range(2):
        memoised.load(game(home))  # the second load finds everything remembered
        assert stream(memoised, seed, steps) == stream(plain, seed, steps)
    plain.close()
    memoised.close()


def test_a_load_translates_once_and_a_reset_never(played: AlfworldGame, monkeypatch: pytest.MonkeyPatch) -> None:
    translate = sys.modules["fast_downward.translate.translate"]  # loaded by `played`; a plain import reads sys.argv
    calls = []
    original = translate.pddl_to_sas
    monkeypatch.setattr(translate, "pddl_to_sas", lambda task: calls.append(1) or original(task))
    play = AlfworldGame()
    unseen = replace(kitchen(), id="test-unseen")
    play.load(game(unseen))
    assert len(calls) == 1
    play.reset()
    play.step("look")
    play.reset()
    play.load(game(unseen))
    assert len(calls) == 1


def test_memory_of_facts_is_bounded() -> None:
    # textworld interns the facts of every game it ever saw; those of earlier games are forgotten
    play = AlfworldGame()
    sizes = []
    for number in range(4):
        home = kitchen()
        renamed = tuple(replace(item, name=f"{item.name}_bar_{number}") for item in home.items)
        play.load(game(replace(home, items=renamed)))
        sizes.append(len(engine._modules().interned))
    assert max(sizes) < 1.5 * min(sizes)
    play.close()


def test_two_games_live_side_by_side() -> None:
    homes = kitchen(), replace(kitchen(), items=kitchen().items[:1])
    games = AlfworldGame(), AlfworldGame()
    for play, home in zip(games, homes, strict=True):
        play.load(game(home))
    apart = [[play.reset(), *(play.step(command) for command in TOUR)] for play in games]
    together = [[play.reset()] for play in games]
    for command in TOUR:
        for play, said in zip(games, together, strict=True):
            said.append(play.step(command))
    assert together == apart
    assert apart[0] != apart[1]
    for play in games:
        play.close()


def test_a_closed_game_lends_its_library_to_the_next_one() -> None:
    first = AlfworldGame()
    library = first._env.unwrapped.downward_lib
    first.close()
    first.close()
    second = AlfworldGame()
    assert second._env.unwrapped.downward_lib is library
    with pytest.raises(RuntimeError, match="closed"):
        first.load(game(kitchen()))


def test_playing_prints_nothing_and_leaves_argv_alone(capfd: pytest.CaptureFixture[str]) -> None:
    before = list(sys.argv)
    play = AlfworldGame(planner=True)
    play.load(game(kitchen()))
    play.reset()
    play.step("look")
    play.plan()
    play.close()
    assert sys.argv == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_texts_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from test_alfworld_engine import *\n"
        "play = AlfworldGame(); play.load(game(house('valid-000005'))); print(stream(play, 0, 12))"
    )
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


# --- planner and hidden facts ----------------------------------------------------------------------------------------


def test_the_plan_reaches_the_goal() -> None:
    play = AlfworldGame(planner=True)
    play.load(game(kitchen()))
    play.reset()
    plan = play.plan()
    assert plan
    won = [play.step(command)[1] for command in plan]
    assert won == [False] * (len(plan) - 1) + [True]
    assert play.won
    assert play.plan() == []


def test_a_goal_out_of_reach_has_no_plan() -> None:
    # given: one mug where two are wanted, which only search can find out
    play = AlfworldGame(planner=True)
    home = replace(kitchen("pick_two_obj_and_place", "Plate"), items=kitchen().items)
    play.load(game(home))
    play.reset()
    # then
    assert play.plan() is None


def test_a_goal_that_can_never_hold_is_refused_at_once(played: AlfworldGame) -> None:
    play = AlfworldGame()
    with pytest.raises(UnsolvableGame, match="never hold"):
        play.load(game(kitchen(target="Book")))
    play.load(game(kitchen()))
    assert play.reset()


def test_planning_needs_a_planner(played: AlfworldGame) -> None:
    with pytest.raises(RuntimeError, match="planner=True"):
        played.plan()


def test_truth_knows_what_the_agent_has_not_seen(played: AlfworldGame) -> None:
    played.reset()
    truth = played.truth()
    assert truth.location == () and truth.holding == ()
    assert truth.contents["countertop 1"] == ("desklamp 1", "mug 1", "mug 2", "spoon 1")
    assert truth.contents["sinkbasin 1"] == ()
    assert truth.openable == {"cabinet 1", "cabinet 2", "microwave 1", "fridge 1"}
    assert ("cabinet 1", "cabinet 2") in truth.places


def test_truth_follows_the_game(played: AlfworldGame) -> None:
    say(
        played,
        "go to countertop 1",
        "use desklamp 1",
        "take mug 1 from countertop 1",
        "go to fridge 1",
        "open fridge 1",
    )
    played.step("cool mug 1 with fridge 1")
    truth = played.truth()
    assert truth.location == ("fridge 1",)
    assert truth.holding == ("mug 1",)
    assert truth.opened == {"fridge 1"}
    assert truth.flags == {"mug 1": ("cool",), "desklamp 1": ("on",)}
    assert truth.contents["countertop 1"] == ("desklamp 1", "mug 2", "spoon 1")


# --- what the engine is like: the parser, the players and the reasoning templates count on this ----------------------


def test_go_to_a_receptacle_within_reach_does_nothing(played: AlfworldGame) -> None:
    assert say(played, "go to cabinet 1") == "You arrive at cabinet 1. The cabinet 1 is closed."
    assert say(played, "go to cabinet 1", "go to cabinet 1") == "Nothing happens."
    assert say(played, "go to cabinet 1", "go to cabinet 2") == "Nothing happens."


def test_look_names_all_that_is_within_reach_and_nothing_in_the_middle(played: AlfworldGame) -> None:
    answer = say(played, "go to cabinet 1", "look")
    assert answer.startswith("You are facing the ")
    assert "cabinet 1" in answer and "cabinet 2" in answer
    assert say(played, "look") == "You are in the middle of a room. Looking quickly around you, you see nothing."


def test_every_receptacle_within_reach_can_be_used_without_going_there(played: AlfworldGame) -> None:
    played.reset()
    inside = played.truth().contents
    empty, full = sorted(("cabinet 1", "cabinet 2"), key=lambda name: len(inside[name]))
    assert say(played, f"go to {empty}", f"examine {full}") == f"The {full} is closed."
    opened = say(played, f"go to {empty}", f"open {full}")
    assert opened == f"You open the {full}. The {full} is open. In it, you see a plate 1."
    taken, _ = played.step(f"take plate 1 from {full}")
    assert taken == f"You pick up the plate 1 from the {full}."
    assert played.step(f"move plate 1 to {empty}")[0] == "Nothing happens."  # still closed
    played.step(f"open {empty}")
    assert played.step(f"move plate 1 to {empty}")[0] == f"You move the plate 1 to the {empty}."
    assert played.step(f"close {empty}")[0] == f"You close the {empty}."
    assert played.step(f"take plate 1 from {empty}")[0] == "Nothing happens."


def test_only_held_objects_can_be_examined(played: AlfworldGame) -> None:
    assert say(played, "go to countertop 1", "examine spoon 1") == "Nothing happens."
    held = ("go to countertop 1", "take spoon 1 from countertop 1")
    clean = ("go to sinkbasin 1", "clean spoon 1 with sinkbasin 1")
    assert say(played, *held, "examine spoon 1") == "There's nothing special about spoon 1."
    assert say(played, *held, *clean, "examine spoon 1") == "This is a clean spoon 1."


def test_objects_that_hold_others_never_tell_that_they_are_clean(played: AlfworldGame) -> None:
    held = ("go to countertop 1", "take mug 1 from countertop 1")
    clean = ("go to sinkbasin 1", "clean mug 1 with sinkbasin 1")
    assert say(played, *held, *clean, "examine mug 1") == "This is a normal mug 1. In it, you see nothing."


def test_heating_and_cooling_need_no_open_door_and_undo_each_other(played: AlfworldGame) -> None:
    held = ("go to countertop 1", "take mug 1 from countertop 1")
    heat = ("go to microwave 1", "heat mug 1 with microwave 1")
    cool = ("go to fridge 1", "cool mug 1 with fridge 1")
    assert say(played, *held, *heat) == "You heat the mug 1 using the microwave 1."
    assert played.truth().flags == {"mug 1": ("hot",)}
    say(played, *held, *heat, *cool)
    assert played.truth().flags == {"mug 1": ("cool",)}
    say(played, *held, *cool, *heat)
    assert played.truth().flags == {"mug 1": ("hot",)}


def test_a_lamp_that_is_on_stays_on(played: AlfworldGame) -> None:
    for times in (1, 2):
        assert say(played, "go to countertop 1", *["use desklamp 1"] * times) == "You turn on the desklamp 1."
        assert played.truth().flags == {"desklamp 1": ("on",)}


def test_one_hand_holds_one_thing(played: AlfworldGame) -> None:
    held = ("go to countertop 1", "take mug 1 from countertop 1")
    assert say(played, *held, "inventory") == "You are carrying: a mug 1."
    assert say(played, *held, "take mug 2 from countertop 1") == "Nothing happens."
    assert say(played, "inventory") == "You are not carrying anything."


# --- bad input -------------------------------------------------------------------------------------------------------


def test_playing_out_of_order_is_refused() -> None:
    play = AlfworldGame()
    with pytest.raises(RuntimeError, match="load"):
        play.reset()
    play.load(game(kitchen()))
    with pytest.raises(RuntimeError, match="reset"):
        play.step("look")
    play.close()


def test_what_is_no_game_is_refused(tmp_path: Path) -> None:
    play = AlfworldGame()
    with pytest.raises(FileNotFoundError, match=r"game\.tw-pddl"):
        play.load(tmp_path / "game.tw-pddl")
    (tmp_path / "broken").write_text('{"pddl_domain": ')
    with pytest.raises(ValueError, match="not a game"):
        play.load(tmp_path / "broken")
    (tmp_path / "partial").write_text(json.dumps({"pddl_domain": "(define (domain alfred))"}))
    with pytest.raises(ValueError, match="grammar, pddl_problem"):
        play.load(tmp_path / "partial")
    play.close()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textworld", None)
    with pytest.raises(ImportError, match=r"pip install 'dreamgym-envs\[alfworld\]'"):
        engine._modules.__wrapped__()
