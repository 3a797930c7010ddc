"""The shop: the original's five kinds of pages and what leads from one to the other, in this process.

Followed to the letter: search works from every page; 50 products are found at most, ten a page; going back from an item
to the results drops the chosen options, going back from a sub-page keeps them; a click on what is not on the page, or a
search for nothing, leaves the page as it is; a value that two options share counts for the later one; buying ends the
episode and is the only thing that is rewarded.

Left out: the searches "<r>", "<a>", "<c>" and "<q>", with which the original's authors looked at their data, and the
attributes page, which the original has only on request.
"""

from dataclasses import dataclass
from functools import lru_cache

from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop.catalogue import Shelf
from dreamgym_envs.domains.webshop.goals import SPLITS, Goal
from dreamgym_envs.domains.webshop.grammar import parse
from dreamgym_envs.domains.webshop.pages import PAGE_SIZE, SUB_PAGES, Listing, Page
from dreamgym_envs.domains.webshop.products import Product
from dreamgym_envs.domains.webshop.reward import Reward, reward

__all__ = ["Outcome", "Shop"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a click or a search led to.

    Attributes:
        page: The page that is shown.
        reward: The reward, None unless something was bought.
    """

    page: Page
    reward: Reward | None = None

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.reward is not None


class Shop:
    """A shop with one customer.

    Args:
        products: The catalogue.
        split: Of this split and of training it sells the products; those held out for others are not found.

    Example:
        >>> shop = Shop(read_catalogue(*generate()), "test")  # doctest: +SKIP
        >>> shop.enter(goal).kind                             # doctest: +SKIP
        'search'
        >>> shop.act("search[red shirt]").page.total          # doctest: +SKIP
        50
    """

    def __init__(self, products: Shelf, split: str = SPLITS[0]) -> None:
        self._products = products
        index, sold = products.search_index, products.sold(split)
        # Many searches of an agent in training are the same, and so are the items that it sees.
        self._search = lru_cache(maxsize=1 << 12)(lambda keywords: index.search(keywords, sold))
        self._listing = lru_cache(maxsize=1 << 14)(lambda i: _listing(products[i]))
        self._goal: Goal | None = None

    def enter(self, goal: Goal) -> Page:
        """Start an episode; return the search page."""
        self._goal = goal
        self._hits: tuple[int, ...] = ()
        self._shown: dict[str, int] = {}
        self._number = 0
        self._item: Product | None = None
        self._chosen: dict[str, str] = {}
        self._page = Page("search", goal.instruction)
        return self._page

    @property
    def chosen(self) -> dict[str, str]:
        """Chosen values of the open item by option; text pages of the original do not show them."""
        return dict(self._chosen)

    def act(self, text: str) -> Outcome:
        """Take an action; what cannot be done leaves the page as it is.

        Raises:
            RuntimeError: No episode is running.
        """
        if self._goal is None or self._page.kind == "done":
            raise RuntimeError("no episode is running; call enter first")
        action = parse(text)
        page = self._follow(action) if action is not None else None
        if page is not None:
            self._page = page
        if self._page.kind != "done":
            return Outcome(self._page)
        assert self._item is not None
        earned = reward(self._goal, self._item, self._chosen)
        self._page = Page("done", score=earned.total)
        return Outcome(self._page, earned)

    def _follow(self, action: Action) -> Page | None:
        """Return the page that an action leads to; None if the open page does not have what is clicked."""
        page, verb = self._page, action.verb
        if verb == "search":
            self._hits = self._search(action.arguments[0])
            return self._results(1)
        if verb == "back":
            return self._leave() if page.kind != "search" else None
        if page.kind == "results":
            if verb == "next":
                return self._results(self._number + 1) if page.has_next() else None
            if verb == "prev":
                return self._results(self._number - 1) if self._number > 1 else None
            return self._open(action.arguments[0]) if verb == "click" else None
        if page.kind == "item":
            if verb == "prev":
                return self._results(self._number)
            if verb in SUB_PAGES:
                return self._sub_page(verb)
            if verb == "buy":
                return Page("done")
            return self._choose(action.arguments[0]) if verb == "click" else None
        return self._item_page() if page.kind == "detail" and verb == "prev" else None

    def _leave(self) -> Page:
        assert self._goal is not None
        return self.enter(self._goal)

    def _results(self, number: int) -> Page:
        self._number, self._item, self._chosen = number, None, {}
        hits = self._hits[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        listings = tuple(self._listing(hit) for hit in hits)
        self._shown = {listing.asin.lower(): hit for listing, hit in zip(listings, hits, strict=True)}
        return Page("results", self._page.instruction, number, len(self._hits), listings)

    def _open(self, element: str) -> Page | None:
        if element not in self._shown:
            return None
        self._item = self._products[self._shown[element]]
        return self._item_page()

    def _item_page(self) -> Page:
        assert self._item is not None
        item = self._item
        return Page(
            "item",
            self._page.instruction,
            title=item.title,
            price=item.price_tag,
            rating=item.rating,
            options=tuple(item.options.items()),
        )

    def _choose(self, value: str) -> Page | None:
        assert self._item is not None
        names = [name for name, values in self._item.options.items() if value in values]
        if not names:
            return None
        self._chosen[names[-1]] = value
        return self._page

    def _sub_page(self, name: str) -> Page:
        assert self._item is not None
        if name == "description":
            lines: tuple[str, ...] = (self._item.description,)
        elif name == "features":
            lines = self._item.bullets
        else:
            lines = tuple(
                line for review in self._item.reviews for line in (f'"{review.title}"', str(review.score), review.body)
            ) or ("No reviews found",)
        return Page("detail", self._page.instruction, lines=lines)


def _listing(product: Product) -> Listing:
    return Listing(product.asin, product.title, product.price_tag)
