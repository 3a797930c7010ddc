"""Web pages of the original's site, read: what they show as a `Page`, and where their buttons lead.

The site's templates have come in a few wordings ("< Prev", "< Back to Results"); all are read. Where a click leads is
taken from the page itself, so that nothing here depends on how the site names its addresses.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser

from dreamgym_envs.domains.webshop.grammar import BUTTONS
from dreamgym_envs.domains.webshop.pages import Listing, Page
from dreamgym_envs.domains.webshop.records import LONGEST_NAME, LONGEST_TITLE, LONGEST_VALUE, clean

__all__ = ["SitePage", "read_html"]

_RESULTS = re.compile(r"Page (\d{1,2}) \((?:[\d-]+\) of (\d{1,3}) total results|Total results: (\d{1,3})\))")
_THANKS = "Thank you for shopping with us!"
_SCORE = "Your score"
_SILENT = frozenset({"script", "style", "title"})
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page of the site.

    Attributes:
        page: What it shows.
        links: Address by what is clicked: a verb of `grammar.BUTTONS`, an item's id or an option's value, lower case.
    """

    page: Page
    links: Mapping[str, str]


def read_html(html: str) -> SitePage:
    """Return what a web page of the site shows.

    Raises:
        ValueError: It is no page of the shop.
    """
    document = _Document()
    document.feed(html)
    document.close()
    texts = [text for text, _ in document.texts]
    if _THANKS in texts:
        return SitePage(Page("done", score=_score(texts)), {})
    instruction, buttons = _instruction(texts), document.buttons
    if "buy" in buttons:
        page = _item(document, instruction)
    elif found := next(filter(None, map(_RESULTS.fullmatch, texts)), None):
        page = Page("results", instruction, int(found[1]), int(found[2] or found[3]), _listings(document))
    elif document.searchable:
        page = Page("search", instruction)
    elif "back" in buttons and "prev" in buttons:
        page = Page("detail", instruction, lines=tuple(texts[document.start :]))
    else:
        raise ValueError("it has none of the shop's buttons")
    return SitePage(page, {**document.things, **buttons})


class _Document(HTMLParser):
    """A web page's visible texts with what marks them, and what can be clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []  # each with class or tag of the element that was opened last before it
        self.buttons: dict[str, str] = {}  # address by verb
        self.things: dict[str, str] = {}  # address by item or value
        self.options: dict[str, dict[str, None]] = {}  # values by option
        self.searchable = False
        self.start = 0  # where the texts behind the button back begin
        self._mark = self._action = self._link = ""
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "input":
            self._input(found)
        if tag in _VOID:
            return
        self._silent += tag in _SILENT
        self._mark = found.get("class", "") or tag
        if tag == "form":
            self._action = found.get("action", "")
        elif tag == "a":
            self._link = found.get("href", "")
        elif tag == "button":
            self._mark = "button"
        elif tag == "h2":
            self._mark = "h2"

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in _SILENT and self._silent > 0

    def handle_data(self, data: str) -> None:
        text = clean(data)
        if not text or self._silent:
            return
        self.texts.append((text, self._mark))
        if self._mark == "button":
            # The way back is called after where it leads: "< Prev", "< Back to Results", "< Back to Item Page".
            verb = "prev" if text.startswith("<") else BUTTONS.get(text.lower())
            if verb is not None:
                self.buttons[verb] = self._action
            if verb == "prev":
                self.start = len(self.texts)
        elif "product-link" in self._mark:
            self.things[text.lower()] = self._link

    def _input(self, found: Mapping[str, str]) -> None:
        self.searchable = self.searchable or found.get("name") == "search_query"
        if found.get("type") == "radio":
            value = clean(found.get("value", ""), LONGEST_VALUE)
            self.options.setdefault(clean(found.get("name", ""), LONGEST_NAME), {})[value] = None
            self.things[value.lower()] = found.get("data-url", "")


def _instruction(texts: list[str]) -> str:
    for place, text in enumerate(texts[:-1]):
        if text.startswith("Instruction:"):
            return text.removeprefix("Instruction:").strip() or texts[place + 1]
    raise ValueError("it shows no instruction")


def _score(texts: list[str]) -> float:
    place = next((i for i, text in enumerate(texts[:-1]) if text.startswith(_SCORE)), None)
    try:
        score = float(texts[place + 1]) if place is not None else math.nan
    except ValueError:
        score = math.nan
    if not 0 <= score <= 1:
        raise ValueError("its last page shows no score between 0 and 1")
    return score


def _listings(document: _Document) -> tuple[Listing, ...]:
    found: list[list[str]] = []
    for text, mark in document.texts:
        if "product-link" in mark:
            found.append([text.upper(), "", ""])
        elif found and "product-title" in mark:
            found[-1][1] = text[:LONGEST_TITLE]
        elif found and "product-price" in mark:
            found[-1][2] = text
    if not all(price.startswith("$") for _, _, price in found):
        raise ValueError("a product among its results has no price")
    return tuple(Listing(*parts) for parts in found)


def _item(document: _Document, instruction: str) -> Page:
    shown = dict(text.split(": ", 1) for text, _ in document.texts if text.startswith(("Price: ", "Rating: ")))
    title = next((text for text, mark in document.texts if mark == "h2"), None)
    if title is None or "Price" not in shown:
        raise ValueError("its item has no title or no price")
    return Page(
        "item",
        instruction,
        title=title[:LONGEST_TITLE],
        price=shown["Price"],
        rating=shown.get("Rating", "N.A."),
        options=tuple((name, tuple(values)) for name, values in document.options.items()),
    )
