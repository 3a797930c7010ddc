"""The real shop behind the domain's contract: actions in, abstract states out."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.webshop import text
from dreamgym_envs.domains.webshop.catalogue import Shelf, read_catalogue
from dreamgym_envs.domains.webshop.generator import generate
from dreamgym_envs.domains.webshop.goals import SPLITS, Goal, goals_of
from dreamgym_envs.domains.webshop.shop import Shop
from dreamgym_envs.domains.webshop.store import open_store

__all__ = ["WebShopEngine"]


class WebShopEngine:
    """WebShop in this process, one episode at a time; an `Engine` of domains/base.

    Of a split's shop the goals are those of the split's products. Validation and test products are for sale only in
    the shop of their own split, beside all the training products, so that no training episode ever shows one.

    Files of the original are read once and indexed on disk (`store.open_store`); later engines open that.

    Args:
        products: The original's product file; by default the generated catalogue.
        attributes: The original's attribute file.
        instructions: The original's file of human instructions.
        store: Folder for what was read of the files; by default beside the product file.
        split: "train", "valid" or "test".
        count: Most goals; all of the split by default.

    Raises:
        ImportError: The extra "webshop" is not installed.
        FileNotFoundError: A file is missing.
        CatalogueError: A file cannot be read.
        OSError: The store cannot be written.
        ValueError: There is no such split, it has no goals, files are given without `products`, or the store's folder
            holds something else.

    Example:
        >>> engine = WebShopEngine(split="test")                        # doctest: +SKIP
        >>> task = engine.reset(np.random.default_rng(0))               # doctest: +SKIP
        >>> state, reward, terminated = engine.step("search[red shirt]") # doctest: +SKIP
    """

    def __init__(
        self,
        products: str | Path | None = None,
        attributes: str | Path | None = None,
        instructions: str | Path | None = None,
        store: str | Path | None = None,
        split: str = "test",
        count: int | None = None,
    ) -> None:
        if split not in SPLITS:
            raise ValueError(f"no split {split!r}; there are: {', '.join(SPLITS)}")
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ValueError(f"count is {count!r}; expected at least 1 goal, or None for all of the split")
        if products is None and (attributes is not None or instructions is not None):
            raise ValueError("attributes or instructions without products; give products= as well, or none of them")
        files = (products, attributes, instructions, store)
        self._shelf = _shelf(*(None if path is None else Path(path) for path in files))
        self._split = split
        self.task_ids: Sequence[str] = tuple(f"{split}-{goal}" for goal in self._shelf.goal_ids(split)[:count])
        if not self.task_ids:
            raise ValueError(
                f"no goals in the split {split!r}: none of its products has an instruction with attributes; "
                "give instructions= (items_human_ins.json) or attributes= with instructions (items_ins_v2.json)"
            )
        self._known = frozenset(self.task_ids)
        self.shop = Shop(self._shelf, split)
        self._state: State | None = None

    def reset(self, rng: np.random.Generator, task_id: str | None = None) -> Task:
        """Start an episode for the given goal, or for one drawn with `rng`.

        Raises:
            ValueError: There is no such goal.
        """
        if task_id is None:
            task_id = self.task_ids[int(rng.integers(len(self.task_ids)))]
        goal = self.goal(task_id)
        self._state = text.initial_state(self.shop.enter(goal))
        return Task(
            id=task_id,
            instruction=goal.instruction,
            initial=self._state,
            family=goal.kind,
            metadata={
                "asin": goal.product.asin,
                "attributes": goal.attributes,
                "options": goal.options,
                "price_upper": goal.price_upper,
            },
        )

    def step(self, action: str) -> tuple[State, float, bool]:
        """Take an action; return the next state, the reward of a purchase (else 0), and whether the episode is over."""
        if self._state is None:
            raise RuntimeError("no episode is running; call reset first")
        outcome = self.shop.act(action)
        state = text.observe(self._state, action, outcome.page)
        self._state = None if outcome.done else state
        return state, outcome.reward.total if outcome.reward is not None else 0.0, outcome.done

    def goal(self, task_id: str) -> Goal:
        """Return the goal behind a task; for players that know better than the agent, and for measuring.

        Raises:
            ValueError: There is no such goal.
        """
        if task_id not in self._known:
            raise ValueError(f"no goal {task_id!r}; there are {len(self.task_ids)}, the first is {self.task_ids[0]!r}")
        identity = task_id.removeprefix(f"{self._split}-")
        asin, _, number = identity.rpartition("-")
        return next(islice(goals_of(self._shelf.find(asin), self._shelf.human), int(number), None))

    def close(self) -> None:
        """End the episode; products and index stay for the process's other shops."""
        self._state = None


@lru_cache(maxsize=4)
def _shelf(products: Path | None, attributes: Path | None, instructions: Path | None, store: Path | None) -> Shelf:
    """Return the catalogue of some files, or the generated one: once a process, for all its engines."""
    if products is None:
        return read_catalogue(*generate())
    return open_store(products, attributes, instructions, store)
