"""What a state tells and what it still hides: the arrays with the schema keyword "x-known"."""

from collections.abc import Iterator, Mapping

from dreamgym_envs.core.schema import Node, Schema
from dreamgym_envs.core.types import JSON, State

Path = tuple[str, ...]
"""Property names, with an element's key after each keyed array, as in a delta."""


def known(schema: Schema, state: State) -> frozenset[Path]:
    """Return the paths of the arrays that were hidden at some time and are known in a state.

    Example:
        >>> known(domain.schema, state)
        frozenset({('receptacles', 'desk 1', 'contents')})
    """
    return frozenset(path for name in schema.public_names for path in _known(schema.root, name, state.public, ()))


def revealed(schema: Schema, before: State, after: State) -> frozenset[Path]:
    """Return the paths of the arrays that are known after a step and were not before it."""
    return known(schema, after) - known(schema, before)


def share_known(schema: Schema, state: State) -> float:
    """Return the share of the arrays with "x-known" that are known in a state; 1 if there are none."""
    counts = [0, 0]

    def visit(node: Node, value: JSON, parent: Mapping[str, JSON]) -> None:
        if node.known is not None:
            counts[0] += node.known_when(parent)
            counts[1] += 1
        if node.kind == "object":
            for name, child in node.children.items():
                if not child.private:
                    visit(child, value[name], value)
        elif node.kind == "array" and node.items is not None and node.items.kind == "object":
            for element in value:
                visit(node.items, element, {})

    visit(schema.root, state.public, {})
    return counts[0] / counts[1] if counts[1] else 1.0


def _known(node: Node, name: str, parent: Mapping[str, JSON], path: Path) -> Iterator[Path]:
    """Yield the known arrays at and below the property `name` of an object `parent` that `node` describes."""
    child, path = node.children[name], (*path, name)
    if child.known_when(parent):
        yield path
    if child.kind == "object":
        for inner in child.children:
            yield from _known(child, inner, parent[name], path)
    elif child.kind == "array" and child.key is not None and child.items is not None and _has_arrays(child.items):
        for element in parent[name]:
            for inner in child.items.children:
                yield from _known(child.items, inner, element, (*path, element[child.key]))


def _has_arrays(node: Node) -> bool:
    """Return whether an array can be below: most elements are flat, and there are many of them."""
    return any(child.kind in ("array", "object") for child in node.children.values())
