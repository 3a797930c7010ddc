"""One JSON Schema, three uses: validator, Gymnasium space, and the tree that the decoding grammar walks.

A domain's abstract state is described once, by a draft 2020-12 JSON Schema with ten keywords of our own:

- "x-key": name of the property that identifies an element of an array of objects.
- "x-private": the property is a commitment of the model and never part of an observation.
- "x-known": `{"field": f, "values": [...]}`: the array is meaningful only while its sibling property f has one of these
  values; until then its contents are hidden and a model may invent them.
- "x-event": the string says what happened in a step, so that every delta sets it, also to what it was before.
- "x-ref": the string names an element of the keyed array at this path.
- "x-unique": strings of this kind name one thing each: a name occurs at most once among all properties of the kind.
- "x-commits": `{"array": path, "by": field}` on a private array: its elements are promises of what the hidden array at
  `path`, in the element named by `field`, will turn out to contain.
- "x-invented": what the property comes to hold no state before could tell, so a model draws it: a text, a new element.
- "x-handle": the string is an arbitrary name that follows this pattern, such as "b0????????", where ? is any letter or
  digit; a new one says nothing, so a model does not write it but is given one that is free.
- "x-fixed": the property never changes while its element exists, but for an "x-known" array that becomes known.

"default" is JSON Schema's: an element that joins an array has these values at first.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import jsonschema
import numpy as np
from gymnasium import spaces

from dreamgym_envs.core.checks import quick_check
from dreamgym_envs.core.text import CHARSET, FreeText
from dreamgym_envs.core.types import JSON, State, freeze, thaw

__all__ = ["CHARSET", "Node", "Schema", "StateError"]

_ROOT = "the state"
_Convert = Callable[[Any], Any]


class StateError(ValueError):
    """A state that breaks its schema."""


@dataclass(frozen=True)
class Node:
    """A schema with its references resolved, as the codec and the space need it.

    Attributes:
        kind: What values look like. "enum" is a string out of `values`.
        children: Properties of an object, in the schema's order.
        items: Elements of an array.
        values: Values of an enum.
        key: "x-key" of an array of objects.
        private: "x-private".
        known: "x-known" as (field, values).
        event: "x-event".
        unique: "x-unique".
        ref: "x-ref" as a path.
        commits: "x-commits" as (path of the array, field).
        invented: "x-invented".
        handle: "x-handle".
        fixed: "x-fixed".
        default: "default" as (value,), empty without one.
        pattern: "pattern" of a string, anchored at both ends; empty without one.
        max_items: Most elements of an array, None if unbounded.
        max_length: Most characters of a string.
        minimum: Least integer or number.
        maximum: Largest integer or number.
    """

    kind: Literal["object", "array", "string", "enum", "integer", "number", "boolean"]
    children: Mapping[str, "Node"] = field(default_factory=dict)
    items: "Node | None" = None
    values: tuple[str, ...] = ()
    key: str | None = None
    private: bool = False
    known: tuple[str, frozenset[str]] | None = None
    event: bool = False
    unique: str | None = None
    ref: tuple[str, ...] | None = None
    commits: tuple[tuple[str, ...], str] | None = None
    invented: bool = False
    handle: str | None = None
    fixed: bool = False
    default: tuple[JSON, ...] = ()
    pattern: str = ""
    max_items: int | None = None
    max_length: int = 4096
    minimum: float | None = None
    maximum: float | None = None

    def known_when(self, parent: Mapping[str, JSON]) -> bool:
        """Return whether a hidden array inside `parent` has become known; False for nodes that are never hidden."""
        return self.known is not None and parent.get(self.known[0]) in self.known[1]


class Schema:
    """A domain's abstract state: validator, observation space and tree of nodes.

    Args:
        document: The JSON Schema, draft 2020-12, an object at its root. Properties must be "required", since a
            Gymnasium Dict has no optional keys; only private arrays at the root may be missing, which means empty.

    Raises:
        ValueError: The document is no valid schema or uses a construct that has no space (for example "anyOf").
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        try:
            jsonschema.Draft202012Validator.check_schema(dict(document))
        except jsonschema.SchemaError as error:
            raise ValueError(f"not a JSON Schema (draft 2020-12): {error.message}") from error
        self.document = document
        self.root = self._node(document, _ROOT)
        if self.root.kind != "object":
            raise ValueError(f"a state's schema must describe an object, not a {self.root.kind}")
        if "instruction" in self.root.children:
            raise ValueError("the state has an 'instruction'; the task's stands there in the observation, rename yours")
        self._validator = jsonschema.Draft202012Validator(dict(document))
        self._quick_check = quick_check(document)

    @classmethod
    def load(cls, path: Path) -> "Schema":
        """Read a schema from a JSON file."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @cached_property
    def public_names(self) -> tuple[str, ...]:
        """Names of the properties that an agent may see."""
        return tuple(name for name, node in self.root.children.items() if not node.private)

    @cached_property
    def private_names(self) -> tuple[str, ...]:
        """Names of the properties in which a model commits to what an agent may not see."""
        return tuple(name for name, node in self.root.children.items() if node.private)

    def nodes(self) -> Iterator[Node]:
        """Yield every node of the schema, parents first."""
        rest = [self.root]
        while rest:
            node = rest.pop()
            yield node
            rest += [*node.children.values(), *([node.items] if node.items is not None else [])]

    def validate(self, state: State) -> None:
        """Check a state against the schema, and that no keyed array has a key twice.

        Raises:
            StateError: With the place and the reason of the first violation.
        """
        title = self.document.get("title", "untitled")
        whole = {**state.public, **state.private}
        error = None
        if self._quick_check is None or not self._quick_check(whole):
            error = next(self._validator.iter_errors(thaw(whole)), None)
        if error is not None:
            where = "/".join(str(part) for part in error.absolute_path) or "the state"
            raise StateError(f"{where}: {error.message:.200}. The schema is {title!r}.")
        for part, names in ((state.public, self.public_names), (state.private, self.private_names)):
            misplaced = [name for name in part if name in self.root.children and name not in names]
            if misplaced:
                wrong = "public" if part is state.public else "private"
                raise StateError(f"{', '.join(misplaced)}: in the {wrong} part of the state. The schema is {title!r}.")
            for name, value in part.items():
                _check_keys(self.root.children[name], value, name)

    def copy(self, public: Mapping[str, JSON]) -> dict[str, Any]:
        """Return a public state whose every dict is new, so that its receiver may keep and change it."""
        copied: dict[str, Any] = self._copier(public)
        return copied

    def observation(self, public: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Return a public state as an element of `space()`, apart from the instruction.

        Numbers that live in a Box become arrays of shape (); everything else is shared with `public`.
        """
        return self._boxer(public) if self._boxer is not None else public

    @cached_property
    def _copier(self) -> "_Convert":
        return _converter(self.root, lambda _: None, copies=True) or dict

    @cached_property
    def _boxer(self) -> "_Convert | None":
        return _converter(self.root, _to_array, copies=False)

    def space(self) -> spaces.Dict:
        """Return the observation space: the public state with the task's instruction.

        Objects become Dict, arrays Sequence, strings and enums Text, booleans Discrete(2), integers within bounds that
        are at most 256 apart Discrete, other numbers Box of shape ().
        """
        fields: dict[str, spaces.Space[Any]] = {"instruction": FreeText(2048)}
        for name in self.public_names:
            fields[name] = _space(self.root.children[name])
        return spaces.Dict(fields)

    def _node(self, document: Mapping[str, Any], where: str, within: tuple[str, ...] = ()) -> Node:
        while "$ref" in document:
            reference = document["$ref"]
            if reference in within:
                raise ValueError(f"{where}: {reference} contains itself; a space needs a finite depth")
            within = (*within, reference)
            target: Any = self.document
            for part in reference.removeprefix("#/").split("/"):
                if part not in target:
                    raise ValueError(f"{where}: nothing at {reference} in the schema")
                target = target[part]
            document = {**target, **{k: v for k, v in document.items() if k != "$ref"}}
        common: dict[str, Any] = {
            "private": document.get("x-private", False),
            "event": document.get("x-event", False),
            "unique": document.get("x-unique"),
            "invented": document.get("x-invented", False),
            "handle": document.get("x-handle"),
            "fixed": document.get("x-fixed", False),
            "default": (freeze(document["default"]),) if "default" in document else (),
        }
        if "x-ref" in document:
            common["ref"] = tuple(document["x-ref"].split("."))
        if "x-known" in document:
            common["known"] = (document["x-known"]["field"], frozenset(document["x-known"]["values"]))
        if "x-commits" in document:
            common["commits"] = (tuple(document["x-commits"]["array"].split(".")), document["x-commits"]["by"])
        if "enum" in document:
            if not all(isinstance(value, str) for value in document["enum"]):
                raise ValueError(f"{where}: an enum must list strings")
            return Node("enum", values=tuple(document["enum"]), **common)
        kind = document.get("type")
        if kind == "object":
            children = {
                name: self._node(child, f"{where}/{name}", within)
                for name, child in document.get("properties", {}).items()
            }
            optional = children.keys() - set(document.get("required", ()))
            if where == _ROOT:
                optional = {n for n in optional if not (children[n].private and children[n].kind == "array")}
            if optional:
                raise ValueError(f'{where}: {", ".join(sorted(optional))} must be in "required"')
            return Node("object", children=children, **common)
        if kind == "array":
            return Node(
                "array",
                items=self._node(document["items"], f"{where}/items", within),
                key=document.get("x-key"),
                max_items=document.get("maxItems"),
                **common,
            )
        if kind == "string":
            pattern = document.get("pattern", "")
            if pattern and not (pattern.startswith("^") and pattern.endswith("$")):
                raise ValueError(f"{where}: the pattern {pattern!r} must begin with ^ and end with $")
            return Node("string", max_length=document.get("maxLength", 4096), pattern=pattern, **common)
        if kind in ("integer", "number"):
            return Node(kind, minimum=document.get("minimum"), maximum=document.get("maximum"), **common)
        if kind == "boolean":
            return Node("boolean", **common)
        raise ValueError(
            f"{where}: no space for {dict(document)}; use object, array, string, enum, integer, number or boolean"
        )


def _space(node: Node) -> spaces.Space[Any]:
    match node.kind:
        case "object":
            return spaces.Dict({name: _space(child) for name, child in node.children.items()})
        case "array":
            assert node.items is not None
            return spaces.Sequence(_space(node.items))
        case "string":
            return FreeText(node.max_length)
        case "enum":
            return FreeText(max(map(len, node.values)))
        case "boolean":
            return spaces.Discrete(2)
        case "integer" | "number":
            return _number(node)


def _number(node: Node) -> spaces.Discrete[Any] | spaces.Box:
    low, high = node.minimum, node.maximum
    if node.kind == "number":
        bounds = (-np.inf if low is None else low, np.inf if high is None else high)
        return spaces.Box(*bounds, shape=(), dtype=np.float64)
    if low is not None and high is not None and high - low < 256:
        return spaces.Discrete(int(high - low) + 1, start=int(low))
    limits = (-(2**62) if low is None else int(low), 2**62 if high is None else int(high))
    return spaces.Box(*limits, shape=(), dtype=np.int64)


def _to_array(node: Node) -> _Convert | None:
    space = _number(node) if node.kind in ("integer", "number") else None
    return partial(np.asarray, dtype=space.dtype) if isinstance(space, spaces.Box) else None


def _converter(node: Node, leaf: Callable[[Node], _Convert | None], copies: bool) -> _Convert | None:
    """Compile the schema to a function on values below `node`, or None if nothing there has to change.

    Walking the schema at every step would cost more than the step's other bookkeeping together.
    """
    if node.kind == "array":
        assert node.items is not None
        item = _converter(node.items, leaf, copies)
        return None if item is None else lambda value: tuple(map(item, value))
    if node.kind != "object":
        return leaf(node)
    inner = [
        (name, convert)
        for name, child in node.children.items()
        if not child.private and (convert := _converter(child, leaf, copies)) is not None
    ]
    if not inner:
        return dict if copies else None

    def convert_object(value: Any) -> dict[str, Any]:
        fresh = dict(value)
        for name, convert in inner:
            fresh[name] = convert(fresh[name])
        return fresh

    return convert_object


def _check_keys(node: Node, value: JSON, where: str) -> None:
    if node.kind == "object":
        for name, child in node.children.items():
            _check_keys(child, value[name], f"{where}/{name}")
    elif node.kind == "array" and node.items is not None:
        if node.key is not None:
            keys = [element[node.key] for element in value]
            if len(set(keys)) < len(keys):
                twice = {key for key in keys if keys.count(key) > 1}
                raise StateError(f"{where}: {', '.join(sorted(map(repr, twice)))} more than once; keys are unique.")
        for i, element in enumerate(value):
            _check_keys(node.items, element, f"{where}/{i}")
