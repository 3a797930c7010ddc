"""Generated houses: reproducible, open at the start, possible to solve, and distributed like the official games."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("textworld", reason="the extra alfworld is not installed")

from dreamgym_envs.domains.alfworld import houses as generator
from dreamgym_envs.domains.alfworld.engine import AlfworldGame
from dreamgym_envs.domains.alfworld.houses import FAMILIES, House, house, houses
from dreamgym_envs.domains.alfworld.problem import game, solvable
from dreamgym_envs.domains.alfworld.scenes import ROOMS, material, scenes

OFFICIAL = Path(__file__).parents[2] / "shared" / "data" / "alfworld" / "json_2.1.1"
NEEDS = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}


@pytest.fixture(scope="module")
def sample() -> list[House]:
    return list(houses("train", 300))


# --- ids and splits --------------------------------------------------------------------------------------------------


def test_an_id_says_everything() -> None:
    assert house("train-000123") == house("train-000123")
    assert [home.id for home in houses("valid", 3, start=10)] == ["valid-000010", "valid-000011", "valid-000012"]
    assert next(houses("valid", 1, start=10)) == house("valid-000010")


def test_an_id_means_the_same_house_for_ever() -> None:
    # recorded data and reported scores name houses by id: a change here invalidates them
    home = house("test-000003")
    assert home.instruction == "put a hot potato in garbagecan"
    assert (home.plan, len(home.receptacles), len(home.items)) == (9, 49, 54)


def test_splits_share_no_house() -> None:
    furniture = [{(home.receptacles, home.items) for home in houses(split, 40)} for split in generator.SPLITS]
    assert len(set.union(*furniture)) == 120


@pytest.mark.parametrize("house_id", ["train-1", "kitchen-000001", "train", "", "train-00000x", "train-²²²²²²"])
def test_other_ids_are_refused(house_id: str) -> None:
    with pytest.raises(ValueError, match="train-000123"):
        house(house_id)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match="train, valid, test"):
        next(houses("valid_seen", 1))


def test_all_families_come_in_turn(sample: list[House]) -> None:
    assert Counter(home.family for home in sample) == dict.fromkeys(FAMILIES, 50)


# --- every task is open and possible ---------------------------------------------------------------------------------


def test_no_task_is_solved_at_the_start(sample: list[House]) -> None:
    assert not any(home.solved for home in sample)


def test_every_task_is_possible(sample: list[House]) -> None:
    for home in sample:
        kinds = Counter(receptacle.kind for receptacle in home.receptacles)
        placed = [item for item in home.items if item.place is not None]
        wanted = [item for item in placed if item.kind == home.target]
        assert len(wanted) >= (2 if home.family == "pick_two_obj_and_place" else 1), home.id
        if home.family == "look_at_obj_in_light":
            assert any(item.kind == home.parent for item in placed), home.id
            continue
        assert kinds[home.parent] > 0 and home.target in material().fits[home.parent], home.id
        if home.family in NEEDS:
            affordance, appliance = NEEDS[home.family]
            assert kinds[appliance] > 0 and home.target in material().affordances[affordance], home.id


def test_simple_and_double_tasks_start_with_an_empty_target(sample: list[House]) -> None:
    for home in sample:
        if home.family in ("pick_and_place_simple", "pick_two_obj_and_place"):
            kinds = {receptacle.name: receptacle.kind for receptacle in home.receptacles}
            inside = [item for item in home.items if item.kind == home.target and item.place is not None]
            assert all(kinds[item.place] != home.parent for item in inside), home.id


def test_things_stand_where_their_receptacle_is(sample: list[House]) -> None:
    for home in sample:
        poses = {receptacle.name: receptacle.pose for receptacle in home.receptacles}
        assert len(poses) == len(home.receptacles)
        assert len({item.name for item in home.items}) == len(home.items)
        assert home.start not in poses.values()
        assert all(item.pose == poses[item.place] for item in home.items if item.place is not None)


def test_instructions_use_both_templates_of_every_family(sample: list[House]) -> None:
    for family in FAMILIES:
        templates = material().goals[family][1]
        used = {
            template
            for home in sample
            for template in templates
            if home.family == family
            and home.instruction
            == template.format(obj=home.target.lower(), recep=home.parent.lower(), toggle=home.parent.lower())
        }
        assert used == set(templates)


def test_solved_tells_an_open_task_from_a_solved_one() -> None:
    home = house("train-000005")  # two of something
    assert home.family == "pick_two_obj_and_place"
    target = next(receptacle for receptacle in home.receptacles if receptacle.kind == home.parent)
    wanted = [item for item in home.items if item.kind == home.target][:2]

    def with_inside(count: int) -> House:
        moved = {item.name for item in wanted[:count]}
        return replace(home, items=tuple(replace(i, place=target.name) if i.name in moved else i for i in home.items))

    assert [with_inside(count).solved for count in (0, 1, 2)] == [False, False, True]


# --- in the real engine ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def play() -> AlfworldGame:
    return AlfworldGame()


def small(family: str) -> House:
    """A house of the family with few receptacles: quick to translate and to plan in."""
    numbers = range(FAMILIES.index(family), 240, len(FAMILIES))
    return min((house(f"valid-{n:06d}") for n in numbers), key=lambda home: len(home.receptacles) + len(home.items) / 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_engine_plays_a_house_as_written(play: AlfworldGame, family: str) -> None:
    home = small(family)
    play.load(game(home))
    intro = play.reset()
    assert not play.won
    assert intro.endswith(f"Your task is to: {home.instruction}.")
    truth = play.truth()
    named = Counter(name.rsplit(" ", 1)[0] for name in truth.contents)
    assert named == Counter(receptacle.kind.lower() for receptacle in home.receptacles)
    placed = Counter(item.rsplit(" ", 1)[0] for items in truth.contents.values() for item in items)
    assert placed == Counter(item.kind.lower() for item in home.items if item.place is not None)
    assert {name for name in truth.contents if name in intro} == set(truth.contents)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_planner_solves_a_small_house(family: str) -> None:
    assert solvable(small(family))


def test_the_planner_finds_an_impossible_house_impossible() -> None:
    home = small("pick_and_place_simple")
    gone = tuple(item for item in home.items if item.kind != home.target)
    assert not solvable(replace(home, items=gone))


@pytest.mark.slow
def test_the_planner_solves_a_sample_of_houses() -> None:
    for home in houses("test", 36):
        if len(home.receptacles) < 20:  # larger ones can take minutes
            assert solvable(home), home.id


# --- like the official games -----------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_official_games(sample: list[House]) -> None:
    receptacles = [len(home.receptacles) for home in sample]
    objects = [sum(item.place is not None for item in home.items) for home in sample]
    shared = []
    for home in sample:
        there = Counter(receptacle.pose for receptacle in home.receptacles)
        shared.append(sum(count for count in there.values() if count > 1) / len(home.receptacles))
    assert 20 < sum(receptacles) / len(sample) < 27 and max(receptacles) <= 54
    assert 28 < sum(objects) / len(sample) < 38 and max(objects) <= 64
    assert 0.13 < sum(shared) / len(sample) < 0.21


def official() -> Iterator[tuple[str, str]]:
    """Yield room and PDDL problem of the official games."""
    for path in sorted(OFFICIAL.rglob("game.tw-pddl")):
        plan = int(path.parts[-3].rsplit("-", 1)[1])
        yield ROOMS[max(plan // 100 - 1, 0)], json.loads(path.read_text(encoding="utf-8"))["pddl_problem"]


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason=f"no official games at {OFFICIAL}")
def test_rooms_hold_the_kinds_of_things_that_official_ones_hold(sample: list[House]) -> None:
    theirs: dict[str, Counter[str]] = {room: Counter() for room in ROOMS}
    rooms: Counter[str] = Counter()
    for room, problem in official():
        rooms[room] += 1
        kinds = dict(re.findall(r"\((?:objectType|receptacleType) (\S+) (\w+)Type\)", problem))
        placed = set(re.findall(r"\(inReceptacle (\S+) ", problem)) | set(
            re.findall(r"\(receptacleType (\S+) ", problem)
        )
        theirs[room].update({kinds[name] for name in placed})
    for room in ROOMS:
        ours = {item.kind for home in sample if home.room == room for item in home.items if item.place is not None}
        ours |= {receptacle.kind for home in sample if home.room == room for receptacle in home.receptacles}
        missing = {kind: n for kind, n in theirs[room].items() if n > 0.1 * rooms[room] and kind not in ours}
        assert not missing, room


def test_every_room_has_thirty_floor_plans_with_something_to_put_things_in() -> None:
    for room in ROOMS:
        plans = scenes(room)
        assert len(plans) == 30
        assert all(scene.room == room and scene.spots and scene.objects for scene in plans)


def test_houses_differ_more_than_their_floor_plans(sample: list[House]) -> None:
    counts = {
        (home.plan, tuple(sorted(Counter(receptacle.kind for receptacle in home.receptacles).items())))
        for home in sample
    }
    assert len(counts) > 1.5 * len({home.plan for home in sample})
