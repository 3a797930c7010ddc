"""Which steps show what nothing before them could tell: not even a perfect model can be right about those."""

from dreamgym_envs.core.types import Transition
from dreamgym_envs.domains.alfworld.grammar import FAILURE, parse

_LOOKS = frozenset({"go", "open", "examine", "look", "inventory"})
"""Verbs that change nothing in a receptacle: contents that differ after them were not as believed."""


def reveals(transition: Transition) -> bool:
    """Return whether a transition reveals something hidden.

    Hidden are how an unseen receptacle is and what a closed one holds; which receptacles share a place, until the agent
    has reached them from there; and, in some official games, that a thing is not where it was listed first.
    """
    before, after = transition.state.public, transition.next_state.public
    action = parse(transition.action)
    verb = action.verb if action is not None else ""
    arrived = verb == "go" and after["feedback"] != FAILURE
    if not arrived and set(after["location"]) - set(before["location"]):
        return True
    for old, new in zip(before["receptacles"], after["receptacles"], strict=True):
        if old is new or old == new:
            continue
        if old["status"] == "unseen" or (old["status"] == "closed" and new["status"] != "closed"):
            return True
        if verb in _LOOKS and old["contents"] != new["contents"]:
            return True
    return False
