"""Who acts in many environments at once: the domain's players and trained agents behind one interface."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dreamgym_envs.agents.agent import AgentError, CandidateAgent, load_agent
from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Domain, Player

PLAYERS = ("random", "expert", "noisy")
"""Players that every domain has; see `Domain.player`."""


class Actor(Protocol):
    """Plays in numbered environments, each with its own random numbers."""

    def begin(self, slot: int, task: Task, rng: np.random.Generator) -> None:
        """Get ready for an episode of `task` in environment `slot`."""
        ...

    def act(self, slots: Sequence[int], infos: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return an action for each of these environments, given their infos."""
        ...


class PlayerActor:
    """One of the domain's players in every environment.

    Args:
        domain: Whose player.
        kind: Which; see `Domain.player`.
    """

    def __init__(self, domain: Domain, kind: str) -> None:
        self.domain = domain
        self.kind = kind
        self._players: dict[int, Player] = {}

    def begin(self, slot: int, task: Task, rng: np.random.Generator) -> None:
        """Get ready for an episode in environment `slot`."""
        player = self._players.setdefault(slot, self.domain.player(self.kind))
        player.reset(task, rng)

    def act(self, slots: Sequence[int], infos: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return each player's action."""
        return [self._players[slot].act(State(info["state"])) for slot, info in zip(slots, infos, strict=True)]


class AgentActor:
    """A trained agent, which looks at all environments in one batch.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: CandidateAgent) -> None:
        self.agent = agent
        self._rngs: dict[int, np.random.Generator] = {}

    def begin(self, slot: int, task: Task, rng: np.random.Generator) -> None:
        """Get ready for an episode in environment `slot`."""
        self._rngs[slot] = rng

    def act(self, slots: Sequence[int], infos: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the agent's actions."""
        return self.agent.act(
            [info["instruction"] for info in infos],
            [info["state"] for info in infos],
            [info["candidate_actions"] for info in infos],
            [self._rngs[slot] for slot in slots],
        )


def make_actor(agent: str | Path | CandidateAgent, domain: Domain, temperature: float | None = None) -> Actor:
    """Return who is meant by a name of `PLAYERS`, an agent's directory, or an agent.

    Args:
        agent: Name, directory or agent.
        domain: Where it is to act.
        temperature: Overrides a trained agent's own.

    Raises:
        AgentError: The directory holds no agent, or one of another domain.
    """
    if isinstance(agent, str) and agent in PLAYERS:
        return PlayerActor(domain, agent)
    if not isinstance(agent, CandidateAgent):
        folder = Path(agent)
        if not folder.exists():
            raise AgentError(
                f"no agent {str(agent)!r}; expected {', '.join(PLAYERS)} or the directory of a trained agent"
            )
        agent = load_agent(folder, domain)
    if agent.config.domain != domain.name:
        raise AgentError(f"the agent acts in {agent.config.domain!r}, the environment is {domain.name!r}")
    return AgentActor(agent if temperature is None else agent.with_temperature(temperature))
