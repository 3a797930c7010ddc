"""Deltas: what changes between two states, addressed by key.

A delta is a sequence of edits. A path names properties of objects and, after a keyed array (schema keyword "x-key"),
the key of the element meant: `("receptacles", "fridge 1", "contents")`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dreamgym_envs.core.schema import Node, Schema
from dreamgym_envs.core.types import JSON, State


class DeltaError(ValueError):
    """An edit that does not fit the state it is applied to."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a state.

    Attributes:
        op: "set" replaces the value at the path; "add" appends elements to the array there; "remove" takes elements
            with the given keys (keyed arrays) or values (plain arrays) out of it.
        path: Property names, with an element's key after each keyed array.
        value: The new value ("set") or a tuple of elements ("add") or of keys ("remove").
    """

    op: Literal["set", "add", "remove"]
    path: tuple[str, ...]
    value: JSON


def apply_delta(schema: Schema, state: State, delta: Iterable[Edit]) -> State:
    """Return `state` with every edit applied in order; unchanged parts are shared.

    Raises:
        DeltaError: An edit names a property, element or key that is not there.
    """
    public: dict[str, Any] = dict(state.public)
    private: dict[str, Any] = dict(state.private)
    for edit in delta:
        top = edit.path[0] if edit.path else ""
        if top not in schema.root.children:
            raise DeltaError(f"no property {top!r} in the state; it has {', '.join(schema.root.children)}")
        node = schema.root.children[top]
        part = private if node.private else public
        part[top] = _edited(node, part.get(top, ()), edit.path[1:], edit)
    return State(public, private)


def _edited(node: Node, value: JSON, path: tuple[str, ...], edit: Edit) -> JSON:
    if not path:
        return _changed(node, value, edit)
    head, rest = path[0], path[1:]
    if node.kind == "object":
        if head not in node.children:
            raise DeltaError(f"no property {head!r} at {edit.path}; there are {', '.join(node.children)}")
        return {**value, head: _edited(node.children[head], value[head], rest, edit)}
    if node.kind == "array" and node.key is not None and node.items is not None:
        for i, element in enumerate(value):
            if element[node.key] == head:
                return (*value[:i], _edited(node.items, element, rest, edit), *value[i + 1 :])
        raise DeltaError(f"no element {head!r} for {edit.path}")
    raise DeltaError(f"the path {edit.path} goes on below a {node.kind}")


def _changed(node: Node, value: JSON, edit: Edit) -> JSON:
    if edit.op == "set":
        return edit.value
    if node.kind != "array":
        raise DeltaError(f"cannot {edit.op} at {edit.path}: not an array")
    # Lists, not sets: elements of an array without a key may be objects, which cannot be hashed.
    present = [_key(node, element) for element in value]
    if edit.op == "add":
        for element in edit.value:
            if _key(node, element) in present:
                raise DeltaError(f"{_key(node, element)!r} is already in {edit.path}")
            present.append(_key(node, element))
        return (*value, *edit.value)
    missing = [key for key in edit.value if key not in present]
    if missing:
        raise DeltaError(f"nothing to remove: {missing} not in {edit.path}")
    return tuple(element for element, key in zip(value, present, strict=True) if key not in edit.value)


def _key(node: Node, element: JSON) -> JSON:
    return element[node.key] if node.key is not None else element


def diff(schema: Schema, before: State, after: State) -> tuple[Edit, ...]:
    """Return the shortest delta that turns `before` into `after`: removals first, then in the schema's order.

    What happened in the step (schema keyword "x-event") is always set. With removals first, a thing that moves is
    nowhere for a moment and never in two places.
    An array that becomes known in this step (schema keyword "x-known") is set as a whole; one that was known before
    gets "remove" and "add". Elements of keyed arrays are matched by key; a changed order alone is no change.
    """
    edits: list[Edit] = []
    for name, node in schema.root.children.items():
        old = before.private if node.private else before.public
        new = after.private if node.private else after.public
        if name in old or name in new:
            _differ(node, old.get(name, ()), new.get(name, ()), (name,), old, new, edits)
    return tuple(sorted(edits, key=lambda edit: edit.op != "remove"))


def _differ(
    node: Node,
    old: JSON,
    new: JSON,
    path: tuple[str, ...],
    old_parent: Mapping[str, JSON],
    new_parent: Mapping[str, JSON],
    edits: list[Edit],
) -> None:
    if node.event or (node.known_when(new_parent) and not node.known_when(old_parent)):
        edits.append(Edit("set", path, new))
        return
    if old == new:
        return
    if node.kind == "object":
        for name, child in node.children.items():
            _differ(child, old[name], new[name], (*path, name), old, new, edits)
    elif node.kind == "array" and node.key is not None and node.items is not None:
        was = {element[node.key]: element for element in old}
        now = {element[node.key]: element for element in new}
        gone = tuple(key for key in was if key not in now)
        come = tuple(element for key, element in now.items() if key not in was)
        if gone:
            edits.append(Edit("remove", path, gone))
        for key, element in now.items():
            if key in was and was[key] != element:
                _differ(node.items, was[key], element, (*path, key), {}, {}, edits)
        if come:
            edits.append(Edit("add", path, come))
    else:
        edits.append(Edit("set", path, new))
