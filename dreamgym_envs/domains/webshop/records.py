"""Records in the original's format, read into products.

What is read follows the original: the same records are passed over, prices, options and bullet points are brought into
the same form. Where the original would fail with a KeyError hours later, `CatalogueError` names record and field.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dreamgym_envs.core.text import CHARSET
from dreamgym_envs.domains.webshop.products import NO_ATTRIBUTES, Instruction, Product, Review

__all__ = ["DEFAULT_PRICE", "CatalogueError", "clean", "read_product", "read_products"]

DEFAULT_PRICE = 100.0
"""Price of a product without one."""

LONGEST_TITLE = 500
LONGEST_NAME = 100
LONGEST_VALUE = 300
"""Most characters of a title, of an option's name and of its value; what is longer is cut."""

_LONGEST_ASIN = 10
_NOT_PRICE = re.compile(r"[^\d.]")
_CHARACTERS = frozenset(CHARSET)


class CatalogueError(ValueError):
    """A product file that cannot be read; the message names file, record and field."""


class _Record:
    """A JSON object whose fields are read with errors that say where they stand."""

    def __init__(self, data: Any, name: str) -> None:
        self.name = name
        if not isinstance(data, Mapping):
            raise CatalogueError(f"{name}: expected an object, found {_shown(data)}")
        self._data = data

    def error(self, field: str, expected: str) -> CatalogueError:
        found = _shown(self._data[field]) if field in self._data else "nothing"
        return CatalogueError(f"{self.name}, field {field!r}: expected {expected}, found {found}")

    def get(self, field: str) -> Any:
        return self._data.get(field)

    def text(self, field: str, optional: bool = False) -> str:
        value = self._data.get(field)
        if optional and value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(field, "a string")
        return clean(value)

    def texts(self, field: str, optional: bool = False) -> tuple[str, ...]:
        """Return a list of strings; a string alone counts as a list of one, as in the original."""
        value = self._data.get(field)
        if optional and value is None:
            return ()
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise self.error(field, "a list of strings")
        return tuple(map(clean, value))


def read_products(
    records: Iterable[Any], attributes: Mapping[str, Any] | None = None, instructions: Mapping[str, Any] | None = None
) -> Iterator[Product]:
    """Yield the products that records in the original's format describe.

    Passed over, as in the original: records whose asin is "nan" or longer than ten characters, and repeated ones.

    Args:
        records: The product file's.
        attributes: The attribute file's, by asin.
        instructions: The human instructions, by asin.

    Raises:
        CatalogueError: A record lacks what it needs.
    """
    seen = set()
    for number, data in enumerate(records):
        asin = _Record(data, f"product {number}").text("asin")
        if asin != "nan" and len(asin) <= _LONGEST_ASIN and asin.upper() not in seen:
            seen.add(asin.upper())
            about, asked = (attributes or {}).get(asin), (instructions or {}).get(asin)
            yield read_product(data, about, asked, f"product {number} ({asin})")


def read_product(data: Any, attributes: Any = None, instructions: Any = None, name: str = "product") -> Product:
    """Return one product from its record and what the other two files say of it.

    Args:
        data: The record.
        attributes: Its entry in the attribute file, None without one.
        instructions: Its entry among the human instructions, None without one.
        name: What errors call it.

    Raises:
        CatalogueError: The record lacks what it needs.
    """
    record = _Record(data, name)
    about = _Record(attributes, f"attributes of {name}") if attributes is not None else None
    template = None
    if about is not None and about.get("instruction"):
        wanted = about.texts("instruction_attributes")
        template = Instruction(about.text("instruction"), wanted) if wanted else None
    return Product(
        asin=record.text("asin").upper(),
        title=record.text("name")[:LONGEST_TITLE],
        category=record.text("category"),
        query=record.text("query").lower().strip(),
        product_category=record.text("product_category"),
        description=record.text("full_description", optional=True),
        bullets=record.texts("small_description"),
        pricing=_pricing(record),
        options=_options(record),
        attributes=about.texts("attributes") if about is not None and about.get("attributes") else NO_ATTRIBUTES,
        reviews=_reviews(record),
        instructions=_instructions(record, instructions),
        template=template,
    )


def _pricing(record: _Record) -> tuple[float, ...]:
    if not record.get("pricing"):
        return (DEFAULT_PRICE,)
    try:
        prices = tuple(float(_NOT_PRICE.sub("", part)) for part in record.text("pricing").split("$")[1:])
    except ValueError:
        prices = ()
    if not prices:
        raise record.error("pricing", "a price such as '$79.93' or '$10.5 to $20.99'")
    return prices[:2]


def _options(record: _Record) -> dict[str, tuple[str, ...]]:
    groups = record.get("customization_options") or {}
    expected = "an object of lists of {value: string}"
    if not isinstance(groups, Mapping):
        raise record.error("customization_options", expected)
    options: dict[str, tuple[str, ...]] = {}
    for name, contents in groups.items():
        if contents is None:
            continue
        try:
            values = [_option_value(content["value"]) for content in contents]
        except (KeyError, TypeError, AttributeError) as error:
            raise record.error("customization_options", expected) from error
        options[clean(name.lower(), LONGEST_NAME)] = tuple(dict.fromkeys(values))
    return options


def _option_value(text: str) -> str:
    return clean(text.strip().replace("/", " | ").lower(), LONGEST_VALUE)


def _reviews(record: _Record) -> tuple[Review, ...]:
    reviews = record.get("reviews") or ()
    try:
        return tuple(Review(clean(r["title"]), int(r["score"]), clean(r.get("body", ""))) for r in reviews)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise record.error("reviews", "a list of {title, score, body}") from error


def _instructions(record: _Record, instructions: Any) -> tuple[Instruction, ...]:
    """Return the human instructions; those without attributes are passed over, as in the original."""
    if instructions is None:
        return ()
    if not isinstance(instructions, list | tuple):
        raise CatalogueError(f"instructions of {record.name}: expected a list, found {_shown(instructions)}")
    found = []
    for number, data in enumerate(instructions):
        entry = _Record(data, f"instruction {number} of {record.name}")
        wanted = entry.texts("instruction_attributes")
        text, options = entry.text("instruction"), entry.texts("instruction_options", optional=True)
        if wanted:
            found.append(Instruction(text.strip("."), wanted, options))
    return tuple(found)


def clean(text: str, longest: int = 4000) -> str:
    """Return a text on one line, cut, with what no observation may hold (emoji, control characters) left out."""
    if not _CHARACTERS.issuperset(text):
        text = "".join(filter(_CHARACTERS.__contains__, text))
    return " ".join(text.split())[:longest].rstrip()


def _shown(value: Any) -> str:
    return f"{value!r:.80}"
