"""A quick yes from a JSON Schema: most states are valid, and jsonschema takes 6 ms to say so for a household.

`quick_check` compiles a schema into nested functions that answer in some 50 microseconds. It never says yes to what
jsonschema rejects; whatever it does not understand or accept goes to jsonschema, which decides and explains.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dreamgym_envs.core.types import JSON

Check = Callable[[JSON], bool]

_ANNOTATIONS = frozenset({"$schema", "$id", "$defs", "$comment", "title", "description", "default", "examples"})
_KEYWORDS = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset[str](),
}


def quick_check(document: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Check | None:
    """Return a function that is True only for frozen values that the schema accepts, or None for want of one.

    Args:
        document: The schema, draft 2020-12.
        root: The document that "$ref" points into; `document` by default.
    """
    root = document if root is None else root
    while "$ref" in document:
        target: Any = root
        for part in document["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        document = {**target, **{key: value for key, value in document.items() if key != "$ref"}}
    keywords = {key for key in document if key not in _ANNOTATIONS and not key.startswith("x-")}
    if keywords <= {"enum", "type"} and "enum" in keywords and document.get("type", "string") == "string":
        if not all(isinstance(value, str) for value in document["enum"]):
            return None
        return _one_of(frozenset(document["enum"]))
    kind = document.get("type")
    if not isinstance(kind, str) or not keywords - {"type"} <= _KEYWORDS.get(kind, frozenset()):
        return None
    if kind == "object":
        return _object(document, root)
    if kind == "array":
        return _array(document, root)
    if kind == "string":
        return _string(
            document.get("minLength", 0), document.get("maxLength", float("inf")), document.get("pattern", "")
        )
    if kind == "boolean":
        return lambda value: value is True or value is False
    low, high = document.get("minimum", -float("inf")), document.get("maximum", float("inf"))
    return _number((int,) if kind == "integer" else (int, float), low, high)


def _one_of(values: frozenset[str]) -> Check:
    return lambda value: isinstance(value, str) and value in values


def _string(shortest: int, longest: float, pattern: str) -> Check:
    if not pattern:
        return lambda value: isinstance(value, str) and shortest <= len(value) <= longest
    found = re.compile(pattern).search
    return lambda value: isinstance(value, str) and shortest <= len(value) <= longest and found(value) is not None


def _number(kinds: Sequence[type], low: float, high: float) -> Check:
    # type() and not isinstance: a bool is an int in Python and no integer in JSON.
    return lambda value: type(value) in kinds and low <= value <= high


def _array(document: Mapping[str, Any], root: Mapping[str, Any]) -> Check | None:
    check = quick_check(document.get("items", {}), root)
    fewest, most = document.get("minItems", 0), document.get("maxItems", float("inf"))
    if check is None:
        return None
    return lambda value: isinstance(value, tuple) and fewest <= len(value) <= most and all(map(check, value))


def _object(document: Mapping[str, Any], root: Mapping[str, Any]) -> Check | None:
    checks = {name: quick_check(child, root) for name, child in document.get("properties", {}).items()}
    required = frozenset(document.get("required", ()))
    extra = document.get("additionalProperties", True)
    if extra not in (True, False) or not all(checks.values()):
        return None

    def check(value: JSON) -> bool:
        if not isinstance(value, Mapping) or not value.keys() >= required:
            return False
        for name, item in value.items():
            known = checks.get(name)
            if known is None:
                if not extra:
                    return False
            elif not known(item):
                return False
        return True

    return check
