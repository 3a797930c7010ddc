"""A household's state while a text is read into it: what the engine tells, put where it belongs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dreamgym_envs.core.types import JSON, State

__all__ = ["FLAGS", "KNOWN", "View"]

FLAGS = ("clean", "hot", "cool", "sliced", "on")
"""Flags of objects, in the order in which the state lists them."""

KNOWN = ("open", "surface", "shut")
"""Statuses of a receptacle whose contents are known."""

Items = tuple[Mapping[str, JSON], ...]


class View:
    """A state that is being changed. Rows are replaced, never written to, so that states share them.

    Args:
        state: The state before; it stays as it is.

    Attributes:
        location: Receptacles within reach.
        holding: The object in the hand, if any.
        rows: The receptacles by name.
    """

    def __init__(self, state: State) -> None:
        self.before = state
        self.location: tuple[str, ...] = state.public["location"]
        self.holding: Items = state.public["holding"]
        self.rows: dict[str, Mapping[str, JSON]] = {row["name"]: row for row in state.public["receptacles"]}

    def state(self, feedback: str) -> State:
        """Return the state as it is now; the private part is that of the state before."""
        public = {
            "location": self.location,
            "holding": self.holding,
            "receptacles": tuple(self.rows.values()),
            "feedback": feedback,
        }
        return State(public, self.before.private)

    def reach(self, name: str) -> None:
        """Note that a receptacle is within reach."""
        if name in self.rows and name not in self.location:
            self.location = (*self.location, name)

    def row(self, name: str) -> Mapping[str, JSON]:
        """Return a receptacle.

        Raises:
            ValueError: There is none of that name.
        """
        if name not in self.rows:
            raise ValueError(f"no receptacle {name!r} in the state; it has {', '.join(self.rows)}")
        return self.rows[name]

    def update(self, name: str, **values: Any) -> None:
        """Change a receptacle's row."""
        row = self.row(name)
        if any(row[key] != value for key, value in values.items()):
            self.rows[name] = {**row, **values}

    def list_contents(self, name: str, status: str, things: Iterable[str]) -> None:
        """Set the contents of a receptacle to what a text lists; known things keep order and flags."""
        held = {item["name"] for item in self.holding}
        listed = [thing for thing in things if thing not in held]
        self.update(name, status=status)
        items = {item["name"]: item for item in self.rows[name]["contents"]}
        if items.keys() != set(listed):
            self.update(name, contents=tuple(items.get(thing) or self.remove(thing) for thing in listed))

    def holder(self, thing: str) -> str | None:
        """Return the receptacle in which a thing is known to be."""
        return next((name for name, row in self.rows.items() if any(i["name"] == thing for i in row["contents"])), None)

    def remove(self, thing: str) -> Mapping[str, JSON]:
        """Take a thing from where it is known to be and return it; a thing that nobody has seen has no flags yet."""
        for item in self.holding:
            if item["name"] == thing:
                self.holding = ()
                return item
        if name := self.holder(thing):
            contents = self.rows[name]["contents"]
            self.update(name, contents=tuple(item for item in contents if item["name"] != thing))
            return next(item for item in contents if item["name"] == thing)
        return {"name": thing, "flags": ()}

    def add(self, name: str, item: Mapping[str, JSON]) -> None:
        """Put a thing into a receptacle. Nobody sees it there if what else is in it is unknown."""
        if self.row(name)["status"] in KNOWN:
            self.update(name, contents=(*self.rows[name]["contents"], item))

    def flag(self, thing: str, change: Callable[[frozenset[str]], frozenset[str]]) -> None:
        """Change the flags of a thing within reach, wherever it is known to be."""

        def changed(items: Items) -> Items:
            return tuple(
                {**item, "flags": tuple(f for f in FLAGS if f in change(frozenset(item["flags"])))}
                if item["name"] == thing
                else item
                for item in items
            )

        if any(item["name"] == thing for item in self.holding):
            self.holding = changed(self.holding)
        elif name := self.holder(thing):
            self.update(name, contents=changed(self.rows[name]["contents"]))
            self.reach(name)
