"""Catalogues: products by position and id, the index that finds them, and the goals of each split.

`Catalogue` holds them in memory, `store.Store` on disk.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.domains.webshop.goals import SPLITS, goal_ids, split_of
from dreamgym_envs.domains.webshop.products import Product
from dreamgym_envs.domains.webshop.records import read_products
from dreamgym_envs.domains.webshop.search import SearchIndex

__all__ = ["Catalogue", "Shelf", "read_catalogue"]


class Shelf(Protocol):
    """What a shop needs to know of its products."""

    @property
    def search_index(self) -> SearchIndex:
        """The search; hits are positions."""
        ...

    @property
    def human(self) -> bool:
        """Whether goals come from human instructions, else from the attribute file."""
        ...

    def __len__(self) -> int:
        """Return how many products there are."""
        ...

    def __getitem__(self, position: int, /) -> Product:
        """Return the product at a position of the file."""
        ...

    def find(self, asin: str) -> Product:
        """Return a product by its id, upper case.

        Raises:
            KeyError: There is none.
        """
        ...

    def goal_ids(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split's goals, in the products' order."""
        ...

    def sold(self, split: str) -> NDArray[np.bool_]:
        """Return which products are for sale in a split's shop: those of training and its own."""
        ...


class Catalogue(Sequence[Product]):
    """Products in memory, in the order of their file.

    Example:
        >>> catalogue = read_catalogue(*generate())
        >>> len(catalogue), catalogue.find(catalogue[0].asin) is catalogue[0]
        (3000, True)
    """

    def __init__(self, products: Iterable[Product]) -> None:
        self._products = tuple(products)
        self._by_asin = {product.asin: product for product in self._products}
        self.human = any(product.instructions for product in self._products)

    def __len__(self) -> int:
        return len(self._products)

    def __getitem__(self, position: Any) -> Any:
        return self._products[position]

    @cached_property
    def search_index(self) -> SearchIndex:
        """The search; see `Shelf`."""
        return SearchIndex.build(self._products)

    def find(self, asin: str) -> Product:
        """Return a product by its id; see `Shelf`."""
        return self._by_asin[asin]

    def goal_ids(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split's goals; see `Shelf`."""
        own = (product for product in self._products if split_of(product.asin) == split)
        return tuple(goal for product in own for goal in goal_ids(product, self.human))

    def sold(self, split: str) -> NDArray[np.bool_]:
        """Return which products a split's shop sells; see `Shelf`."""
        return np.array([split_of(product.asin) in (SPLITS[0], split) for product in self._products])


def read_catalogue(
    products: Iterable[Any], attributes: Mapping[str, Any] | None = None, instructions: Mapping[str, Any] | None = None
) -> Catalogue:
    """Return the catalogue that records in the original's format describe; see `records.read_products`.

    Raises:
        CatalogueError: A record lacks what it needs.
    """
    return Catalogue(read_products(products, attributes, instructions))
