"""Skills: what a scripted player can set out to do, decided anew at every step from what it knows.

A skill returns the next action towards its end, or None when there is nothing (more) to do. It needs no memory of how
far it got, so players may be interrupted by noise. What is remembered is which actions failed, to try others first.
"""

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.domains.alfworld.grammar import FAILURE, LAMPS, STATIONS, kind
from dreamgym_envs.domains.alfworld.likely import OPENABLE, likelihood

__all__ = ["VERBS", "Skills"]

VERBS = {"clean": "clean", "hot": "heat", "cool": "cool"}
"""Flag to the verb that gives it."""

_ACCESSIBLE = ("open", "surface")
_EFFORT = 10.0
"""Steps that one more failure of an action is worth when actions are compared."""


class Skills:
    """A player's knowledge of one episode, and what it can do with it.

    Args:
        rng: Decides between what seems equally good.

    Attributes:
        rows: The receptacles by name.
        where: The receptacle of every object that is known and not held.
        held: The object in the hand.
        failed: How often an action was answered with failure.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.rows: dict[str, Mapping[str, JSON]] = {}
        self.where: dict[str, str] = {}
        self.held: Mapping[str, JSON] | None = None
        self.failed: Counter[str] = Counter()
        self._reach: tuple[str, ...] = ()
        self._origin: dict[str, str] = {}
        self._taste: dict[str, float] = {}

    def see(self, state: State, last: str | None) -> None:
        """Take in a state and whether the action that led to it failed."""
        public = state.public
        if last is not None and public["feedback"] == FAILURE:
            self.failed[last] += 1
        self.rows = {row["name"]: row for row in public["receptacles"]}
        self._reach = public["location"]
        self.held = public["holding"][0] if public["holding"] else None
        if self.held is not None and self.held["name"] in self.where:
            self._origin[self.held["name"]] = self.where[self.held["name"]]
        self.where = {item["name"]: row["name"] for row in public["receptacles"] for item in row["contents"]}

    # --- facts ---------------------------------------------------------------------------------------------------

    def holds(self, thing: str) -> bool:
        """Return whether the object in the hand is of a kind."""
        return self.held is not None and kind(self.held["name"]) == thing

    def flags(self, name: str) -> tuple[str, ...]:
        """Return the flags of a known object that is not held."""
        flags: tuple[str, ...] = next(
            item["flags"] for item in self.rows[self.where[name]]["contents"] if item["name"] == name
        )
        return flags

    def places(self, what: str) -> list[str]:
        """Return the receptacles of a kind, the easiest to put something into first."""
        return sorted((name for name in self.rows if kind(name) == what), key=self._access)

    def things(self, what: str) -> list[str]:
        """Return the known objects of a kind that are not held, the easiest to take first."""
        found = [name for name in self.where if kind(name) == what]
        return sorted(
            found,
            key=lambda name: self._access(self.where[name]) + self._trouble(f"take {name} from {self.where[name]}"),
        )

    def _access(self, place: str) -> float:
        """Return the steps until one can reach into a receptacle."""
        status = self.rows[place]["status"]
        steps = 0.0 if place in self._reach else 1.0 + self._trouble(f"go to {place}")
        if status in ("closed", "shut"):
            steps += 1.0 + self._trouble(f"open {place}")
        elif status == "unseen":
            steps += 1.1 if kind(place) in OPENABLE else 0.1
        return steps

    def _trouble(self, action: str) -> float:
        return _EFFORT * self.failed[action]

    # --- skills --------------------------------------------------------------------------------------------------

    def explore(self, things: Collection[str]) -> str | None:
        """Look into the receptacle nobody has looked into that promises most of some kinds of objects a step."""
        best, most = None, 0.0
        for name, row in self.rows.items():
            if row["status"] not in ("unseen", "closed"):
                continue
            action, steps = self._look_into(name, row["status"])
            if name not in self._taste:
                self._taste[name] = float(self.rng.uniform(0.9, 1.1))
            promise = sum(likelihood(thing, kind(name)) for thing in things) if things else 1.0
            promise *= self._taste[name] / (steps + self._trouble(action))
            if promise > most:
                best, most = action, promise
        return best

    def _look_into(self, name: str, status: str) -> tuple[str, float]:
        """Return the next action to see what is in a receptacle, and the steps that it will take."""
        if name not in self._reach:
            return f"go to {name}", 2.0 if status == "closed" or kind(name) in OPENABLE else 1.0
        if status == "closed" or (kind(name) in OPENABLE and not self.failed[f"open {name}"]):
            return f"open {name}", 1.0
        return f"examine {name}", 1.0

    def reach_into(self, place: str) -> str | None:
        """Go to a receptacle and open it."""
        if place not in self._reach:
            return f"go to {place}"
        status = self.rows[place]["status"]
        if status == "unseen":
            return self._look_into(place, status)[0]
        return None if status in _ACCESSIBLE else f"open {place}"

    def take(self, name: str) -> str | None:
        """Take a known object into the empty hand."""
        place = self.where[name]
        return self.reach_into(place) or f"take {name} from {place}"

    def hold(self, what: str, spare: Collection[str] = (), flag: str = "", also: Collection[str] = ()) -> str | None:
        """Get an object of a kind into the hand.

        Args:
            what: Kind of object.
            spare: Objects to leave where they are.
            flag: Flag that is wanted; objects that have it are preferred.
            also: Kinds to look out for while searching.
        """
        if self.holds(what):
            return None
        if self.held is not None:
            return self.drop()
        known = [name for name in self.things(what) if name not in spare]
        if known:
            return self.take(min(known, key=lambda name: flag not in self.flags(name)) if flag else known[0])
        return self.explore((what, *also))

    def drop(self) -> str | None:
        """Get rid of what is in the hand: here, where it came from, or on whatever is big and at hand."""
        if self.held is None:
            return None
        name = self.held["name"]
        origin = self._origin.get(name)
        ways = [place for place, row in self.rows.items() if row["status"] in _ACCESSIBLE or place == origin]
        if not ways:
            return self.explore(())
        place = min(
            ways,
            key=lambda place: (
                self._access(place)
                + self._trouble(f"move {name} to {place}")
                + (0.0 if place == origin else 1.0 / (1.0 + likelihood(kind(name), kind(place))))
            ),
        )
        return self.put(place)

    def put(self, place: str) -> str | None:
        """Put what is in the hand into a receptacle."""
        return None if self.held is None else self.reach_into(place) or f"move {self.held['name']} to {place}"

    def treat(self, flag: str) -> str | None:
        """Clean, heat or cool what is in the hand."""
        if self.held is None or flag in self.held["flags"]:
            return None
        verb = VERBS[flag]
        name = self.held["name"]
        stations = self.places(STATIONS[verb])
        if not stations:
            return None
        place = min(stations, key=lambda place: (place not in self._reach, self.failed[f"{verb} {name} with {place}"]))
        return f"{verb} {name} with {place}" if place in self._reach else f"go to {place}"

    def approach(self, place: str) -> str | None:
        """Go to a receptacle."""
        return None if place in self._reach else f"go to {place}"

    def light(self, what: str) -> str | None:
        """Find a lamp of a kind and turn it on; one that is on is only gone to."""
        lamps = self.things(what)
        if not lamps:
            return self.explore((what,))
        lamp = min(lamps, key=lambda name: self.failed[f"use {name}"])
        way = self.approach(self.where[lamp])
        if way is not None:
            return way
        return None if "on" in self.flags(lamp) else f"use {lamp}"

    def lamps(self) -> list[str]:
        """Return the known lamps."""
        return [name for name in self.where if kind(name) in LAMPS]
