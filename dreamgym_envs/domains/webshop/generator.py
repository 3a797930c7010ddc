"""A made-up catalogue in the original's format, so that the shop opens without a download.

Every record follows from the seed. A product gets a kind, a brand, four to seven attributes, options and a price or a
range of prices. Its attributes are all to be read somewhere: some in the title, the others in the bullet points and the
description, as in the original, whose attributes were mined from these texts. Products of one kind share some
attributes and differ in others, so that every goal has near misses.

The instructions are in the style of the original's two kinds of goals: sentences of people ("i need a ...") and its
template ("Find me ... with color: ..., and size: ..."). Some name attributes alone, others options too.
"""

import random
from typing import Any

from dreamgym_envs.domains.webshop.departments import Department, Kind, departments
from dreamgym_envs.domains.webshop.products import BELOW
from dreamgym_envs.domains.webshop.words import word_list

__all__ = ["PRODUCTS", "generate"]

PRODUCTS = 3000
"""Products of the catalogue that ships: of six departments with ten kinds each, fifty a kind."""

Record = dict[str, Any]

_ASIN_LETTERS = "0123456789ABCDEFGHJKLMNPQRSTVWXYZ"
_PEOPLE = (
    "i am looking for {article} {first} {noun} {rest}. {options}",
    "i need {article} {noun} {all}{inline}",
    "i want {article} {first} {noun} {rest}{inline}",
    "i'm looking for {article} {noun} {all}. {options}",
    "i would like to buy {article} {first} {noun} {rest}. {options}",
)


def generate(seed: int = 0, count: int = PRODUCTS) -> tuple[list[Record], dict[str, Record], dict[str, list[Record]]]:
    """Return products, attributes and human instructions, as the original's three files hold them.

    Args:
        seed: Another seed is another shop; products have other ids.
        count: How many products; every kind has as many as the others.

    Example:
        >>> products, attributes, instructions = generate(count=60)
        >>> len(products), sorted(attributes[products[0]["asin"]])
        (60, ['attributes', 'instruction', 'instruction_attributes'])
    """
    rng = random.Random(f"webshop {seed}")
    products: list[Record] = []
    attributes: dict[str, Record] = {}
    instructions: dict[str, list[Record]] = {}
    kinds = [(department, kind) for department in departments() for kind in department.kinds]
    for number in range(count):
        department, kind = kinds[number % len(kinds)]
        asin = "B0" + "".join(rng.choices(_ASIN_LETTERS, k=8))
        while asin in attributes:
            asin = "B0" + "".join(rng.choices(_ASIN_LETTERS, k=8))
        own = rng.sample(kind.attributes, rng.randint(2, 4)) + rng.sample(department.attributes, rng.randint(2, 3))
        rng.shuffle(own)
        options = _options(rng, department, kind)
        products.append(_product(rng, asin, department, kind, own, options))
        asked = rng.sample(own, rng.randint(1, 3))
        attributes[asin] = {
            "attributes": own,
            "instruction": _template(kind, asked),
            "instruction_attributes": asked,
        }
        instructions[asin] = [_instruction(rng, kind, own, options) for _ in range(2)]
    rng.shuffle(products)
    return products, attributes, instructions


def _options(rng: random.Random, department: Department, kind: Kind) -> dict[str, list[str]]:
    """Return some of the values of a kind's options; now and then an option is missing."""
    options = {}
    for name in kind.options:
        if rng.random() < 0.9:
            values = department.options[name]
            picked = rng.sample(range(len(values)), rng.randint(2, min(8, len(values))))
            title = "size" if name.endswith(" size") else name
            options[title] = [values[i] for i in sorted(picked)]
    return options


def _product(
    rng: random.Random, asin: str, department: Department, kind: Kind, own: list[str], options: dict[str, list[str]]
) -> Record:
    brand, series = rng.choice(word_list("brands")), rng.choice(word_list("series"))
    titled = own[: rng.randint(1, 2)]
    told = own[len(titled) : -1]  # in the bullet points; the last one stands in the description alone
    use, other_use = rng.sample(department.uses, 2)
    bullets = [_bullet(rng, attribute, kind.noun, use) for attribute in told]
    bullets.append(f"{brand} stands behind every {kind.noun}: write to us and we make it right.")
    low = round(rng.uniform(*kind.price) - 0.5) + rng.choice((0.95, 0.99, 0.49, 0.0))
    high = round(low * rng.uniform(1.1, 1.6), 2)
    return {
        "asin": asin,
        "name": _title(brand, series, kind, titled, use),
        "category": department.name,
        "query": kind.query,
        "product_category": f"{department.path}{BELOW}{kind.path}",
        "pricing": f"${low:.2f} to ${high:.2f}" if options and rng.random() < 0.3 else f"${low:.2f}",
        "full_description": (
            f"The {series} {kind.noun} by {brand} was made with {other_use} in mind. "
            f"{own[-1].capitalize()} and made to be used every day, it goes well with {use}."
        ),
        "small_description": bullets,
        "customization_options": {
            name.title(): [{"value": value, "image": None} for value in values] for name, values in options.items()
        },
        "images": [],
        "reviews": [
            {"title": title, "score": score, "body": body}
            for score, title, body in rng.sample(word_list("opinions"), rng.choice((0, 1, 2, 3)))
        ],
    }


def _title(brand: str, series: str, kind: Kind, titled: list[str], use: str) -> str:
    first, *rest = (attribute.title() for attribute in titled)
    noun = " ".join(word[0].upper() + word[1:] for word in kind.noun.split())
    return ", ".join([f"{brand} {series} {first} {noun} for {use.title()}", *rest])


def _bullet(rng: random.Random, attribute: str, noun: str, use: str) -> str:
    return rng.choice(
        (
            f"{attribute.capitalize()}: this {noun} is ready for {use}.",
            f"A {noun} with {attribute} at a fair price.",
            f"{attribute.upper()} - we put care into every detail.",
            f"Made for {use}, {attribute} and simple to keep.",
        )
    )


def _template(kind: Kind, asked: list[str]) -> str:
    """Return an instruction of the original's template, without options and price."""
    *before, last = asked
    return f"Find me {', '.join(before)} {kind.query} with {last}" if before else f"Find me {last} {kind.query}"


def _instruction(rng: random.Random, kind: Kind, own: list[str], options: dict[str, list[str]]) -> Record:
    """Return a human instruction: one to three attributes and none, some or all of the options."""
    asked = rng.sample(own, rng.randint(1, 3))
    names = rng.sample(sorted(options), rng.randint(0, len(options)))
    chosen = [(name, rng.choice(options[name])) for name in names]
    if rng.random() < 0.3:
        text = _template(kind, asked)
        if chosen:
            text += " with " + ", and ".join(f"{name}: {value}" for name, value in chosen)
    else:
        first, rest = asked[0], asked[1:]
        said = ", and ".join(f"the {name} should be {value}" for name, value in chosen)
        inline = ", ".join(f"{value} {name}" if name == "color" else f"{name} {value}" for name, value in chosen)
        pattern, joint = rng.choice(_PEOPLE), rng.choice(("that is", "with", "which has"))
        text = pattern.format(
            article="an" if (first if "{first}" in pattern else kind.noun)[0] in "aeiou" else "a",
            noun=kind.noun,
            first=first,
            rest=f"{joint} {' and '.join(rest)}" if rest else f"for {rng.choice(_OCCASIONS)}",
            all=f"{joint} {' and '.join(asked)}",
            inline=f", in {inline}" if inline else "",
            options=said,
        )
    return {
        "instruction": " ".join(text.split()).strip(" ."),
        "instruction_attributes": asked,
        "instruction_options": [value for _, value in chosen],
    }


_OCCASIONS = ("my sister", "a friend", "my parents", "everyday use", "my apartment", "the summer")
