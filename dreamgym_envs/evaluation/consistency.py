"""Does a dream stick to what it has shown? Contradictions between a state and the next, read off the schema alone.

Whatever has been revealed is a fact. A thing (schema keyword "x-unique") is never gone, and is where and as it was seen
until an action touches it. What a place holds (keyword "x-known") stays known, and nothing joins it untouched. What is
fixed (keyword "x-fixed") stays as it is, whatever is touched. An element of a keyed array stays if it holds what is
known or fixed. Real trajectories have no contradictions, which a test holds this module to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dreamgym_envs.core.knowledge import Path, known
from dreamgym_envs.core.schema import Node, Schema
from dreamgym_envs.core.types import JSON, State

__all__ = ["contradictions"]

Name = tuple[str, str]
"""A kind of "x-unique" and a name of that kind."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A thing in a state.

    Attributes:
        place: Path of the array or object that it is in.
        looks: The object whose name it is, or the name where that stands alone.
    """

    place: Path
    looks: JSON


def contradictions(schema: Schema, before: State, after: State, touched: Sequence[str]) -> list[str]:
    """Return what a step contradicts of the facts revealed before it, one sentence each.

    Args:
        schema: The domain's schema.
        before: The state before the step.
        after: The state after it.
        touched: Names of the things that the action may change; see `Domain.touched`.
    """
    was, now = _sightings(schema, before), _sightings(schema, after)
    return [
        *_in_two_places(now),
        *_lost(was, now),
        *_changed_untouched(was, now, touched),
        *_joined_untouched(was, now, touched, known(schema, before)),
        *_fixed_changed(schema, before, after, touched),
        *_places_lost(schema, before, after),
    ]


def _in_two_places(now: Mapping[Name, list[Sighting]]) -> Iterator[str]:
    for (_, name), seen in now.items():
        if len(seen) > 1:
            yield f"{name} is in {len(seen)} places: {', '.join('/'.join(sighting.place) for sighting in seen)}"


def _lost(was: Mapping[Name, list[Sighting]], now: Mapping[Name, list[Sighting]]) -> Iterator[str]:
    for kind, name in was:
        if (kind, name) not in now:
            yield f"{name} is gone"


def _changed_untouched(
    was: Mapping[Name, list[Sighting]], now: Mapping[Name, list[Sighting]], touched: Sequence[str]
) -> Iterator[str]:
    for (kind, name), [old, *_] in was.items():
        for new in now.get((kind, name), [])[:1]:
            if name not in touched and old != new:
                yield f"{name} changed although the action does not touch it"


def _joined_untouched(
    was: Mapping[Name, list[Sighting]],
    now: Mapping[Name, list[Sighting]],
    touched: Sequence[str],
    known_before: frozenset[Path],
) -> Iterator[str]:
    for (kind, name), [new, *_] in now.items():
        if (kind, name) not in was and name not in touched and new.place in known_before:
            yield f"{name} joined {'/'.join(new.place)}, which was known without it"


def _fixed_changed(schema: Schema, before: State, after: State, touched: Sequence[str]) -> Iterator[str]:
    for name in schema.public_names:
        node = schema.root.children[name]
        yield from _changes(node, before.public, after.public, name, (name,), touched)


def _changes(
    node: Node,
    before: Mapping[str, JSON],
    after: Mapping[str, JSON],
    name: str,
    path: Path,
    touched: Sequence[str],
) -> Iterator[str]:
    """Yield the fixed properties at and below the property `name`, which `node` describes, that are not what they were.

    Changes of untouched things are left out: they are contradictions anyway, whatever changed.
    """
    was, now = before[name], after[name]
    if node.fixed:
        hidden = node.known is not None and not (node.known_when(before) and node.known_when(after))
        if was != now and not hidden:
            yield f"{'/'.join(path)} changed although it is fixed"
    elif node.kind == "object":
        for inner, child in node.children.items():
            yield from _changes(child, was, now, inner, (*path, inner), touched)
    elif node.kind == "array" and node.key is not None and node.items is not None:
        unique = node.items.children[node.key].unique is not None
        later = {element[node.key]: element for element in now}
        for element in was:
            key = element[node.key]
            if key in later and (key in touched or not unique):
                for inner, child in node.items.children.items():
                    yield from _changes(child, element, later[key], inner, (*path, key, inner), touched)


def _places_lost(schema: Schema, before: State, after: State) -> Iterator[str]:
    gone = _elements(schema, before) - _elements(schema, after)
    for path in sorted(gone):
        if _lasts(schema.root.children[path[0]]):
            yield f"{'/'.join(path)} is gone"
    for path in sorted(known(schema, before) - known(schema, after)):
        if path[:2] not in gone:
            yield f"{'/'.join(path)} was known and is hidden again"


# --- walking a state by its schema -----------------------------------------------------------------------------------


def _sightings(schema: Schema, state: State) -> dict[Name, list[Sighting]]:
    """Return where each uniquely named thing is seen; hidden arrays show nothing."""
    found: dict[Name, list[Sighting]] = {}
    for name in schema.public_names:
        for key, sighting in _walk(schema.root.children[name], state.public[name], (name,), state.public):
            found.setdefault(key, []).append(sighting)
    return found


def _walk(node: Node, value: JSON, path: Path, parent: Mapping[str, JSON]) -> Iterator[tuple[Name, Sighting]]:
    if node.known is not None and not node.known_when(parent):
        return
    if node.kind == "object":
        for name, child in node.children.items():
            if child.unique is not None:
                yield (child.unique, value[name]), Sighting(path, value)
            else:
                yield from _walk(child, value[name], (*path, name), value)
    elif node.kind == "array" and node.items is not None:
        for element in value:
            if node.items.unique is not None:
                yield (node.items.unique, element), Sighting(path, element)
            elif node.items.kind == "object":
                # A thing's own name is no part of its place; a room's is part of the place of what it holds.
                own = node.key is not None and node.items.children[node.key].unique is None
                yield from _walk(node.items, element, (*path, element[node.key]) if own else path, {})


def _elements(schema: Schema, state: State) -> frozenset[Path]:
    """Return the paths of the elements of keyed arrays at the root."""
    return frozenset(
        (name, element[node.key])
        for name in schema.public_names
        if (node := schema.root.children[name]).key is not None
        for element in state.public[name]
    )


def _lasts(node: Node) -> bool:
    """Return whether the elements of a keyed array are to stay because they hold facts; `_lost` sees to things."""
    assert node.key is not None and node.items is not None
    return node.items.children[node.key].unique is None and _holds_facts(node.items)


def _holds_facts(node: Node) -> bool:
    below = (*node.children.values(), *([node.items] if node.items is not None else []))
    return node.fixed or node.known is not None or any(map(_holds_facts, below))
