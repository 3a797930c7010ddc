"""A run's checkpoint: agent, optimiser and step count, from which an interrupted training goes on. No pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dreamgym_envs.agents.agent import (
    AgentError,
    CandidateAgent,
    check_shapes,
    load_agent,
    read_tensors,
    write_json,
    write_tensors,
)
from dreamgym_envs.domains.base import Domain


@dataclass(slots=True)
class Start:
    """Where training starts: from nothing, or from a checkpoint.

    Attributes:
        agent: The agent so far.
        optimiser: State of its optimiser.
        steps: Environment steps taken.
    """

    agent: CandidateAgent | None = None
    optimiser: dict[str, Any] | None = None
    steps: int = 0


class Checkpoint:
    """Agent, optimiser and step count in a directory, without pickle.

    Args:
        folder: The directory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Return whether there is anything to go on from."""
        return (self.folder / "state.json").is_file()

    def save(self, agent: CandidateAgent, optimiser: torch.optim.Optimizer, steps: int) -> None:
        """Write a checkpoint; `state.json` comes last and makes it valid."""
        self.folder.mkdir(parents=True, exist_ok=True)
        state = optimiser.state_dict()["state"]
        name = f"optimiser-{steps}.safetensors"
        agent_name = f"agent-{steps}"
        tensors = {
            f"{index}.{key}": torch.as_tensor(value) for index, entry in state.items() for key, value in entry.items()
        }
        write_tensors(self.folder / name, tensors)
        agent.save(self.folder / agent_name)
        write_json(self.folder / "state.json", {"steps": steps, "optimiser": name, "agent": agent_name})
        self._drop_all_but(name, agent_name)

    def load(self, domain: Domain | None = None, **run: Any) -> Start:
        """Return what was saved.

        Args:
            domain: The agent's domain, for one that has no name in `dreamgym_envs.domains`.
            **run: Entries that the agent's provenance must have, such as the environment's id.

        Raises:
            AgentError: It is damaged, or belongs to another run.
        """
        path = self.folder / "state.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            steps, optimiser, agent_name = int(document["steps"]), document["optimiser"], document["agent"]
        except (KeyError, TypeError, ValueError) as error:
            raise AgentError(f"{path} is damaged ({error}); remove {self.folder.parent} and train anew") from error
        agent = load_agent(self.folder / agent_name, domain)
        for key, value in run.items():
            if agent.config.provenance.get(key) != value:
                raise AgentError(
                    f"the checkpoint in {self.folder} is of {key}={agent.config.provenance.get(key)!r}, not {value!r}; "
                    "resume with the same settings or choose another --out"
                )
        return Start(agent, _optimiser_state(agent, read_tensors(self.folder / optimiser)), steps)

    def _drop_all_but(self, *names: str) -> None:
        for entry in self.folder.iterdir():
            if entry.name in (*names, "state.json"):
                continue
            for part in entry.iterdir() if entry.is_dir() else ():
                part.unlink()
            entry.rmdir() if entry.is_dir() else entry.unlink()


def _optimiser_state(agent: CandidateAgent, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return an Adam state out of the tensors of a checkpoint, checked against the agent's parameters."""
    parameters = list(agent.scorer.parameters())
    optimiser = torch.optim.Adam(parameters)
    expected = {f"{i}.{key}": parameter for i, parameter in enumerate(parameters) for key in ("exp_avg", "exp_avg_sq")}
    check_shapes(expected, {key: value for key, value in tensors.items() if not key.endswith(".step")}, "the optimiser")
    document = optimiser.state_dict()
    document["state"] = {
        i: {key: tensors[f"{i}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")} for i in range(len(parameters))
    }
    return document
