"""WebShop as a domain: a shop in text, in which what an instruction asks for is to be found and bought."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dreamgym_envs.assets import asset
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import JSON, State, Task, Trajectory, Transition
from dreamgym_envs.domains.base import Action, Domain, Engine, Player, open_engine
from dreamgym_envs.domains.webshop import commitments, grammar, imports, players, reasoning, relabel, verdict, views
from dreamgym_envs.domains.webshop.pages import SUB_PAGES
from dreamgym_envs.trajectories.imported import Imported

__all__ = ["WebShopDomain"]


class WebShopDomain(Domain):
    """Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with Grounded Language Agents" (2022).

    The schema in assets/schemas/webshop.json says what a state holds, `text` how the shop's pages become one.
    """

    name = "webshop"
    title = "WebShop"
    max_episode_steps = 50
    demonstrations = 30
    max_candidates = grammar.MAX_CANDIDATES
    held_out: ClassVar[Mapping[str, Mapping[str, Any]]] = {"generated": {"split": "test"}}

    def __init__(self) -> None:
        self.schema = Schema.load(asset("schemas", f"{self.name}.json"))

    def parse(self, action: str) -> Action | None:
        """Return an action's parts; see `grammar.parse`."""
        return grammar.parse(action)

    def candidates(self, task: Task, state: State) -> tuple[str, ...]:
        """Return the actions worth considering; see `grammar.candidates`."""
        return grammar.candidates(task, state)

    def rejection(self, state: State) -> State:
        """Return the state after what is no action: the page stays as it is, and the feedback says so."""
        return State({**state.public, "feedback": grammar.FAILURE}, state.private)

    def focus(self, task: Task, state: State, action: Action | None) -> Mapping[str, JSON]:
        """Return what an action touches; see `commitments.focus`."""
        return commitments.focus(task, state, action)

    def comparisons(self, task: Task, state: State, action: Action | None) -> tuple[str, ...]:
        """Return how the price of what is bought compares with the limit; see `commitments.comparisons`."""
        return commitments.comparisons(task, state, action)

    def touched(self, state: State, action: Action) -> Sequence[str]:
        """Return what an action names, and the open item."""
        return (*action.arguments, *state.public["open"])

    def owed(self, task: Task, state: State, action: Action) -> Mapping[tuple[str, ...], Sequence[str]]:
        """Return the attributes that the last page to bear them out has to show; see `commitments.owed`."""
        return commitments.owed(state, action)

    def explain(self, transition: Transition) -> str:
        """Return the checklist behind a transition; see `reasoning.explain`.

        Raises:
            ImportError: The extra "webshop", whose rules explain a purchase, is not installed.
        """
        return reasoning.explain(transition)

    def hindsight(self, trajectory: Trajectory) -> list[Mapping[str, JSON]]:
        """Return which products were there all along; see `commitments.hindsight`."""
        return commitments.hindsight(trajectory)

    def disclosed(self, trajectory: Trajectory) -> float:
        """Return whether the episode found what satisfies its task; see `commitments.disclosed`."""
        return commitments.disclosed(trajectory)

    def relabel(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory | None:
        """Return an episode as if another limit or option had been asked for; see `relabel.relabel`."""
        return relabel.relabel(trajectory, rng)

    def plausible_start(self, task: Task, state: State) -> bool:
        """Return whether a start's commitments leave the task open and possible; see `commitments.plausible`."""
        return commitments.plausible(task.instruction, state)

    def reveals(self, transition: Transition) -> bool:
        """Return whether a transition shows what no state before it holds.

        New are a page of results that was not shown yet, the page of an item that was never open, and the text of a
        sub-page, which the state keeps only while it is shown.
        """
        before, after = transition.state.public, transition.next_state.public
        action = grammar.parse(transition.action)
        if action is None or after["feedback"] == grammar.FAILURE:
            return False
        if action.verb in SUB_PAGES or before["results"] != after["results"]:
            return True
        known = {item["id"] for item in before["items"] if item["status"] == "opened"}
        return any(item["status"] == "opened" and item["id"] not in known for item in after["items"])

    def goal_satisfied(self, task: Task, state: State) -> bool:
        """Return whether what was bought satisfies the instruction, as far as the state shows; see `verdict`."""
        return verdict.satisfied(task, state)

    def render(self, task: Task, state: State) -> str:
        """Return the page for a person: results a line each, or the open item with its options, chosen ones marked."""
        public = state.public
        lines = [f"Task: {task.instruction}", f"> {public['feedback']}"]
        if public["page"] == "search":
            return "\n".join([*lines, "Search page"])
        if public["page"] == "results":
            total = views.results(state)["total"]
            lines.append(f"Results for {public['query']!r}, page {public['page_number']} of {total} products")
            shown = (f"  {item['id']}  {item['price']}  {item['title']}" for item in views.listed(state))
            return "\n".join([*lines, *shown])
        item = next(item for item in public["items"] if item["id"] in public["open"])
        lines += [f"{item['title']} ({item['id']}), {item['price']}"]
        chosen = {(entry["option"], entry["value"]) for entry in public["chosen"]}
        for option in item["options"]:
            values = (f"[{v}]" if (option["name"], v) in chosen else v for v in option["values"])
            lines.append(f"  {option['name']}: {', '.join(values)}")
        lines += [f"  borne out: {', '.join(item['attributes'])}"] * bool(item["attributes"])
        return "\n".join([*lines, public["text"]] if public["text"] else lines)

    def import_episodes(self, path: Path) -> Imported:
        """Return the episodes of a file in the chat format of AgentGym and ETO; see `imports.import_chats`.

        Raises:
            FileNotFoundError: There is no such file.
            ChatFormatError: A line is not in the chat format; it names record and field.
        """
        return imports.import_chats(path, self.schema)

    def engine(self, **options: Any) -> Engine:
        """Return the real shop; with `url` that of a server (`remote.RemoteWebShopEngine`), else `real.WebShopEngine`.

        Raises:
            ImportError: The extra "webshop" is not installed, which a shop in this process needs.
            ValueError: An option is unknown or wrong.
        """
        if "url" in options:
            from dreamgym_envs.domains.webshop.remote import RemoteWebShopEngine

            return open_engine(RemoteWebShopEngine, options)
        from dreamgym_envs.domains.webshop.real import WebShopEngine

        return open_engine(WebShopEngine, options)

    def player(self, kind: str) -> Player:
        """Return a player of a kind; see `players.PLAYERS`.

        Raises:
            ValueError: There is no such kind.
        """
        return players.player(kind)
