"""The original's files: JSON or gzipped JSON, the product file too large to be read at once."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from dreamgym_envs.domains.webshop.records import CatalogueError

__all__ = ["read_list", "read_object"]

CHUNK = 1 << 20
"""Characters that are read at a time."""

_BLANK = re.compile(r"\s*")
_NEXT = re.compile(r"\s*([,\]])")
_BROKEN = (ValueError, EOFError, gzip.BadGzipFile)  # a UnicodeDecodeError and a JSONDecodeError are ValueErrors


def read_list(path: Path) -> Iterator[Any]:
    """Yield the elements of a file with a JSON array, of which a few are in memory at a time.

    Raises:
        FileNotFoundError: There is no such file.
        CatalogueError: It holds something else.
    """
    with _open(path) as file:
        try:
            yield from _elements(file)
        except CatalogueError:
            raise
        except _BROKEN as error:
            raise CatalogueError(f"{path}: no JSON array: {error}; expected WebShop's list of products") from error


def read_object(path: Path) -> dict[str, Any]:
    """Return what a file with a JSON object holds.

    Raises:
        FileNotFoundError: There is no such file.
        CatalogueError: It holds something else.
    """
    with _open(path) as file:
        try:
            value = json.load(file)
        except _BROKEN as error:
            raise CatalogueError(f"{path}: no JSON: {error}; expected WebShop's object by asin") from error
    if not isinstance(value, dict):
        raise CatalogueError(f"{path}: expected an object by asin, found {value!r:.80}")
    return value


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _elements(file: IO[str]) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    text, place = "", 0

    def grow(error: Exception) -> None:
        """Read on behind what is not done with yet, or give up."""
        nonlocal text, place
        more = file.read(CHUNK)
        if not more:
            raise error
        text, place = text[place:] + more, 0

    opened = empty = False
    while True:
        place = _after_blanks(text, place)
        if place == len(text):
            grow(ValueError("it ends too early"))
            continue
        if not opened:
            if text[place] != "[":
                raise ValueError(f"it starts with {text[place : place + 40]!r}")
            opened, empty, place = True, True, place + 1
            continue
        if empty and text[place] == "]":
            return
        try:
            element, end = decoder.raw_decode(text, place)
            found = _NEXT.match(text, end)
            if found is None:
                raise json.JSONDecodeError("expected , or ]", text, end)
        except json.JSONDecodeError as error:
            # An error near the end of what was read may only be the end of it; one further off is an error.
            if len(text) - error.pos > CHUNK:
                raise
            grow(error)
            continue
        place, empty = found.end(), False
        yield element
        if found[1] == "]":
            return


def _after_blanks(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    assert found is not None
    return found.end()
