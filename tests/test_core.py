"""The core: one schema with three uses, deltas that lead from state to state, records that survive JSON."""

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.passive_env_checker import check_obs, data_shares_objects
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dreamgym_envs.core.delta import DeltaError, Edit, apply_delta, diff
from dreamgym_envs.core.records import from_document, to_document
from dreamgym_envs.core.schema import Node, Schema, StateError
from dreamgym_envs.core.text import CHARSET, FreeText
from dreamgym_envs.core.types import State, Step, Task, Trajectory, freeze, thaw

# Given one schema that uses every construct, and the schema of a shipped domain

ITEM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "flags"],
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "flags": {"type": "array", "items": {"enum": ["wet", "hot"]}},
    },
}
EVERYTHING = {
    "title": "everything",
    "type": "object",
    "additionalProperties": False,
    "required": ["page", "shelves", "tags", "price", "stock", "day", "lit"],
    "properties": {
        "page": {
            "type": "object",
            "additionalProperties": False,
            "required": ["url", "depth"],
            "properties": {"url": {"type": "string", "maxLength": 30}, "depth": {"type": "integer", "minimum": 0}},
        },
        "shelves": {
            "type": "array",
            "x-key": "name",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "status", "contents", "height"],
                "properties": {
                    "name": {"type": "string", "maxLength": 12},
                    "status": {"enum": ["shut", "open"]},
                    "contents": {
                        "type": "array",
                        "x-key": "name",
                        "x-known": {"field": "status", "values": ["open"]},
                        "items": {"$ref": "#/$defs/item"},
                    },
                    "height": {"type": "number", "minimum": 0, "maximum": 3},
                },
            },
        },
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}},
        "price": {"type": "number"},
        "stock": {"type": "integer"},
        "day": {"type": "integer", "minimum": 1, "maximum": 31},
        "lit": {"type": "boolean"},
        "hidden": {"x-private": True, "type": "array", "x-key": "name", "items": {"$ref": "#/$defs/item"}},
    },
    "$defs": {"item": ITEM},
}
ASSETS = Path(__file__).parents[1] / "assets" / "schemas"
SCHEMAS = {
    "everything": Schema(EVERYTHING),
    **{path.stem: Schema.load(path) for path in sorted(ASSETS.glob("*.json"))},
}
SHELF = {"name": "a", "status": "open", "contents": ({"name": "cup", "flags": ()},), "height": 1.5}
PUBLIC: dict[str, Any] = {
    "page": {"url": "/", "depth": 0},
    "shelves": (SHELF, {"name": "b", "status": "shut", "contents": (), "height": 0.5}),
    "tags": ("new",),
    "price": 9.5,
    "stock": 3,
    "day": 1,
    "lit": True,
}
STATE = State(PUBLIC, {"hidden": ({"name": "pin", "flags": ("wet",)},)})


def values(node: Node) -> st.SearchStrategy[Any]:
    """Draw anything that a node of a schema allows."""
    match node.kind:
        case "object":
            return st.fixed_dictionaries({name: values(child) for name, child in node.children.items()})
        case "array":
            assert node.items is not None
            key = node.key
            unique = (lambda element: element[key]) if key is not None else None
            size = 3 if node.max_items is None else min(3, node.max_items)
            return st.lists(values(node.items), max_size=size, unique_by=unique).map(tuple)
        case "string":
            if node.pattern:
                return st.from_regex(node.pattern, fullmatch=True, alphabet=CHARSET).filter(
                    lambda text: len(text) <= node.max_length
                )
            return st.text(CHARSET, max_size=min(node.max_length, 6))
        case "enum":
            return st.sampled_from(node.values)
        case "boolean":
            return st.booleans()
        case "integer":
            low = None if node.minimum is None else int(node.minimum)
            high = 2**40 if node.maximum is None else int(node.maximum)
            return st.integers(-(2**40) if low is None else low, high)
        case "number":
            return st.floats(node.minimum, node.maximum, allow_nan=False, allow_infinity=False)


def states(schema: Schema) -> st.SearchStrategy[State]:
    children = schema.root.children
    public = st.fixed_dictionaries({name: values(children[name]) for name in schema.public_names})
    private = st.fixed_dictionaries({name: values(children[name]) for name in schema.private_names})
    return st.builds(State, public, private)


def schemas_and_states(count: int) -> st.SearchStrategy[tuple[Schema, list[State]]]:
    return st.sampled_from(sorted(SCHEMAS)).flatmap(
        lambda name: st.tuples(st.just(SCHEMAS[name]), st.lists(states(SCHEMAS[name]), min_size=count, max_size=count))
    )


def unordered(node: Node, value: Any) -> Any:
    """Return a value with the elements of keyed arrays, whose order means nothing, in the order of their keys."""
    if node.kind == "object":
        return {name: unordered(node.children[name], item) for name, item in value.items()}
    if node.kind == "array" and node.items is not None and node.key is not None:
        return sorted((unordered(node.items, item) for item in value), key=lambda item: str(item[node.key]))
    return value


slow_strategies = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# --- deltas ----------------------------------------------------------------------------------------------------------


@slow_strategies
@given(schemas_and_states(2))
def test_the_delta_between_two_states_leads_from_one_to_the_other(drawn: tuple[Schema, list[State]]) -> None:
    schema, (before, after) = drawn
    reached = apply_delta(schema, before, diff(schema, before, after))
    assert unordered(schema.root, reached.public) == unordered(schema.root, after.public)
    assert unordered(schema.root, reached.private) == unordered(schema.root, after.private)


@slow_strategies
@given(schemas_and_states(2))
def test_applying_a_delta_leaves_the_state_before_as_it_was(drawn: tuple[Schema, list[State]]) -> None:
    schema, (before, after) = drawn
    kept = copy.deepcopy(before)
    apply_delta(schema, before, diff(schema, before, after))
    assert before == kept


@slow_strategies
@given(schemas_and_states(1))
def test_a_state_differs_from_itself_in_what_happened_alone(drawn: tuple[Schema, list[State]]) -> None:
    schema, (state,) = drawn
    events = [name for name in schema.public_names if schema.root.children[name].event]
    expected = tuple(Edit("set", (name,), state.public[name]) for name in events)
    assert diff(schema, state, copy.deepcopy(state)) == expected


def test_a_delta_touches_only_what_it_names_and_shares_the_rest() -> None:
    schema = SCHEMAS["everything"]
    after = apply_delta(schema, STATE, [Edit("set", ("shelves", "b", "status"), "open")])
    assert after.public["shelves"][1]["status"] == "open"
    assert after.public["shelves"][0] is STATE.public["shelves"][0]
    assert after.public["page"] is STATE.public["page"]


def test_a_change_of_order_alone_is_no_change() -> None:
    turned = State({**PUBLIC, "shelves": PUBLIC["shelves"][::-1]}, STATE.private)
    assert diff(SCHEMAS["everything"], STATE, turned) == ()


def test_an_array_that_becomes_known_is_set_as_a_whole_even_if_it_turns_out_empty() -> None:
    opened = State({**PUBLIC, "shelves": (SHELF, {**PUBLIC["shelves"][1], "status": "open"})}, STATE.private)
    assert diff(SCHEMAS["everything"], STATE, opened) == (
        Edit("set", ("shelves", "b", "status"), "open"),
        Edit("set", ("shelves", "b", "contents"), ()),
    )


def test_an_array_known_before_is_changed_by_its_elements() -> None:
    emptied = State(
        {**PUBLIC, "shelves": ({**SHELF, "contents": ({"name": "jar", "flags": ()},)}, PUBLIC["shelves"][1])}
    )
    assert diff(SCHEMAS["everything"], State(PUBLIC), emptied) == (
        Edit("remove", ("shelves", "a", "contents"), ("cup",)),
        Edit("add", ("shelves", "a", "contents"), ({"name": "jar", "flags": ()},)),
    )


def test_private_properties_are_edited_in_the_private_part_and_missing_ones_are_empty() -> None:
    schema = SCHEMAS["everything"]
    pin = {"name": "pin", "flags": ()}
    after = apply_delta(schema, State(PUBLIC), [Edit("add", ("hidden",), (pin,))])
    assert after == State(PUBLIC, {"hidden": (pin,)})
    assert diff(schema, State(PUBLIC), after) == (Edit("add", ("hidden",), (pin,)),)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (Edit("set", ("nowhere",), 1), "no property 'nowhere'"),
        (Edit("set", (), 1), "no property ''"),
        (Edit("set", ("page", "title"), "x"), "no property 'title'"),
        (Edit("set", ("shelves", "z", "status"), "open"), "no element 'z'"),
        (Edit("set", ("tags", "new"), "x"), "goes on below a array"),
        (Edit("add", ("lit",), (True,)), "not an array"),
        (Edit("remove", ("price",), (1,)), "not an array"),
        (Edit("remove", ("tags",), ("old",)), "nothing to remove"),
        (Edit("add", ("shelves", "a", "contents"), ({"name": "cup", "flags": ()},)), "'cup' is already in"),
        (Edit("add", ("tags",), ("x", "x")), "'x' is already in"),
    ],
)
def test_an_edit_that_does_not_fit_the_state_is_refused(edit: Edit, complaint: str) -> None:
    with pytest.raises(DeltaError, match=complaint):
        apply_delta(SCHEMAS["everything"], STATE, [edit])


# --- the schema as validator -----------------------------------------------------------------------------------------


@slow_strategies
@given(schemas_and_states(1))
def test_every_state_of_the_schema_is_valid(drawn: tuple[Schema, list[State]]) -> None:
    schema, (state,) = drawn
    schema.validate(state)


@pytest.mark.parametrize(
    ("public", "private", "complaint"),
    [
        ({"day": 32}, {}, "day: 32 is greater than the maximum of 31"),
        ({"lit": "yes"}, {}, "lit: 'yes' is not of type 'boolean'"),
        ({"extra": 1}, {}, "'extra' was unexpected"),
        ({"shelves": ({**SHELF, "status": "ajar"},)}, {}, "shelves/0/status: 'ajar' is not one of"),
        ({"shelves": (SHELF, SHELF)}, {}, "shelves: 'a' more than once"),
        ({"shelves": ({**SHELF, "contents": SHELF["contents"] * 2},)}, {}, "shelves/0/contents: 'cup' more than once"),
        ({"hidden": ()}, {}, "hidden: in the public part"),
        ({}, {"day": 1}, "day: in the private part"),
    ],
)
def test_a_state_that_breaks_the_schema_is_told_where(public: Any, private: Any, complaint: str) -> None:
    with pytest.raises(StateError, match=complaint):
        SCHEMAS["everything"].validate(State({**PUBLIC, **public}, private))


def test_a_missing_property_breaks_the_schema() -> None:
    with pytest.raises(StateError, match="'day' is a required property"):
        SCHEMAS["everything"].validate(State({k: v for k, v in PUBLIC.items() if k != "day"}))


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"type": "objekt"}, "not a JSON Schema"),
        ({"type": "array", "items": {"type": "string"}}, "must describe an object"),
        ({"type": "object", "properties": {"x": {"anyOf": []}}, "required": ["x"]}, "not a JSON Schema|no space for"),
        ({"type": "object", "properties": {"x": {"enum": [1]}}, "required": ["x"]}, "an enum must list strings"),
        ({"type": "object", "properties": {"x": {"type": "string"}}}, 'x must be in "required"'),
        ({"type": "object", "properties": {"instruction": {"type": "string"}}, "required": ["instruction"]}, "rename"),
        ({"type": "object", "properties": {"x": {"$ref": "#/$defs/no"}}, "required": ["x"]}, "nothing at"),
        (
            {
                "type": "object",
                "required": ["tree"],
                "properties": {"tree": {"$ref": "#/$defs/tree"}},
                "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            },
            "contains itself",
        ),
    ],
)
def test_a_schema_without_a_space_is_refused_when_it_is_read(document: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Schema(document)


# --- the schema as space ---------------------------------------------------------------------------------------------


@slow_strategies
@given(schemas_and_states(1))
def test_every_state_of_the_schema_is_in_its_space(drawn: tuple[Schema, list[State]]) -> None:
    schema, (state,) = drawn
    observation = {"instruction": "do it", **schema.observation(schema.copy(state.public))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_obs(observation, schema.space(), "reset")
        assert observation in schema.space()


@slow_strategies
@given(schemas_and_states(1))
def test_a_copy_is_equal_and_shares_nothing_that_can_be_changed(drawn: tuple[Schema, list[State]]) -> None:
    schema, (state,) = drawn
    copied = schema.copy(state.public)
    assert copied == state.public
    assert not data_shares_objects(copied, state.public)


def test_the_space_holds_the_instruction_and_nothing_private() -> None:
    schema = SCHEMAS["everything"]
    assert set(schema.space().keys()) == {"instruction", *schema.public_names}
    assert schema.private_names == ("hidden",)


def test_each_kind_has_its_space() -> None:
    space = SCHEMAS["everything"].space()
    assert space["day"] == gym.spaces.Discrete(31, start=1)
    assert space["lit"] == gym.spaces.Discrete(2)
    assert space["price"] == gym.spaces.Box(-np.inf, np.inf, (), np.float64)
    assert space["page"]["depth"] == gym.spaces.Box(0, 2**62, (), np.int64)
    assert space["tags"] == gym.spaces.Sequence(FreeText(8))


def test_spaces_of_two_calls_are_equal_and_apart() -> None:
    schema = SCHEMAS["everything"]
    one, other = schema.space(), schema.space()
    assert one == other
    one.seed(1)
    other.seed(2)
    assert one["tags"].sample() != other["tags"].sample() or one["price"].sample() != other["price"].sample()


# --- free text -------------------------------------------------------------------------------------------------------


@given(st.one_of(st.text(max_size=8), st.text(CHARSET, max_size=8), st.none(), st.integers()), st.integers(0, 2))
def test_free_text_is_the_text_of_the_same_characters(value: Any, least: int) -> None:
    plain = gym.spaces.Text(5, min_length=least, charset=CHARSET)
    free = FreeText(5, min_length=least)
    assert free.contains(value) == plain.contains(value)
    assert free == plain and plain == free


def test_free_text_is_different_text_if_its_lengths_differ() -> None:
    assert FreeText(5) != FreeText(6)
    assert FreeText(5) != gym.spaces.Text(5, min_length=0)


def test_free_text_copies_and_batches_with_random_numbers_of_its_own() -> None:
    space = FreeText(20, seed=1)
    twin = copy.deepcopy(space)
    assert twin == space and twin.sample() == space.sample()
    space.sample()
    assert twin.np_random.bit_generator.state != space.np_random.bit_generator.state
    batch = gym.vector.utils.batch_space(space, 3)
    assert batch == gym.spaces.Tuple([FreeText(20)] * 3)
    assert len(set(batch.sample())) == 3


def test_free_text_flattens_as_text_does() -> None:
    space = FreeText(10)
    assert gym.spaces.unflatten(space, gym.spaces.flatten(space, "go to x")) == "go to x"
    assert gym.spaces.flatten(space, "go to x") in gym.spaces.flatten_space(space)


def test_the_repr_of_a_space_fits_a_screen() -> None:
    assert repr(FreeText(40)) == "FreeText(0, 40)"
    assert len(repr(SCHEMAS["everything"].space())) < 1000


# --- records ---------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_freezing_and_thawing_are_inverse(value: Any) -> None:
    assert thaw(freeze(value)) == value
    assert json.loads(json.dumps(thaw(freeze(value)))) == value


def tasks() -> st.SearchStrategy[Task]:
    return states(SCHEMAS["everything"]).flatmap(
        lambda initial: st.builds(
            Task,
            id=st.text(max_size=5),
            instruction=st.text(max_size=10),
            initial=st.just(initial),
            family=st.text(max_size=3),
            metadata=st.dictionaries(st.text(max_size=3), json_values.map(freeze), max_size=2),
        )
    )


def trajectories() -> st.SearchStrategy[Trajectory]:
    steps = st.builds(
        Step, st.text(max_size=5), states(SCHEMAS["everything"]), st.sampled_from([0.0, 1.0]), st.booleans(), st.text()
    )
    return st.builds(Trajectory, tasks(), st.lists(steps, max_size=2).map(tuple), player=st.text(max_size=3))


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(trajectories())
def test_a_record_survives_json(trajectory: Trajectory) -> None:
    text = json.dumps(to_document(trajectory))
    assert from_document(Trajectory, json.loads(text)) == trajectory


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "a Task is a JSON object"),
        ({"id": "1", "instruction": "x"}, "a Task needs 'initial'"),
        ({"id": "1", "instruction": "x", "initial": {}}, "a State needs 'public'"),
        ({"id": "1", "instruction": "x", "initial": {"public": {}}, "famly": ""}, "a Task has no 'famly'"),
        ({"id": 1, "instruction": "x", "initial": {"public": {}}}, "expected str, got 1"),
    ],
)
def test_a_document_that_is_no_record_is_told_why(document: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        from_document(Task, document)


def test_fields_with_defaults_may_be_left_out_of_a_document() -> None:
    task = from_document(Task, {"id": "1", "instruction": "x", "initial": {"public": {"tags": ["a"]}}})
    assert task == Task("1", "x", State({"tags": ("a",)}))


# --- trajectories ----------------------------------------------------------------------------------------------------


def test_transitions_start_where_the_step_before_ended_and_know_what_came_before() -> None:
    dark = State({**PUBLIC, "lit": False})
    steps = (Step("switch off", dark, 0.0, False), Step("leave", dark, 1.0, True, "done"))
    trajectory = Trajectory(Task("1", "leave in the dark", STATE), steps)
    first, second = trajectory.transitions()
    assert (first.state, first.next_state, first.history) == (STATE, dark, ())
    assert (second.state, second.history, second.reasoning) == (dark, steps[:1], "done")
    assert trajectory.success


@pytest.mark.parametrize("last", [(1.0, False), (0.5, True), (0.0, True)])
def test_success_needs_an_end_and_full_reward(last: tuple[float, bool]) -> None:
    task = Task("1", "", STATE)
    assert not Trajectory(task, (Step("a", STATE, *last),)).success
    assert not Trajectory(task, ()).success
