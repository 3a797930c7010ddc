"""Products: what the shop sells, as the original's files describe it."""

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

__all__ = ["BELOW", "NO_ATTRIBUTES", "Instruction", "Product", "Review"]

NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""Attributes of a product that the attribute file does not have; they match no goal."""

BELOW = " \u203a "
"""What separates the departments of a product, from the widest to the narrowest."""


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
