"""ALFWorld's goals: what an instruction asks for, when a state fulfils it, and which starts leave it open."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains import get_domain
from dreamgym_envs.domains.alfworld.goal import Goal, goal_of, parse_goal, plausible, satisfied

PLACE, CLEAN, HEAT, COOL, TWO, LOOK = (
    "pick_and_place_simple",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
    "look_at_obj_in_light",
)


def item(name: str, *flags: str) -> dict:
    return {"name": name, "flags": flags}


def house(location=(), holding=(), hidden=(), **rows) -> State:
    """Return a state; `desk_1=["mug 1"]` is a surface with a mug, and None a receptacle that nobody has seen."""
    receptacles = tuple(
        {
            "name": name.replace("_", " "),
            "status": "unseen" if things is None else "surface",
            "contents": tuple(item(thing) if isinstance(thing, str) else thing for thing in things or ()),
        }
        for name, things in rows.items()
    )
    private = {"hidden": tuple({"name": name, "place": place} for name, place in hidden)} if hidden else {}
    state = State({"location": location, "holding": holding, "receptacles": receptacles, "feedback": ""}, private)
    get_domain("alfworld").schema.validate(state)
    return state


# --- instructions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "goal"),
    [
        ("put a mug in desk.", Goal(PLACE, "mug", "desk")),
        ("put a egg in fridge.", Goal(PLACE, "egg", "fridge")),
        ("put some mug on desk.", Goal(PLACE, "mug", "desk")),
        ("put a clean mug in desk.", Goal(CLEAN, "mug", "desk", "clean")),
        ("clean some mug and put it in desk.", Goal(CLEAN, "mug", "desk", "clean")),
        ("put a hot mug in desk.", Goal(HEAT, "mug", "desk", "hot")),
        ("heat some mug and put it in desk.", Goal(HEAT, "mug", "desk", "hot")),
        ("put a cool mug in desk.", Goal(COOL, "mug", "desk", "cool")),
        ("cool some mug and put it in desk.", Goal(COOL, "mug", "desk", "cool")),
        ("put two mug in desk.", Goal(TWO, "mug", "desk", count=2)),
        ("find two mug and put them in desk.", Goal(TWO, "mug", "desk", count=2)),
        ("look at mug under the desklamp.", Goal(LOOK, "mug", lamp="desklamp")),
        ("examine the mug with the floorlamp.", Goal(LOOK, "mug", lamp="floorlamp")),
        ("  Put TWO mug in/on desk  ", Goal(TWO, "mug", "desk", count=2)),
    ],
)
def test_every_template_is_understood(instruction, goal):
    assert parse_goal(instruction) == goal_of(instruction) == goal


@pytest.mark.parametrize(
    "instruction",
    [
        "",
        "tidy up",
        "put a clean slice of apple in desk.",
        "put two sliced apple in desk.",
        "put a mug",
        "put a mug in desk and sing",
    ],
)
def test_what_is_in_no_template_has_no_goal(instruction):
    assert parse_goal(instruction) is None
    with pytest.raises(ValueError, match="no goal in the instruction"):
        goal_of(instruction)


@given(st.text(max_size=60))
def test_any_text_is_understood_or_not_and_never_fails(anything):
    goal = parse_goal(anything)
    assert goal is None or goal.object


def test_the_engines_own_templates_are_understood():
    library = pytest.importorskip("alfworld.gen.goal_library", reason="the extra alfworld is not installed")
    for family in (PLACE, CLEAN, HEAT, COOL, TWO, LOOK):
        for template in library.gdict[family]["templates"]:
            goal = goal_of(template.format(obj="mug", recep="desk", toggle="desklamp"))
            assert (goal.family, goal.object) == (family, "mug")
            assert goal.receptacle == ("" if family == LOOK else "desk")


# --- goals that put things somewhere ----------------------------------------------------------------------------------

MUG = goal_of("put a mug in desk.")
HOT = goal_of("put a hot mug in desk.")
PAIR = goal_of("put two mug in desk.")


def test_the_object_in_the_receptacle_is_the_goal():
    assert satisfied(MUG, house(desk_1=[], desk_2=["pen 1", "mug 3"]))


@pytest.mark.parametrize(
    "state",
    [
        house(desk_1=[], shelf_1=["mug 1"]),
        house(desk_1=["cup 1"]),
        house(holding=(item("mug 1"),), location=("desk 1",), desk_1=[]),
        house(desk_1=["mugbox 1"]),
        house(desktop_1=["mug 1"]),
        house(hidden=[("mug 1", "desk 1")], desk_1=None),
    ],
    ids=["elsewhere", "another kind", "in the hand", "longer word", "longer place", "only promised"],
)
def test_almost_is_not_enough(state):
    assert not satisfied(MUG, state)


def test_the_flag_is_wanted_of_the_object_that_is_there():
    assert satisfied(HOT, house(desk_1=["mug 1", item("mug 2", "clean", "hot")]))
    assert not satisfied(HOT, house(desk_1=["mug 1", item("cup 1", "hot")], shelf_1=[item("mug 2", "hot")]))
    assert not satisfied(HOT, house(desk_1=[item("mug 1", "cool")]))


def test_two_have_to_be_in_one_and_the_same_receptacle():
    assert satisfied(PAIR, house(desk_1=[], desk_2=["mug 1", "mug 2"]))
    assert not satisfied(PAIR, house(desk_1=["mug 1"], desk_2=["mug 2"]))


def test_a_closed_receptacle_counts():
    state = house(desk_1=["mug 1"])
    shut = tuple({**row, "status": "shut"} for row in state.public["receptacles"])
    assert satisfied(MUG, replace(state, public={**state.public, "receptacles": shut}))


# --- goals that look at something -------------------------------------------------------------------------------------

SEE = goal_of("look at mug under the desklamp.")
LIT, DARK = item("desklamp 1", "on"), item("desklamp 1")


@pytest.mark.parametrize(
    ("location", "held", "lamp", "done"),
    [
        (("desk 1",), "mug 1", LIT, True),
        (("shelf 1", "desk 1"), "mug 1", LIT, True),
        (("shelf 1",), "mug 1", LIT, False),
        (("desk 1",), "mug 1", DARK, False),
        (("desk 1",), "cup 1", LIT, False),
        (("desk 1",), None, LIT, False),
        (("desk 1",), "mug 1", item("floorlamp 1", "on"), False),
    ],
    ids=["done", "lamp beside", "lamp elsewhere", "lamp off", "wrong object", "empty hand", "wrong lamp"],
)
def test_looking_needs_the_object_in_the_hand_and_the_lit_lamp_within_reach(location, held, lamp, done):
    holding = () if held is None else (item(held),)
    assert satisfied(SEE, house(location=location, holding=holding, desk_1=[lamp], shelf_1=[])) is done


# --- starts -----------------------------------------------------------------------------------------------------------

UNSEEN = {"desk_1": None, "desk_2": None, "shelf_1": None}


@pytest.mark.parametrize(
    ("goal", "hidden", "good"),
    [
        (MUG, [("mug 1", "shelf 1")], True),
        (MUG, [("mug 2", "shelf 1"), ("mug 1", "shelf 1")], True),
        (MUG, [], False),
        (MUG, [("mug 2", "shelf 1")], False),
        (MUG, [("mug 1", "sofa 1")], False),
        (MUG, [("mug 1", "shelf 1"), ("cup 1", "shelf 1")], False),
        (MUG, [("mug 1", "shelf 1"), ("mug 2", "desk 1")], False),
        (HOT, [("mug 1", "desk 1")], True),
        (PAIR, [("mug 1", "shelf 1")], False),
        (PAIR, [("mug 1", "desk 1"), ("mug 2", "desk 2")], True),
        (PAIR, [("mug 1", "desk 2"), ("mug 2", "desk 2")], False),
        (SEE, [("mug 1", "shelf 1")], False),
        (SEE, [("mug 1", "desk 1"), ("desklamp 1", "desk 1")], True),
    ],
    ids=[
        "one",
        "two, in any order",
        "none",
        "a gap in the ids",
        "no such place",
        "an object that nobody wants",
        "done already",
        "there, but not hot",
        "one of two",
        "two apart",
        "two together already",
        "no lamp",
        "object and lamp",
    ],
)
def test_a_start_is_plausible_if_the_task_is_open_and_possible(goal, hidden, good):
    assert plausible(goal, house(hidden=hidden, **UNSEEN)) is good


# --- the domain -------------------------------------------------------------------------------------------------------


def test_the_domain_knows_no_goal_where_there_is_none():
    domain, state = get_domain("alfworld"), house(hidden=[("mug 1", "shelf 1")], desk_1=["mug 1"], shelf_1=None)
    task = Task("t", "tidy up", state)
    assert not domain.goal_satisfied(task, state)
    assert not domain.plausible_start(task, state)


def test_settling_drops_the_commitments_that_the_agent_sees():
    domain = get_domain("alfworld")
    hidden = [("mug 1", "desk 1"), ("mug 2", "shelf 1"), ("mug 3", "shelf 1")]
    state = domain.settle(house(hidden=hidden, holding=(item("mug 3"),), desk_1=["mug 1"], shelf_1=None))
    assert [entry["name"] for entry in state.private["hidden"]] == ["mug 2"]
    assert domain.settle(state) is state


def test_a_rejected_action_changes_the_feedback_alone():
    state = house(hidden=[("mug 1", "desk 1")], desk_1=None)
    rejected = get_domain("alfworld").rejection(state)
    assert rejected.public == {**state.public, "feedback": "Nothing happens."}
    assert rejected.private == state.private


def test_rendering_shows_what_is_known_and_what_is_not():
    domain = get_domain("alfworld")
    state = house(
        location=("desk 1",),
        holding=(item("mug 1", "hot"),),
        desk_1=["pen 1", item("cup 2", "clean")],
        drawer_1=None,
        drawer_2=None,
        drawer_4=None,
        shelf_1=[],
    )
    assert domain.render(Task("t", "put a hot mug in desk.", state), state).splitlines() == [
        "Task: put a hot mug in desk.",
        "> ",
        "Within reach: desk 1",
        "In the hand: hot mug 1",
        "  desk 1: pen 1, clean cup 2",
        "  shelf 1: nothing",
        "Not seen yet: drawer 1-2, drawer 4",
    ]
