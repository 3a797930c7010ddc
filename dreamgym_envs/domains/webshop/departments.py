"""What the generated shop sells: departments and kinds of products, read from the word lists."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dreamgym_envs.domains.webshop.words import word_list

__all__ = ["Department", "Kind", "departments"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of product.

    Attributes:
        query: What a shopper types, in the plural.
        noun: The same in the singular, as it stands in titles and instructions.
        path: The last of its departments.
        attributes: Attributes that it can have beside those of its department.
        options: Names of its options; the department has the values.
        price: Least and largest usual price in dollars.
    """

    query: str
    noun: str
    path: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Department:
    """A department.

    Attributes:
        name: Category of its products, as in the original: "fashion".
        path: The first of its products' departments.
        attributes: Attributes that all its kinds can have.
        options: Values by name of the option.
        uses: What its products are good for.
        kinds: What it sells.
    """

    name: str
    path: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    uses: tuple[str, ...]
    kinds: tuple[Kind, ...]


@cache
def departments() -> tuple[Department, ...]:
    """Return the departments, ten kinds each.

    Example:
        >>> [department.name for department in departments()]
        ['fashion', 'beauty', 'electronics', 'garden', 'grocery', 'pets']
    """
    return tuple(
        Department(
            name=entry["name"],
            path=entry["path"],
            attributes=tuple(entry["attributes"]),
            options={name: tuple(values) for name, values in entry["options"].items()},
            uses=tuple(entry["uses"]),
            kinds=tuple(
                Kind(
                    query=kind["query"],
                    noun=kind["noun"],
                    path=kind["path"],
                    attributes=tuple(kind["attributes"]),
                    options=tuple(kind["options"]),
                    price=(kind["price"][0], kind["price"][1]),
                )
                for kind in entry["kinds"]
            ),
        )
        for entry in word_list("departments")
    )
