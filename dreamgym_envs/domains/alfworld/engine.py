"""The real ALFWorld engine, one game at a time, with its repeated work remembered.

textworld's PddlEnv parses the same grammar strings at every step and translates the same PDDL problem to SAS twice at
each load and twice more at each reset. `AlfworldGame` plays that same PddlEnv with these pure functions memoised: what
the engine says is unchanged, and a test holds it to that.

Several games can be alive in one process: fast-downward keeps its state in global variables of its shared library, and
every `AlfworldGame` loads a private copy of that library. One `AlfworldGame` plays one game; loading another ends it.
"""

import copy
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

MISSING_EXTRA = "the ALFWorld engine is not installed; run: pip install 'dreamgym-envs[alfworld]'"
"""What the ImportError says when the extra is missing."""

PARSES = 2048
"""Grammar strings whose parse is remembered: some 80 a game, nearly all shared by all games."""

TRANSLATIONS = 128
"""PDDL problems whose translation is remembered: a held-out set of a hundred games, some 2 MB each."""

_FLAGS = {"isclean": "clean", "ishot": "hot", "iscool": "cool", "issliced": "sliced", "istoggled": "on"}
_LISTED = re.compile(r"\[\{(\w+)\.name \|[^]]*\]")
_VARIABLE = re.compile(r"\{(\w+)\}")
_LOCK = threading.RLock()
_LIBRARIES: list[Any] = []
"""Libraries of closed games. Reused, never unloaded: they leave exit handlers behind, which then end in a crash."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything that is so in a game, seen or not, by display names such as "mug 1".

    Attributes:
        location: Receptacles at the agent's place; empty in the middle of the room.
        holding: The object in the agent's hand, if any.
        contents: Receptacle to the objects in or on it.
        flags: Object to those of "clean", "hot", "cool", "sliced" and "on" that hold.
        openable: Receptacles that can be closed.
        opened: Those of them that are open.
        places: Receptacles that share a place, one group a place.
    """

    location: tuple[str, ...]
    holding: tuple[str, ...]
    contents: Mapping[str, tuple[str, ...]]
    flags: Mapping[str, tuple[str, ...]]
    openable: frozenset[str]
    opened: frozenset[str]
    places: tuple[tuple[str, ...], ...]


class UnsolvableGame(ValueError):
    """A game whose goal no sequence of actions can reach."""


class AlfworldGame:
    """A game in the real engine: text in, text out.

    Args:
        memoise: Remember parses and translations. False plays the engine as it comes, for comparison.
        planner: Prepare the planner too, which `plan` needs; doubles the time of a load.
        lists_commands: Work out `admissible_commands` at every step, as the engine does. False looks up only the
            command that is given, for recordings: the same texts several times faster.

    Raises:
        ImportError: The extra "alfworld" is not installed.

    Example:
        >>> game = AlfworldGame()                                   # doctest: +SKIP
        >>> game.load("game.tw-pddl")                               # doctest: +SKIP
        >>> print(game.reset())                                     # doctest: +SKIP
        -= Welcome to TextWorld, ALFRED! =- ...
        >>> game.step("go to desk 1")                               # doctest: +SKIP
        ('You arrive at desk 1. On the desk 1, you see a mug 1.', False)
    """

    def __init__(self, *, memoise: bool = True, planner: bool = False, lists_commands: bool = True) -> None:
        self._modules = _modules()
        self._class = self._modules.pddl_env if lists_commands else _unlisted()
        self._patches = _memoised(planner) if memoise else ()
        self._planner = planner
        self._env = self._make()
        self._commands: tuple[str, ...] | None = None  # None until reset
        self._loaded = False

    def load(self, game: Mapping[str, Any] | str | Path) -> None:
        """Load a game: the content of a `game.tw-pddl` ("pddl_domain", "grammar", "pddl_problem") or its path.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It holds no ALFWorld game.
            UnsolvableGame: Its goal can be seen to be out of reach.
        """
        data = game if isinstance(game, Mapping) else _read(Path(game))
        missing = [key for key in ("pddl_domain", "grammar", "pddl_problem") if not isinstance(data.get(key), str)]
        if missing:
            raise ValueError(f"not an ALFWorld game: no text for {', '.join(missing)}; expected a game.tw-pddl")
        if self._env is None:
            raise RuntimeError("this game was closed; make a new AlfworldGame")
        self._loaded, self._commands = False, None
        with self._remembering():
            if self._patches:
                self._modules.interned.clear()
            try:
                self._env.load(dict(data))
            except KeyError as error:
                if error.args != ("val1",):  # the translator's stand-in for a goal that can never hold
                    raise
                raise UnsolvableGame("the goal of this game can never hold; filter such games out") from error
        self._loaded = True

    def reset(self) -> str:
        """Start the loaded game and return its first text."""
        if not self._loaded:
            raise RuntimeError("no game is loaded; call load(game) first")
        with self._remembering():
            state = self._env.reset()
        self._commands = tuple(state["admissible_commands"])
        return str(state.feedback).strip()

    def step(self, command: str) -> tuple[str, bool]:
        """Give a command and return the engine's text and whether the goal holds now."""
        if self._commands is None:
            raise RuntimeError("the game has not started; call reset() first")
        with self._remembering():
            state, _, won = self._env.step(command)
        self._commands = tuple(state["admissible_commands"])
        return str(state.feedback).strip(), bool(won)

    @property
    def admissible_commands(self) -> tuple[str, ...]:
        """The engine's own list of commands that do something now, sorted; none before a reset."""
        return self._commands or ()

    @property
    def won(self) -> bool:
        """Whether the goal holds."""
        return bool(self._env.unwrapped._pddl_state.check_goal())

    def plan(self) -> list[str] | None:
        """Return commands that reach the goal from here, or None if the planner finds none.

        Raises:
            RuntimeError: The game was made without `planner=True`.
        """
        if not self._planner:
            raise RuntimeError("this game has no planner; use AlfworldGame(planner=True)")
        env = self._env.unwrapped
        if self.won:
            return []
        return [str(command) for command in env._pddl_state.replan(env._entity_infos)] or None

    def truth(self) -> Truth:
        """Return the hidden facts: for recording and for players that must know better than the agent."""
        env = self._env.unwrapped
        names = {key: str(info.name).strip() for key, info in env._entity_infos.items()}
        facts: dict[str, list[tuple[str, ...]]] = {}
        for fact in env._pddl_state.facts:
            arguments = tuple(names.get(variable.name, variable.name) for variable in fact.arguments)
            facts.setdefault(fact.name, []).append(arguments)
        here = {place for _, place in facts["atlocation"]}
        places: dict[str, list[str]] = {}
        for receptacle, place in sorted(facts["receptacleatlocation"]):
            places.setdefault(place, []).append(receptacle)
        contents: dict[str, list[str]] = {name: [] for group in places.values() for name in group}
        for item, receptacle in sorted(facts.get("inreceptacle", ())):
            contents[receptacle].append(item)
        flags: dict[str, list[str]] = {}
        for predicate, flag in _FLAGS.items():
            for (item,) in facts.get(predicate, ()):
                flags.setdefault(item, []).append(flag)
        return Truth(
            location=tuple(name for place in here for name in places.get(place, ())),
            holding=tuple(item for _, item in facts.get("holds", ())),
            contents={name: tuple(items) for name, items in contents.items()},
            flags={item: tuple(found) for item, found in flags.items()},
            openable=frozenset(name for (name,) in facts.get("openable", ())),
            opened=frozenset(name for (name,) in facts.get("opened", ())),
            places=tuple(tuple(group) for group in places.values()),
        )

    def close(self) -> None:
        """Hand the copy of the planner's library to the next game; this one can no longer be played."""
        if self._env is not None:
            _LIBRARIES.append(self._env.unwrapped.downward_lib)
            self._env, self._loaded, self._commands = None, False, None

    def _make(self) -> Any:
        """Return the engine with ALFWorld's names, on a library that nobody uses."""
        modules = self._modules
        infos = modules.textworld.EnvInfos(won=True, admissible_commands=True)
        library = _LIBRARIES.pop() if _LIBRARIES else modules.fast_downward.load_lib()
        with _LOCK, mock.patch.object(modules.fast_downward, "load_lib", lambda: library):
            return modules.demangler(self._class(infos))

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Run the engine with its pure functions replaced by remembering ones, for this call only.

        The replacements are module globals of textworld, so engines in other threads wait.
        """
        with _LOCK, ExitStack() as stack:
            for owner, name, replacement in self._patches:
                stack.enter_context(mock.patch.object(owner, name, replacement))
            yield


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"no game at {path}; expected a game.tw-pddl file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a game.tw-pddl: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} is not a game.tw-pddl: expected a JSON object")
    return data


class _Modules(NamedTuple):
    """What the engine consists of, imported on first use."""

    textworld: Any
    logic: Any
    textgen: Any
    pddl_env: Any
    fast_downward: Any
    demangler: Any
    interned: dict[Any, Any]
    """textworld keeps the facts of every game it ever saw. They compare by value: we forget them at each load."""


@cache
def _modules() -> _Modules:
    try:
        import fast_downward
        import mementos.core
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv, logic, textgen
    except ImportError as error:
        raise ImportError(MISSING_EXTRA) from error
    return _Modules(textworld, logic, textgen, PddlEnv, fast_downward, AlfredDemangler, mementos.core._memento_cache)


@cache
def _unlisted() -> Any:
    """Return a PddlEnv that derives the text of an operator's command once a game and lists no commands."""
    modules = _modules()

    class UnlistedPddlEnv(modules.pddl_env):  # type: ignore[misc, name-defined]
        def load(self, data: Any) -> None:
            super().load(data)
            self._texts: dict[str, str] = {}

        def step(self, command: str) -> Any:
            operators = self._applicable()
            chosen = next((op for op in operators if self._text(op) == command.strip()), None)
            self._pddl_state._operators = {op.id: op for op in operators}
            self.state["_valid_commands"] = [command.strip()] if chosen is not None else []
            self.state["_valid_actions"] = [self._action(chosen)] if chosen is not None else []
            return super().step(command)

        def _gather_infos(self) -> None:
            self.state["won"] = self._pddl_state.check_goal()
            self.state["lost"] = False
            self.state["admissible_commands"] = []

        def _applicable(self) -> Any:
            library = self._pddl_state.downward_lib
            operators = (modules.fast_downward.Operator * library.get_applicable_operators_count())()
            library.get_applicable_operators(operators)
            return operators

        def _action(self, operator: Any) -> Any:
            name, *arguments = operator.name.split()
            action = modules.textworld.logic.Action(name=name, preconditions=[], postconditions=[])
            action.id = operator.id
            action.mapping = {
                modules.textworld.logic.Placeholder(p.name.strip("?"), p.type_name): modules.textworld.logic.Variable(
                    argument, p.type_name
                )
                for p, argument in zip(self._pddl_state._actions[name].parameters, arguments, strict=False)
            }
            action.command_template = self._logic.actions[name].template
            action.feedback_rule = self._logic.actions[name].feedback_rule
            return action

        def _text(self, operator: Any) -> str:
            """Fill an operator's template; what a template lists is what its own arguments already name."""
            if operator.name not in self._texts:
                name, *arguments = operator.name.split()
                parameters = [p.name.strip("?") for p in self._pddl_state._actions[name].parameters]
                names = {p: self._entity_infos[a].name for p, a in zip(parameters, arguments, strict=False)}
                template = _LISTED.sub(r"{\1}", self._logic.actions[name].template)
                self._texts[operator.name] = _VARIABLE.sub(lambda found: names[found[1]], template)
            return self._texts[operator.name]

    return UnlistedPddlEnv


@cache
def _memoised(planner: bool) -> tuple[tuple[Any, str, Any], ...]:
    """Return (module, name, replacement) of the engine's pure functions.

    Without the planner, the second translation of a problem, which only the planner reads, is the first one again.
    """
    modules = _modules()
    parse_symbols = lru_cache(PARSES)(modules.textgen._parse_and_convert)

    def clone(symbol: Any) -> Any:
        """Copy what the engine writes contexts into: a symbol and the one that it lists."""
        twin = copy.copy(symbol)
        if isinstance(symbol, modules.textgen.ListSymbol):
            twin.symbol = clone(symbol.symbol)
        return twin

    def symbols(text: str, **options: Any) -> Any:
        return [clone(symbol) for symbol in parse_symbols(text, **options)]

    class RememberedRule:
        """All that the grammar asks of textworld's Rule."""

        parse_conjunctive_query = staticmethod(lru_cache(PARSES)(modules.textgen.Rule.parse_conjunctive_query))

    return (
        (modules.textgen, "_parse_and_convert", symbols),
        (modules.textgen, "Rule", RememberedRule),
        (modules.logic, "GameLogic", _logic_cache()),
        (modules.fast_downward, "pddl2sas", _translation(planner)),
    )


@cache
def _logic_cache() -> Callable[..., Any]:
    return lru_cache(PARSES // 8)(_modules().logic.GameLogic)


@cache
def _translation(planner: bool) -> Callable[..., Any]:
    translate = lru_cache(TRANSLATIONS)(_modules().fast_downward.pddl2sas)

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        argv = sys.argv  # the translator overwrites it
        try:
            return translate(domain, problem, verbose=verbose, optimize=optimize and planner)
        finally:
            sys.argv = argv

    return pddl2sas
