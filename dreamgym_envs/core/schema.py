"""One JSON Schema, three uses: validator, Gymnasium space, and the tree that the decoding grammar walks.

A domain's abstract state is described once, by a draft 2020-12 JSON Schema with six keywords of our own:

- "x-key": name of the property that identifies an element of an array of objects.
- "x-private": the property is a commitment of the model and never part of an observation.
- "x-known": `{"field": f, "values": [...]}`: the array is meaningful only while its sibling property f has one of these
  values; until then its contents are hidden and a model may invent them.
- "x-ref": the string names an element of the keyed array at this path.
- "x-unique": strings of this kind name one thing each: a name occurs at most once among all properties of the kind.
- "x-commits": `{"array": path, "by": field}` on a private array: its elements are promises of what the hidden array at
  `path`, in the element named by `field`, will turn out to contain.
"""

import json
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jsonschema
from gymnasium import spaces

from dreamgym_envs.core.types import JSON, State, thaw

CHARSET = string.printable + "".join(chr(c) for c in range(0xA1, 0x250)) + "".join(chr(c) for c in range(0x2010, 0x2040)) + "€™›‹…•→←"
"""Characters that observations may hold: printable ASCII, Latin letters, common punctuation."""


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
        unique: "x-unique".
        ref: "x-ref" as a path.
        commits: "x-commits" as (path of the array, field).
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
    unique: str | None = None
    ref: tuple[str, ...] | None = None
    commits: tuple[tuple[str, ...], str] | None = None
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
        document: The JSON Schema, draft 2020-12, an object at its root.

    Raises:
        ValueError: The document is no valid schema or uses a construct that has no space (for example "anyOf").
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        try:
            jsonschema.Draft202012Validator.check_schema(dict(document))
        except jsonschema.SchemaError as error:
            raise ValueError(f"not a JSON Schema (draft 2020-12): {error.message}") from error
        self.document = document
        self.root = self._node(document, "the state")
        if self.root.kind != "object":
            raise ValueError(f"a state's schema must describe an object, not a {self.root.kind}")
        self._validator = jsonschema.Draft202012Validator(dict(document))

    @classmethod
    def load(cls, path: Path) -> "Schema":
        """Read a schema from a JSON file."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @cached_property
    def public_names(self) -> tuple[str, ...]:
        """Names of the properties that an agent may see."""
        return tuple(name for name, node in self.root.children.items() if not node.private)

    def validate(self, state: State) -> None:
        """Check a state against the schema.

        Raises:
            StateError: With the place and the reason of the first violation.
        """
        error = next(self._validator.iter_errors(thaw({**state.public, **state.private})), None)
        if error is not None:
            where = "/".join(str(part) for part in error.absolute_path) or "the state"
            raise StateError(f"{where}: {error.message}. The schema is {self.document.get('title', 'untitled')!r}.")
        hidden = [name for name in state.public if self.root.children[name].private]
        if hidden:
            raise StateError(f"{', '.join(hidden)}: private, but in the public part of the state.")

    def space(self) -> spaces.Dict:
        """Return the observation space: the public state with the task's instruction.

        Objects become Dict, arrays Sequence, strings and enums Text, integers Box or Discrete, booleans Discrete(2).
        """
        fields: dict[str, spaces.Space[Any]] = {"instruction": _text(2048)}
        for name in self.public_names:
            fields[name] = _space(self.root.children[name])
        return spaces.Dict(fields)

    def _node(self, document: Mapping[str, Any], where: str) -> Node:
        while "$ref" in document:
            target: Any = self.document
            for part in document["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            document = {**target, **{k: v for k, v in document.items() if k != "$ref"}}
        common: dict[str, Any] = {"private": document.get("x-private", False), "unique": document.get("x-unique")}
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
                name: self._node(child, f"{where}/{name}") for name, child in document.get("properties", {}).items()
            }
            return Node("object", children=children, **common)
        if kind == "array":
            return Node(
                "array",
                items=self._node(document["items"], f"{where}/items"),
                key=document.get("x-key"),
                max_items=document.get("maxItems"),
                **common,
            )
        if kind == "string":
            return Node("string", max_length=document.get("maxLength", 4096), **common)
        if kind in ("integer", "number"):
            return Node(kind, minimum=document.get("minimum"), maximum=document.get("maximum"), **common)
        if kind == "boolean":
            return Node("boolean", **common)
        raise ValueError(f"{where}: no space for {dict(document)}; use object, array, string, enum, integer, number or boolean")


def _text(max_length: int) -> spaces.Text:
    return spaces.Text(max_length=max_length, min_length=0, charset=CHARSET)


def _space(node: Node) -> spaces.Space[Any]:
    match node.kind:
        case "object":
            return spaces.Dict({name: _space(child) for name, child in node.children.items()})
        case "array":
            assert node.items is not None
            return spaces.Sequence(_space(node.items))
        case "string":
            return _text(node.max_length)
        case "enum":
            return _text(max(map(len, node.values)))
        case "boolean":
            return spaces.Discrete(2)
        case "integer":
            if node.minimum is not None and node.maximum is not None:
                return spaces.Discrete(int(node.maximum - node.minimum) + 1, start=int(node.minimum))
            low, high = node.minimum, node.maximum
            return spaces.Box(
                low=-(2**62) if low is None else int(low), high=2**62 if high is None else int(high), shape=(), dtype=int
            )
        case "number":
            low = float("-inf") if node.minimum is None else node.minimum
            high = float("inf") if node.maximum is None else node.maximum
            return spaces.Box(low=low, high=high, shape=(), dtype=float)
