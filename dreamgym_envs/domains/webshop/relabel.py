"""Hindsight relabelling: a real purchase as if another price limit had been set.

The limit is the one requirement whose change leaves everything else as it is: the pages, what they bear out, and the
other parts of the reward. It is moved to the other side of the bought item's price, so that the same purchase is told
with the price met and with the price missed.
"""

import re
from dataclasses import replace

import numpy as np

from dreamgym_envs.core.types import Trajectory
from dreamgym_envs.domains.webshop.instructions import price_limit
from dreamgym_envs.domains.webshop.needs import open_item, prices
from dreamgym_envs.domains.webshop.verdict import verdicts

__all__ = ["relabel"]

_LIMIT = re.compile(r"[\d.]+(?= dollars\W*$)")
_STEP = 10.0


def relabel(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
    """Return an episode with its price limit on the other side of the bought item's price.

    None if nothing was bought, if there is no limit or no room below the price, or if the reward does not tell what
    another price limit would have paid.
    """
    last = trajectory.steps[-1] if trajectory.steps else None
    limit = price_limit(trajectory.task.instruction)
    item = open_item(last.state) if last is not None else None
    if last is None or not last.terminated or item is None or limit is None or not prices(item["price"]):
        return None
    low, high = min(prices(item["price"])), max(prices(item["price"]))
    steps = int(rng.integers(1, 5))
    if limit >= high:
        other = _STEP * ((low - 0.01) // _STEP) - _STEP * (steps - 1)
        other = max(other, _STEP)
    else:
        other = _STEP * (high // _STEP) + _STEP * steps
    met = high <= other
    if low <= limit < high or low <= other < high or met == (high <= limit):
        return None
    paid = {round(replace(found, price=met).total, 9) for found in verdicts(trajectory.task, last.state, last.reward)}
    if len(paid) != 1:
        return None
    task = replace(
        trajectory.task,
        id=f"{trajectory.task.id}/{other:.2f}",
        instruction=_LIMIT.sub(f"{other:.2f}", trajectory.task.instruction),
        metadata={**trajectory.task.metadata, "price_upper": other},
    )
    steps_before = tuple(replace(step, reasoning="") for step in trajectory.steps[:-1])
    return replace(trajectory, task=task, steps=(*steps_before, replace(last, reward=paid.pop(), reasoning="")))
