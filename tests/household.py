"""A household that answers like ALFWorld's engine, small and fast enough for specifications.

It is a test double: the rules are those of alfred.pddl and alfred.twl2, spelt out over plain dictionaries.
"""

from dataclasses import dataclass, field

from dreamgym_envs.domains.alfworld.goal import Goal, parse_goal
from dreamgym_envs.domains.alfworld.grammar import kind, parse

NOTHING = "Nothing happens."
STATIONS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
EFFECTS = {"clean": ("clean", ""), "heat": ("hot", "cool"), "cool": ("cool", "hot")}


@dataclass
class Household:
    """Receptacles with what is in them.

    Attributes:
        instruction: The task.
        contents: Receptacle to the objects in it, both as names such as "mug 1".
        openable: Receptacles that can be closed; they are at first.
        together: Groups of receptacles that share a place.
        refused: (object, receptacle) kinds that do not go together.
        hardly: (verb, object) kinds to which nothing can be done.
    """

    instruction: str
    contents: dict[str, list[str]]
    openable: set[str] = field(default_factory=set)
    together: tuple[frozenset[str], ...] = ()
    refused: frozenset[tuple[str, str]] = frozenset()
    hardly: frozenset[tuple[str, str]] = frozenset()
    fixed: frozenset[str] = frozenset({"desklamp", "floorlamp", "television", "houseplant"})

    def __post_init__(self) -> None:
        self.opened: set[str] = set()
        self.reach: frozenset[str] = frozenset()
        self.held = ""
        self.flags: dict[str, set[str]] = {}

    def intro(self) -> str:
        names = ", ".join(f"a {name}" for name in sorted(self.contents, reverse=True))
        return (
            "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, "
            f"you see {names}.\n\nYour task is to: {self.instruction}"
        )

    def step(self, text: str) -> tuple[str, bool]:
        """Return the answer to a command and whether the goal holds."""
        action = parse(text)
        answer = getattr(self, f"_{action.verb}", self._treat)(action.verb, *action.arguments) if action else NOTHING
        return answer, self.won()

    def won(self) -> bool:
        goal = parse_goal(self.instruction)
        assert isinstance(goal, Goal)
        if goal.lamp:
            lamps = [thing for place in self.reach for thing in self.contents[place] if kind(thing) == goal.lamp]
            lit = any("on" in self.flags.get(lamp, ()) for lamp in lamps)
            return lit and kind(self.held) == goal.object
        return any(
            sum(kind(t) == goal.object and (not goal.flag or goal.flag in self.flags.get(t, ())) for t in things)
            >= goal.count
            for place, things in self.contents.items()
            if kind(place) == goal.receptacle
        )

    def _shown(self, place: str) -> str:
        listed = [f"a {thing}" for thing in self.contents[place]]
        things = ", and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed) or "nothing"
        if place not in self.openable:
            return f"On the {place}, you see {things}."
        if place not in self.opened:
            return f"The {place} is closed."
        return f"The {place} is open. In it, you see {things}."

    def _within(self, place: str) -> bool:
        return place in self.reach and (place not in self.openable or place in self.opened)

    def _go(self, verb: str, place: str) -> str:
        if place not in self.contents or place in self.reach:
            return NOTHING
        self.reach = next((group for group in self.together if place in group), frozenset({place}))
        return f"You arrive at {place}. {self._shown(place)}"

    def _open(self, verb: str, place: str) -> str:
        if place not in self.reach or place not in self.openable or place in self.opened:
            return NOTHING
        self.opened.add(place)
        return f"You open the {place}. {self._shown(place)}"

    def _close(self, verb: str, place: str) -> str:
        if place not in self.reach or place not in self.opened:
            return NOTHING
        self.opened.remove(place)
        return f"You close the {place}."

    def _take(self, verb: str, thing: str, place: str) -> str:
        if not self._within(place) or thing not in self.contents[place] or self.held or kind(thing) in self.fixed:
            return NOTHING
        self.contents[place].remove(thing)
        self.held = thing
        return f"You pick up the {thing} from the {place}."

    def _move(self, verb: str, thing: str, place: str) -> str:
        if self.held != thing or not self._within(place) or (kind(thing), kind(place)) in self.refused:
            return NOTHING
        self.contents[place].append(thing)
        self.held = ""
        return f"You move the {thing} to the {place}."

    def _treat(self, verb: str, thing: str, place: str) -> str:
        able = (verb, kind(thing)) not in self.hardly
        if self.held != thing or place not in self.reach or kind(place) != STATIONS[verb] or not able:
            return NOTHING
        sets, clears = EFFECTS[verb]
        self.flags[thing] = (self.flags.get(thing, set()) | {sets}) - {clears}
        return f"You {verb} the {thing} using the {place}."

    def _use(self, verb: str, thing: str) -> str:
        if "lamp" not in thing or not any(thing in self.contents[place] for place in self.reach):
            return NOTHING
        self.flags.setdefault(thing, set()).add("on")
        return f"You turn on the {thing}."

    def _slice(self, verb: str, thing: str, knife: str) -> str:
        near = any(thing in self.contents[place] for place in self.reach)
        if self.held != knife or "knife" not in knife or not near or kind(thing) not in ("apple", "bread", "tomato"):
            return NOTHING
        self.flags.setdefault(thing, set()).add("sliced")
        return f"You sliced the {thing} with the {knife}."

    def _examine(self, verb: str, name: str) -> str:
        if name in self.reach:
            return self._shown(name)
        if name != self.held and not any(self._within(p) and name in self.contents[p] for p in self.reach):
            return NOTHING
        told = " ".join(sorted(self.flags.get(name, set()) - {"on"}, reverse=True))
        return (
            f"This is a {told.replace(' ', ' and ', 1)} {name}." if told else f"There's nothing special about {name}."
        )

    def _inventory(self, verb: str) -> str:
        return f"You are carrying: a {self.held}." if self.held else "You are not carrying anything."

    def _look(self, verb: str) -> str:
        if not self.reach:
            return "You are in the middle of a room. Looking quickly around you, you see nothing."
        return f"You are facing the {', and '.join(sorted(self.reach))}. Next to it, you see nothing."

    def _help(self, verb: str) -> str:
        return "Available commands:\n  look:  look around your current location"
