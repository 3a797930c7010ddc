"""Pages: what the shop shows, and the original's text of it.

The original's text mode joins a page's visible strings by " [SEP] ". `render` writes a page so, `read` reads it back:
the shop's own text, recorded episodes and the pages of the original server all become the same `Page`.

A text does not mark which strings of an item page name an option and which are its values. `read` takes the first for
a name, and later ones that are known names (`OPTION_NAMES`).
"""

import re
from dataclasses import dataclass
from typing import Literal

from dreamgym_envs.domains.webshop.records import clean
from dreamgym_envs.domains.webshop.words import word_set

__all__ = ["OPTION_NAMES", "PAGE_SIZE", "SUB_PAGES", "Listing", "Page", "read", "render"]

PAGE_SIZE = 10
"""Products on a page of results."""

SUB_PAGES = ("description", "features", "reviews")
"""Sub-pages of an item, as their buttons are called in lower case."""

OPTION_NAMES = word_set("option names")
"""Names of options in the original's catalogue."""

_SEPARATOR = " [SEP] "
_RESULTS = re.compile(r"Page (\d+) \(Total results: (\d+)\)")
_SCORE = "Your score (min 0.0, max 1.0)"
_THANKS = "Thank you for shopping with us!"
_BUTTONS = ("Description", "Features", "Reviews")


@dataclass(frozen=True, slots=True)
class Listing:
    """A product on a page of results.

    Attributes:
        asin: Its id, upper case.
        title: Its name.
        price: Its price tag, such as "$24.46" or "$20.66 to $29.2".
    """

    asin: str
    title: str
    price: str


@dataclass(frozen=True, slots=True)
class Page:
    """What the shop shows. Only what belongs to the kind of page is filled in.

    Attributes:
        kind: One of the five kinds; "detail" is an item's sub-page.
        instruction: The task, on all pages but the last.
        number: Number of the page of results, from 1.
        total: How many products were found.
        listings: Products on the page of results.
        title: Title of the open item.
        price: Its price tag.
        rating: Its rating, "N.A." without any.
        options: Name and values of its options.
        lines: Strings of a sub-page.
        score: The reward, on the last page.
    """

    kind: Literal["search", "results", "item", "detail", "done"]
    instruction: str = ""
    number: int = 0
    total: int = 0
    listings: tuple[Listing, ...] = ()
    title: str = ""
    price: str = ""
    rating: str = ""
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    lines: tuple[str, ...] = ()
    score: float = 0.0

    def has_next(self) -> bool:
        """Return whether more results follow on another page."""
        return self.kind == "results" and self.number * PAGE_SIZE < self.total


def render(page: Page) -> str:
    """Return a page as the original's text mode shows it.

    Example:
        >>> render(Page("search", instruction="find me a red shirt"))
        'WebShop [SEP] Instruction: [SEP] find me a red shirt [SEP] Search'
    """
    if page.kind == "done":
        return _SEPARATOR.join((_THANKS, "Your code:", "None", _SCORE, str(page.score)))
    parts = ["Instruction:", page.instruction]
    if page.kind == "search":
        return _SEPARATOR.join(("WebShop", *parts, "Search"))
    parts.append("Back to Search")
    if page.kind == "results":
        parts.append(f"Page {page.number} (Total results: {page.total})")
        parts += ["< Prev"] * (page.number > 1) + ["Next >"] * page.has_next()
        for listing in page.listings:
            parts += (listing.asin, listing.title, listing.price)
        return _SEPARATOR.join(parts)
    parts.append("< Prev")
    if page.kind == "detail":
        return _SEPARATOR.join((*parts, *page.lines))
    for name, values in page.options:
        parts += (name, *values)
    parts += (page.title, f"Price: {page.price}", f"Rating: {page.rating}", *_BUTTONS, "Buy Now")
    return _SEPARATOR.join(parts)


def read(text: str) -> Page:
    """Return the page that a text of the original shows.

    Raises:
        ValueError: It shows none.

    Example:
        >>> read("WebShop [SEP] Instruction: [SEP] find me a red shirt [SEP] Search").kind
        'search'
    """
    parts = [clean(part) for part in text.split(_SEPARATOR.strip())]
    if parts[0] == _THANKS:
        return Page("done", score=_score(parts, text))
    parts = parts[parts[0] == "WebShop" :]
    if len(parts) < 3 or parts[0] != "Instruction:":
        raise _unreadable(text)
    instruction, rest = parts[1], parts[2:]
    if rest == ["Search"]:
        return Page("search", instruction)
    if rest[0] != "Back to Search" or len(rest) < 2:
        raise _unreadable(text)
    if found := _RESULTS.fullmatch(rest[1]):
        number, total = int(found[1]), int(found[2])
        return Page("results", instruction, number, total, _listings(rest[2:], text))
    if rest[1] != "< Prev":
        raise _unreadable(text)
    rest = rest[2:]
    if rest[-4:] == [*_BUTTONS, "Buy Now"]:
        return _item(instruction, rest[:-4], text)
    return Page("detail", instruction, lines=tuple(rest))


def _unreadable(text: str) -> ValueError:
    return ValueError(f"no page of the shop: {text!r:.300}")


def _score(parts: list[str], text: str) -> float:
    try:
        return float(parts[parts.index(_SCORE) + 1])
    except (ValueError, IndexError) as error:
        raise ValueError(f"no score after {_SCORE!r} on the last page: {text!r:.300}") from error


def _listings(parts: list[str], text: str) -> tuple[Listing, ...]:
    while parts and parts[0] in ("< Prev", "Next >"):
        parts = parts[1:]
    if len(parts) % 3 or not all(price.startswith("$") for price in parts[2::3]):
        raise _unreadable(text)
    return tuple(
        Listing(asin.upper(), title, price)
        for asin, title, price in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    )


def _item(instruction: str, parts: list[str], text: str) -> Page:
    if len(parts) < 3 or not parts[-2].startswith("Price: ") or not parts[-1].startswith("Rating: "):
        raise _unreadable(text)
    options: list[tuple[str, list[str]]] = []
    for part in parts[:-3]:
        if not options or part in OPTION_NAMES:
            options.append((part, []))
        else:
            options[-1][1].append(part)
    return Page(
        "item",
        instruction,
        title=parts[-3],
        price=parts[-2].removeprefix("Price: "),
        rating=parts[-1].removeprefix("Rating: "),
        options=tuple((name, tuple(values)) for name, values in options),
    )
