"""Products, and how they are read from files in the original's format.

Three files, as WebShop ships them: products (items_shuffle.json, a list of records), attributes (items_ins_v2.json, an
object by asin) and human instructions (items_human_ins.json, an object by asin). What is read follows the original:
the same records are passed over, prices, options and bullet points are brought into the same form. Where the original
would fail with a KeyError hours later, `CatalogueError` names the file, the record and the field.
"""

import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from dreamgym_envs.core.text import CHARSET

__all__ = ["Catalogue", "CatalogueError", "Instruction", "Product", "Review", "load_catalogue", "read_catalogue"]

NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""Attributes of a product that the attribute file does not have; they match no goal."""

BELOW = " \u203a "
"""What separates the departments of a product, from the widest to the narrowest."""

DEFAULT_PRICE = 100.0
"""Price of a product without one."""

LONGEST_TITLE = 500
LONGEST_VALUE = 300
"""Most characters of a title and of an option's value; what is longer is cut."""

_LONGEST_ASIN = 10
_NOT_PRICE = re.compile(r"[^\d.]")
_CHARACTERS = frozenset(CHARSET)


class CatalogueError(ValueError):
    """A product file that cannot be read; the message names file, record and field."""


@dataclass(frozen=True, slots=True)
class Review:
    """One customer's opinion.

    Attributes:
        title: Its heading.
        score: Stars, 1 to 5.
        body: What it says.
    """

    title: str
    score: int
    body: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the files ask for in words, before a price limit is drawn.

    Attributes:
        text: The words.
        attributes: What the product must be.
        options: Values to choose.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """One product.

    Attributes:
        asin: Its id, upper case.
        title: The product's name.
        category: Department, such as "fashion".
        query: Kind of product as a shopper would search for it, such as "men's dress shirts"; lower case.
        product_category: Path of departments, such as "Clothing › Men › Shirts".
        description: Text of the description page.
        bullets: Lines of the features page.
        pricing: One price, or the ends of a range, in dollars.
        options: Values by name of the option, all lower case.
        attributes: What the product is, as the attribute file says; never on a page as such.
        reviews: What customers wrote.
        instructions: Human instructions that this product answers.
        template: Instruction of the attribute file, to which any choice of options can be added.
    """

    asin: str
    title: str
    category: str
    query: str
    product_category: str
    description: str
    bullets: tuple[str, ...]
    pricing: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...] = NO_ATTRIBUTES
    reviews: tuple[Review, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    template: Instruction | None = None

    @property
    def price_tag(self) -> str:
        """The price as pages show it: "$24.46" or "$20.66 to $29.2"."""
        return " to ".join(f"${price}" for price in self.pricing)

    @property
    def price(self) -> float:
        """The price that is paid: of a range the point that the product's id picks, where the original draws one."""
        if len(self.pricing) == 1:
            return self.pricing[0]
        low, high = self.pricing
        return low + (high - low) * crc32(self.asin.encode()) / 0xFFFFFFFF

    @property
    def rating(self) -> str:
        """Mean of the reviews' stars as pages show it, "N.A." without any."""
        if not self.reviews:
            return "N.A."
        return f"{sum(review.score for review in self.reviews) / len(self.reviews):.1f}"


class Catalogue(Sequence[Product]):
    """Products in the order of their file, and by id.

    Example:
        >>> catalogue = load_catalogue("items_shuffle.json", "items_ins_v2.json")  # doctest: +SKIP
        >>> catalogue.by_asin["B07T3VMGDG"].price_tag                              # doctest: +SKIP
        '$23.99'
    """

    def __init__(self, products: Iterable[Product]) -> None:
        self.by_asin: dict[str, Product] = {product.asin: product for product in products}
        self._products = tuple(self.by_asin.values())

    def __len__(self) -> int:
        return len(self._products)

    def __getitem__(self, index: Any) -> Any:
        return self._products[index]


def load_catalogue(
    products: str | Path, attributes: str | Path | None = None, instructions: str | Path | None = None
) -> Catalogue:
    """Read a catalogue from the original's files, each JSON or gzipped JSON.

    Args:
        products: Path of the product file.
        attributes: Path of the attribute file; without it no product has attributes.
        instructions: Path of the human instructions; without it goals come from the attribute file.

    Raises:
        FileNotFoundError: A file is missing.
        CatalogueError: A file is no JSON or a record lacks what it needs.
    """
    return read_catalogue(
        _read_json(products, list, "a list of products"),
        _read_json(attributes, dict, "an object by asin") if attributes is not None else {},
        _read_json(instructions, dict, "an object by asin") if instructions is not None else {},
    )


def read_catalogue(
    products: Iterable[Mapping[str, Any]],
    attributes: Mapping[str, Any] | None = None,
    instructions: Mapping[str, Any] | None = None,
) -> Catalogue:
    """Return the catalogue that records in the original's format describe.

    Passed over, as in the original: records whose asin is "nan" or longer than ten characters, and repeated ones.

    Raises:
        CatalogueError: A record lacks what it needs.
    """
    attributes, instructions = attributes or {}, instructions or {}
    found: dict[str, Product] = {}
    for number, data in enumerate(products):
        record = _Record(data, f"product {number}")
        asin = record.text("asin")
        if asin == "nan" or len(asin) > _LONGEST_ASIN or asin.upper() in found:
            continue
        record.name = f"product {number} ({asin})"
        found[asin.upper()] = _product(record, attributes.get(asin), instructions.get(asin))
    return Catalogue(found.values())


def clean(text: str, longest: int = 4000) -> str:
    """Return a text on one line, cut, with what no observation may hold (emoji, control characters) left out."""
    if not _CHARACTERS.issuperset(text):
        text = "".join(filter(_CHARACTERS.__contains__, text))
    return " ".join(text.split())[:longest].rstrip()


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


def _product(record: _Record, attributes: Any, instructions: Any) -> Product:
    about = _Record(attributes, f"attributes of {record.name}") if attributes is not None else None
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
        options[clean(name.lower())] = tuple(dict.fromkeys(values))
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


def _read_json(path: str | Path, kind: type, expected: str) -> Any:
    path = Path(path)
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            value = json.load(file)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise CatalogueError(f"{path}: no JSON: {error}; expected one of WebShop's data files") from error
    if not isinstance(value, kind):
        raise CatalogueError(f"{path}: expected {expected}, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return f"{value!r:.80}"
