"""A small shop for the tests of WebShop: few products, each there for a reason."""

from typing import Any

from dreamgym_envs.domains.webshop.catalogue import Catalogue, read_catalogue
from dreamgym_envs.domains.webshop.goals import Goal, goals_of, split_of
from dreamgym_envs.domains.webshop.shop import Shop


def record(asin: str = "B000000002", **fields: Any) -> dict[str, Any]:
    """Return a product in the original's format; fields replace the defaults."""
    return {
        "asin": asin,
        "name": "Fernhill Men's Slim Fit Dress Shirt",
        "category": "fashion",
        "query": "Men's Dress Shirts ",
        "product_category": "Clothing \u203a Men \u203a Shirts",
        "pricing": "$24.50",
        "full_description": "A shirt for the office.",
        "small_description": ["Machine wash cold.", "Button closure."],
        "customization_options": {
            "Color": [{"value": "Black", "image": None}, {"value": "Navy/White", "image": None}],
            "Size": [{"value": "Small"}, {"value": "X-Large"}],
        },
        "images": [],
        **fields,
    }


SHIRT, MUG = "B000000002", "B0000000M1"
INSTRUCTION = "i need a men's dress shirt with machine wash, in black, size small"


def catalogue() -> Catalogue:
    """Return a shirt that has a goal, a mug, and 24 more shirts without options, so that results fill three pages."""
    records = [record(SHIRT)]
    records.append(
        record(
            MUG,
            name="Brixley Stoneware Mug",
            query="mugs",
            pricing="$8 to $12",
            full_description="For tea.",
            small_description=["Holds 300 ml."],
            customization_options={},
        )
    )
    others = [asin for asin in (f"B0000001{i:02}" for i in range(100)) if split_of(asin) == "train"]
    records += [record(asin, name=f"Halden Shirt {asin}", customization_options=None) for asin in others[:24]]
    attributes = {SHIRT: {"attributes": ["machine wash", "slim fit"]}}
    instructions = {
        SHIRT: [
            {
                "instruction": f"{INSTRUCTION}.",
                "instruction_attributes": ["machine wash"],
                "instruction_options": ["black", "small"],
            }
        ]
    }
    return read_catalogue(records, attributes, instructions)


def open_shop() -> tuple[Shop, Goal]:
    """Return a shop that sells the small catalogue, and its goal."""
    products = catalogue()
    return Shop(products), goals(products)[0]


def goals(products: Catalogue) -> list[Goal]:
    """Return all goals of a catalogue."""
    return [goal for product in products for goal in goals_of(product, products.human)]
