"""The frozen dataclasses of `core.types` to JSON documents and back, by their field types alone."""

from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from dreamgym_envs.core.types import freeze, thaw

T = TypeVar("T")


def to_document(record: Any) -> Any:
    """Return what `json.dumps` takes: dataclasses as objects, tuples as arrays.

    Example:
        >>> to_document(State({"holding": ("mug 1",)}))
        {'public': {'holding': ['mug 1']}, 'private': {}}
    """
    if is_dataclass(record):
        return {field.name: to_document(getattr(record, field.name)) for field in fields(record)}
    if isinstance(record, list | tuple):
        return [to_document(item) for item in record]
    return thaw(record)


def from_document(kind: type[T], document: Any) -> T:
    """Return the dataclass that `to_document` turned into `document`; fields with defaults may be left out.

    Raises:
        ValueError: The document is no object, lacks a field or has one that the dataclass does not know.
    """
    if not isinstance(document, dict):
        raise ValueError(f"a {kind.__name__} is a JSON object, not {document!r:.60}")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in document:
        if name not in known:
            raise ValueError(f"a {kind.__name__} has no {name!r}; it has {', '.join(known)}")
    for name, field in known.items():
        if name not in document and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"a {kind.__name__} needs {name!r}; found {', '.join(document) or 'nothing'}")
    hints = _hints(kind)  # type: ignore[arg-type]
    return kind(**{name: _value(hints[name], value) for name, value in document.items()})


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return a dataclass's field types; looking them up is most of the work of reading a record."""
    return get_type_hints(kind)


def _value(hint: Any, value: Any) -> Any:
    arguments = get_args(hint)
    if NoneType in arguments:
        return None if value is None else _value(next(a for a in arguments if a is not NoneType), value)
    if is_dataclass(hint):
        return from_document(hint, value)  # type: ignore[arg-type]
    if get_origin(hint) is tuple and is_dataclass(arguments[0]):
        return tuple(from_document(arguments[0], item) for item in value)  # type: ignore[arg-type]
    if hint in (str, int, float, bool):
        # JSON writes 1.0 as 1 in other languages; anything else of another type is a damaged file.
        if not isinstance(value, (int, float) if hint is float else hint):
            raise ValueError(f"expected {hint.__name__}, got {value!r:.60}")
        return hint(value)
    return freeze(value)
