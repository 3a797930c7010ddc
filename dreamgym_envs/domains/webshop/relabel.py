"""Hindsight relabelling: a real purchase as if something else had been asked for.

Two requirements can be changed with everything else as it is: the pages, what they bear out, and the other parts of the
reward. The price limit is moved to the other side of the bought item's price. The value of an option that the
instruction names is replaced by another one of the bought item: by the one that was chosen, if that was wrong. So the
same purchase is told as a success and as a near miss.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dreamgym_envs.core.types import Task, Trajectory
from dreamgym_envs.domains.webshop.instructions import evidence, price_limit
from dreamgym_envs.domains.webshop.needs import asked_values, prices
from dreamgym_envs.domains.webshop.verdict import Verdict, verdicts
from dreamgym_envs.domains.webshop.views import chosen_of, open_item

__all__ = ["relabel"]

_LIMIT = re.compile(r"[\d.]+(?= dollars\W*$)")
_STEP = 10.0


def relabel(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
    """Return an episode with another price limit or another asked value, whichever `rng` draws, or what is possible.

    None if nothing was bought, if neither is possible, or if the reward does not tell what it would have been.
    """
    if not trajectory.steps or not trajectory.steps[-1].terminated:
        return None
    ways = [_other_limit, _other_value]
    for way in rng.permutation(len(ways)):
        found = ways[int(way)](trajectory, rng)
        if found is not None:
            return found
    return None


def _other_limit(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
    """Return an episode with its price limit on the other side of the bought item's price."""
    task, item = trajectory.task, open_item(trajectory.steps[-1].state)
    limit = price_limit(task.instruction)
    if item is None or limit is None or not prices(item["price"]):
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
    asked = replace(
        task,
        id=f"{task.id}/{other:.2f}",
        instruction=_LIMIT.sub(f"{other:.2f}", task.instruction),
        metadata={**task.metadata, "price_upper": other},
    )
    return _paid(trajectory, asked, lambda verdict: replace(verdict, price=met))


def _other_value(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
    """Return an episode whose instruction asks for another value of an option of the bought item."""
    task, state = trajectory.task, trajectory.steps[-1].state
    item, goal = open_item(state), task.metadata
    if item is None or not {"attributes", "options"} <= goal.keys():
        return None
    from dreamgym_envs.domains.webshop.reward import option_met

    chosen = chosen_of(state)
    asked = [(name, value) for name, value in asked_values(task.instruction, item["options"]).items()]
    asked = [(name, value) for name, value in asked if value in goal["options"] and name in chosen]
    if not asked:
        return None
    name, value = asked[int(rng.integers(len(asked)))]
    values = next(option["values"] for option in item["options"] if option["name"] == name)
    others = [chosen[name]] if chosen[name] != value else [other for other in values if other != value]
    if not others:
        return None
    other = others[int(rng.integers(len(others)))]
    instruction, count = re.subn(rf"(?<![\w-]){re.escape(value)}(?![\w-])", lambda _: other, task.instruction)
    options = tuple(other if option == value else option for option in goal["options"])
    if count != 1 or any(value in words for words in goal["attributes"]) or len(set(options)) != len(options):
        return None
    changed = replace(
        task, id=f"{task.id}/{other}", instruction=instruction, metadata={**task.metadata, "options": options}
    )
    if asked_values(instruction, item["options"]).get(name) != other or not _same_evidence(trajectory, changed):
        return None
    met = {option: option_met(chosen.values(), option) for option in options}
    return _paid(trajectory, changed, lambda verdict: replace(verdict, options=met))


def _same_evidence(trajectory: Trajectory, task: Task) -> bool:
    """Return whether all that was read bears out of another task's instruction what it did of the episode's own."""
    states = [step.state.public for step in trajectory.steps]
    texts = {state["text"] for state in states}
    texts |= {item["title"] for item in states[-1]["items"] if item["status"] == "opened"}
    return all(evidence(trajectory.task.instruction, text) == evidence(task.instruction, text) for text in texts)


def _paid(trajectory: Trajectory, task: Task, judge: Callable[[Verdict], Verdict]) -> Trajectory | None:
    """Return an episode with another task and the reward that `judge` gives; None if that leaves more than one."""
    *before, last = (replace(step, reasoning="") for step in trajectory.steps)
    judged = (judge(found).total for found in verdicts(trajectory.task, last.state, last.reward))
    paid = {round(total, 9): total for total in judged}
    if len(paid) != 1:
        return None
    return replace(trajectory, task=task, steps=(*before, replace(last, reward=paid.popitem()[1])))
