"""Scripted shoppers: who plays to measure dreams against reality, and who makes training data.

"expert", "noisy" and "random" are for measuring, in dreams as in the real shop. "nearmiss" is for recording: it buys
what almost fits, so that a model learns what success is not. All of them act on instruction and public state alone and
draw every choice from the generator that they are given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from dreamgym_envs.core.types import JSON, State, Task
from dreamgym_envs.domains.base import Player
from dreamgym_envs.domains.webshop.grammar import FAILURE, candidates, click
from dreamgym_envs.domains.webshop.instructions import kind, phrases, queries
from dreamgym_envs.domains.webshop.needs import Fit, fit
from dreamgym_envs.domains.webshop.views import chosen_of, has_next, listed, open_item, place

__all__ = ["PLAYERS", "Expert", "NearMiss", "Noisy", "Random", "player"]

T = TypeVar("T")

_MOST_OPENED = 6
"""Items that the expert opens before it buys the best of them."""

_MOST_PAGES = 2
"""Pages of results that the expert looks at."""

_MOST_QUERIES = 3
"""Queries that the expert tries."""

_RANK = 0.9
"""How much less an item promises than the one above it: the search has read the texts that the results do not show."""

_READ = ("features", "description")
"""Sub-pages that can bear out an attribute, the likelier first; what customers write counts for nothing."""


class Random:
    """Takes any candidate action, all alike."""

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Get ready for a task."""
        self._task, self._rng = task, rng

    def act(self, state: State) -> str:
        """Return the next action."""
        return _pick(self._rng, candidates(self._task, state))


class Expert:
    """Searches for what the instruction says, compares items, and buys the best.

    It opens the most promising item of the results, reads the sub-pages while something is not borne out, chooses the
    asked values, and buys if nothing is missing. Otherwise it goes back to the next one, and after six items to the
    best of them. An action that failed is followed by any other.
    """

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Forget the last episode and get ready for a task."""
        self.task, self.rng = task, rng
        self._queries = list(_queries(task.instruction))
        self._best: _Judged | None = None
        self._judged: set[str] = set()

    def act(self, state: State) -> str:
        """Return the next action."""
        return self.any(state) if state.public["feedback"] == FAILURE else self.choose(state)

    def choose(self, state: State) -> str:
        """Return the next action towards the goal."""
        page = state.public["page"]
        if page == "search":
            return self._search(state)
        if page == "results":
            return self._compare(state)
        item = open_item(state)
        return self.judge(state, item) if page == "item" and item is not None else click("< prev")

    def any(self, state: State) -> str:
        """Return any candidate action."""
        return _pick(self.rng, candidates(self.task, state))

    def judge(self, state: State, item: Mapping[str, JSON]) -> str:
        """Return the next action on an item's page."""
        found, best = self.fit(item), self._best
        unread = [name for name in _READ if name not in item["read"]]
        if found.price and found.missing and unread:
            return click(unread[0])
        if item["id"] not in self._judged:
            self._judged.add(item["id"])
            if best is None or found.score > best.score:
                self._best = best = _Judged(item["id"], found.score, state.public["query"])
        if found.complete or (self._over() and best is not None and best.id == item["id"]):
            return self.purchase(state, item)
        return click("< prev")

    def purchase(self, state: State, item: Mapping[str, JSON]) -> str:
        """Return the next action to buy the open item: a choice that is still to be made, or the button."""
        chosen = chosen_of(state)
        left = [value for name, value in self.wanted(item).items() if chosen.get(name) != value]
        return click(left[0] if left else "buy now")

    def wanted(self, item: Mapping[str, JSON]) -> Mapping[str, str]:
        """Return the values to choose by name of the option."""
        return self.fit(item).values

    def fit(self, item: Mapping[str, JSON]) -> Fit:
        """Return how well an item answers the instruction."""
        return fit(self.task.instruction, item)

    def _over(self) -> bool:
        """Return whether enough was compared."""
        return len(self._judged) >= _MOST_OPENED or not self._queries

    def _search(self, state: State) -> str:
        """Return the next query, or the one that found the best item."""
        if self._over() and self._best is not None:
            return f"search[{self._best.query}]"
        return f"search[{self._queries[0]}]" if self._queries else self.any(state)

    def _compare(self, state: State) -> str:
        """Return the next action among results."""
        if self._over() and self._best is not None:
            return self._return_to(self._best, state)
        here = [item for item in listed(state) if item["id"] not in self._judged]
        fits = [(self.fit(item), rank, item["id"]) for rank, item in enumerate(here)]
        # Where no query found anything within the limit, something over it has to do.
        promising = [(found.score * _RANK**rank, key) for found, rank, key in fits if found.price or not self._queries]
        if promising:
            return click(max(promising)[1])
        if has_next(state) and state.public["page_number"] < _MOST_PAGES:
            return click("next >")
        self._queries = self._queries[1:]
        return click("back to search")

    def _return_to(self, best: "_Judged", state: State) -> str:
        """Return the next action on the way to the best item."""
        number, page = state.public["page_number"], place(state, best.id)
        if page:
            return click(best.id if page == number else "next >" if page > number else "< prev")
        if state.public["query"] != best.query:
            return click("back to search")
        # The same search no longer shows it, as can happen in a dream: what is first there has to do.
        self._best = None
        here = listed(state)
        return click(here[0]["id"] if here else "back to search")


@dataclass(frozen=True, slots=True)
class _Judged:
    """An item that was looked at, what buying it may bring, and the query that found it."""

    id: str
    score: float
    query: str


class Noisy(Expert):
    """The expert, who now and then takes any candidate action instead.

    Args:
        noise: How often, between 0 and 1.
    """

    def __init__(self, noise: float = 0.4) -> None:
        self.noise = noise

    def choose(self, state: State) -> str:
        """Return the next action."""
        return self.any(state) if self.rng.random() < self.noise else super().choose(state)


class NearMiss(Expert):
    """Buys what almost fits.

    What it does wrong, drawn for each episode: "option", another value of some options, or none; "price", an item over
    the limit if one is found; "type", another kind of thing, found by a query without the kind; "attribute", the
    first item that lacks something; "chance", any item on the page with any values.
    """

    MISTAKES: ClassVar[tuple[str, ...]] = ("option", "price", "type", "attribute", "chance")

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        """Forget the last episode and get ready for a task."""
        super().reset(task, rng)
        self._mistake = _pick(rng, self.MISTAKES)
        self._values: dict[str, dict[str, str]] = {}
        if self._mistake == "type":
            what = kind(task.instruction)
            others = [piece for piece in phrases(task.instruction) if piece != what]
            self._queries = [_pick(rng, [*others, " ".join(what.split()[:-1]) or what])]

    def fit(self, item: Mapping[str, JSON]) -> Fit:
        """Return how well an item answers the instruction, with this episode's mistake."""
        found = super().fit(item)
        if self._mistake == "price":
            return replace(found, price=not found.price)
        if self._mistake == "type":
            return replace(found, kind=1.0 - found.kind)
        return found

    def judge(self, state: State, item: Mapping[str, JSON]) -> str:
        """Return the next action on an item's page: the first that is opened is bought, or the one that is missing."""
        found = super().fit(item)
        if self._mistake in ("type", "chance") or (self._mistake == "attribute" and found.missing):
            return self.purchase(state, item)
        return super().judge(state, item)

    def wanted(self, item: Mapping[str, JSON]) -> Mapping[str, str]:
        """Return the values to choose by name of the option."""
        if self._mistake not in ("option", "chance"):
            return super().wanted(item)
        if item["id"] not in self._values:
            self._values[item["id"]] = self._wrong(item)
        return self._values[item["id"]]

    def _wrong(self, item: Mapping[str, JSON]) -> dict[str, str]:
        """Return values of which at least one, where there are any, is another one than asked, or left out."""
        values = dict(super().wanted(item))
        spoilt = _pick(self.rng, [option["name"] for option in item["options"] if option["name"] in values] or [""])
        for option in item["options"]:
            name = option["name"]
            others = [value for value in option["values"] if value != values.get(name)]
            if name != spoilt and self.rng.random() < 0.7:
                continue
            if others and self.rng.random() < 0.7:
                values[name] = _pick(self.rng, others)
            else:
                values.pop(name, None)
        return values


def _queries(instruction: str) -> tuple[str, ...]:
    """Return the expert's queries: all requirements, everything, the kind alone, what else there is."""
    found = queries(instruction)
    every = " ".join(phrases(instruction))
    return tuple(dict.fromkeys([*(q for q in found if q == every), *found[-1:], *found]))[:_MOST_QUERIES]


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


PLAYERS: Mapping[str, Callable[[], Player]] = {
    "expert": Expert,
    "noisy": Noisy,
    "random": Random,
    "nearmiss": NearMiss,
}
"""Players by kind."""


def player(name: str) -> Player:
    """Return a player of a kind.

    Raises:
        ValueError: There is no such kind.
    """
    if name not in PLAYERS:
        raise ValueError(f"no player {name!r}; there are: {', '.join(PLAYERS)}")
    return PLAYERS[name]()
