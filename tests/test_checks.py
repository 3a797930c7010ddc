"""The quick check of states: it says yes only where jsonschema does, and yes to every ordinary state."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym_envs.core.checks import quick_check
from dreamgym_envs.core.types import freeze, thaw
from dreamgym_envs.domains import DOMAINS, get_domain
from tests.toy import SCHEMA, episodes

NUMBERED = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "price": {"type": "number", "minimum": 0},
        "sold": {"type": "boolean"},
        "title": {"type": "string", "minLength": 1, "maxLength": 3},
        "colour": {"enum": ["red", "blue"]},
        "sizes": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "#/$defs/size"}},
    },
    "required": ["count"],
    "additionalProperties": False,
    "$defs": {"size": {"type": "string", "maxLength": 2, "x-unique": "size"}},
}

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 11), st.floats(-1, 3), st.sampled_from(["", "red", "S", "XL", "long"])
)
values = st.dictionaries(
    st.sampled_from([*NUMBERED["properties"], "other"]),  # type: ignore[misc]
    st.one_of(scalars, st.lists(scalars, max_size=3)),
)


@given(values)
@settings(max_examples=500, deadline=None)
def test_a_quick_yes_is_a_yes(value: dict[str, Any]) -> None:
    check = quick_check(NUMBERED)
    assert check is not None
    if check(freeze(value)):
        jsonschema.Draft202012Validator(NUMBERED).validate(value)


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"count": 3}, True),
        ({"count": 3, "price": 2.5, "sold": True, "title": "ab", "colour": "red", "sizes": ["S"]}, True),
        ({"count": True}, False),
        ({"count": 10}, False),
        ({}, False),
        ({"count": 3, "other": 1}, False),
        ({"count": 3, "colour": "green"}, False),
        ({"count": 3, "sizes": []}, False),
        ({"count": 3, "sizes": ["S", "M", "L"]}, False),
        ({"count": 3, "sizes": ["long"]}, False),
        ({"count": 3, "title": ""}, False),
        ({"count": 3, "price": -1}, False),
    ],
)
def test_ordinary_values_are_told_apart(value: dict[str, Any], valid: bool) -> None:
    check = quick_check(NUMBERED)
    assert check is not None and check(freeze(value)) is valid
    assert jsonschema.Draft202012Validator(NUMBERED).is_valid(value) is valid


@pytest.mark.parametrize(
    "child",
    [
        {"type": "string", "format": "uri"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}]},
        {"enum": ["a", 1]},
        {"type": "array", "items": {"type": "string", "format": "date"}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    ],
)
def test_a_schema_that_it_does_not_understand_has_no_quick_check(child: dict[str, Any]) -> None:
    assert quick_check(child) is None
    assert quick_check({"type": "object", "properties": {"a": child}}) is None


def test_states_of_the_toy_pass_it() -> None:
    check = quick_check(SCHEMA)
    assert check is not None
    for trajectory in episodes(5):
        for step in trajectory.steps:
            assert check(step.state.public)
            jsonschema.Draft202012Validator(SCHEMA).validate(thaw(step.state.public))


@pytest.mark.parametrize("name", DOMAINS)
def test_every_domain_has_one(name: str) -> None:
    assert quick_check(get_domain(name).schema.document) is not None
