"""A catalogue on disk, for files as large as the original's 1.18 million products.

`open_store` reads the original's files once and keeps what they say in a folder beside them: the records in an SQLite
file, the index in memory-mapped arrays. Opening it again takes as long as reading a list of the goals' ids, and memory
holds only what a shop shows. The folder is made anew when a file has changed.
"""

import json
import logging
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.core.records import from_document
from dreamgym_envs.domains.webshop.files import read_list, read_object
from dreamgym_envs.domains.webshop.goals import SPLITS, goal_ids, split_of
from dreamgym_envs.domains.webshop.products import Product
from dreamgym_envs.domains.webshop.records import read_products
from dreamgym_envs.domains.webshop.search import SearchIndex

__all__ = ["Store", "open_store"]

_FORMAT = 1
_ORIGIN = "origin.json"
_TABLE = (
    "CREATE TABLE products "
    "(position INTEGER PRIMARY KEY, asin TEXT UNIQUE, split TEXT, people INT, choices INT, data TEXT)"
)
_LOG = logging.getLogger(__name__)


class Store:
    """A catalogue in a folder that `open_store` has made; a `Shelf` of catalogue.py.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # The file never changes, so that processes forked from this one may go on using the connection.
        self._file = sqlite3.connect(f"file:{(folder / 'products.db').as_posix()}?immutable=1", uri=True)
        (self._count, people) = self._file.execute("SELECT count(*), sum(people) FROM products").fetchone()
        self.human = bool(people)
        self._product = lru_cache(maxsize=1 << 14)(self._read)

    def __len__(self) -> int:
        return int(self._count)

    def __getitem__(self, position: int, /) -> Product:
        return self._product(position)

    @cached_property
    def search_index(self) -> SearchIndex:
        """The search; see `Shelf`."""
        return SearchIndex.load(self._folder / "index")

    def find(self, asin: str) -> Product:
        """Return a product by its id; see `Shelf`."""
        row = self._file.execute("SELECT position FROM products WHERE asin = ?", (asin,)).fetchone()
        if row is None:
            raise KeyError(asin)
        return self[row[0]]

    def goal_ids(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split's goals; see `Shelf`."""
        kind = "people" if self.human else "choices"
        rows = self._file.execute(
            f"SELECT asin, {kind} FROM products WHERE split = ? AND {kind} > 0 ORDER BY position", (split,)
        )
        return tuple(f"{asin}-{number}" for asin, count in rows for number in range(count))

    def sold(self, split: str) -> NDArray[np.bool_]:
        """Return which products a split's shop sells; see `Shelf`."""
        splits = np.load(self._folder / "splits.npy", mmap_mode="r")
        sold: NDArray[np.bool_] = np.isin(splits, (0, SPLITS.index(split)))
        return sold

    def _read(self, position: int) -> Product:
        row = self._file.execute("SELECT data FROM products WHERE position = ?", (position,)).fetchone()
        if row is None:
            raise IndexError(position)
        return from_document(Product, json.loads(row[0]))


def open_store(
    products: Path, attributes: Path | None = None, instructions: Path | None = None, folder: Path | None = None
) -> Store:
    """Return the store of the original's files, each JSON or gzipped JSON; it is made first if it is not there.

    Args:
        products: The product file.
        attributes: The attribute file; without it no product has attributes.
        instructions: The human instructions; without them goals come from the attribute file.
        folder: Where the store is or goes; by default beside the product file, with ".shop" after its name.

    Raises:
        FileNotFoundError: A file is missing.
        CatalogueError: A file is no JSON or a record lacks what it needs.
        OSError: The folder cannot be written.
        ValueError: The folder holds something else.
    """
    folder = folder or products.with_name(f"{products.name}.shop")
    origin = {"format": _FORMAT, "files": [_stamp(path) for path in (products, attributes, instructions)]}
    if _made_from(folder) == origin:
        return Store(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _ORIGIN).is_file():
        raise ValueError(f"{folder} is no store of the shop and not empty; name another folder or none: store=")
    _LOG.info("reading %s into %s", products, folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise OSError(f"cannot write {folder} ({error.strerror}); say with store= where the index may go") from error
    try:
        _write(draft, products, attributes, instructions)
        (draft / _ORIGIN).write_text(json.dumps(origin), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Store(folder)


def _stamp(path: Path | None) -> list[Any] | None:
    """Return what tells one version of a file from another."""
    if path is None:
        return None
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def _made_from(folder: Path) -> Any:
    try:
        return json.loads((folder / _ORIGIN).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _fields(record: Any) -> dict[str, Any]:
    """Return a dataclass as `core.records.to_document` does; the encoder takes care of what is inside."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _write(folder: Path, products: Path, attributes: Path | None, instructions: Path | None) -> None:
    about = read_object(attributes) if attributes is not None else {}
    asked = read_object(instructions) if instructions is not None else {}
    splits: list[int] = []
    with sqlite3.connect(folder / "products.db") as file:
        file.execute(_TABLE)

        def kept() -> Iterator[Product]:
            for position, product in enumerate(read_products(read_list(products), about, asked)):
                split = split_of(product.asin)
                splits.append(SPLITS.index(split))
                counts = [len(goal_ids(product, human)) for human in (True, False)]
                document = json.dumps(product, default=_fields, separators=(",", ":"), ensure_ascii=False)
                file.execute(
                    "INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)", (position, product.asin, split, *counts, document)
                )
                yield product

        index = SearchIndex.build(kept())
    file.close()
    index.save(folder / "index")
    np.save(folder / "splits.npy", np.array(splits, np.int8))
