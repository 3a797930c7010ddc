"""A trained agent as data: a scorer of candidate actions with what it needs to act, saved without pickle.

An agent's directory holds `agent.json` (how to read states, the network's sizes, where it comes from) and
`model.safetensors` (the weights). SB3's own zip files are pickles, which run code when they are opened; these are not.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dreamgym_envs.agents.policy import CandidateScorer
from dreamgym_envs.core.types import JSON
from dreamgym_envs.domains import get_domain
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.wrappers.candidates import NO_CANDIDATE
from dreamgym_envs.wrappers.features import BUCKETS, CANDIDATE_TOKENS, CONTEXT_TOKENS, FeatureEncoder

CONFIG_FILE = "agent.json"
WEIGHTS_FILE = "model.safetensors"


class AgentError(ValueError):
    """A directory that holds no agent, or one that does not fit."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """All of an agent but its weights.

    Attributes:
        domain: Name of the domain that it acts in.
        candidates: Most candidate actions that it looks at.
        buckets: Size of the hashed vocabulary.
        candidate_tokens: Most tokens of a candidate.
        context_tokens: Most tokens of instruction and state.
        embedding: Width of a token's embedding.
        hidden: Width of the hidden layers.
        temperature: Of the softmax that actions are drawn from; 0 takes the best.
        provenance: How it came to be: command, environment, steps, seed, results.
    """

    domain: str
    candidates: int
    buckets: int = BUCKETS
    candidate_tokens: int = CANDIDATE_TOKENS
    context_tokens: int = CONTEXT_TOKENS
    embedding: int = 64
    hidden: int = 96
    temperature: float = 1.0
    provenance: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("candidates", "buckets", "candidate_tokens", "context_tokens", "embedding", "hidden"):
            size = getattr(self, name)
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} is {size!r}; expected a whole number of at least 1")
        if not self.temperature >= 0:
            raise ValueError(f"temperature is {self.temperature}; expected 0 (always the best candidate) or more")

    def features(self) -> dict[str, int]:
        """Return the sizes that the encoder and the array wrappers take."""
        return {name: getattr(self, name) for name in ("buckets", "candidate_tokens", "context_tokens")}

    def scorer(self) -> CandidateScorer:
        """Return a new network of this shape."""
        return CandidateScorer(self.buckets, self.embedding, self.hidden)


class CandidateAgent:
    """Acts on abstract states by scoring their candidate actions, in a dream as in the real environment.

    Args:
        config: Its shape and provenance.
        scorer: Its network; None makes a new one.
        domain: Its domain; None looks it up by name.

    Example:
        >>> agent = load_agent("runs/alfworld")  # doctest: +SKIP
        >>> agent.act([info["instruction"]], [info["state"]], [info["candidate_actions"]], [rng])  # doctest: +SKIP
        ['go to cabinet 1']
    """

    def __init__(
        self, config: AgentConfig, scorer: CandidateScorer | None = None, domain: Domain | None = None
    ) -> None:
        self.config = config
        self.scorer = config.scorer() if scorer is None else scorer
        self.domain = get_domain(config.domain) if domain is None else domain
        self.encoder = FeatureEncoder(self.domain, candidates=config.candidates, **config.features())

    def probabilities(
        self, instructions: Sequence[str], states: Sequence[Mapping[str, JSON]], candidates: Sequence[Sequence[str]]
    ) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """Return, for each state, the probabilities of its first `config.candidates` candidates.

        Args:
            instructions: The tasks in words [n].
            states: The public states [n].
            candidates: Their candidate actions [n].
        """
        encoded = [
            self.encoder.encode(instruction, state, offered, slot=i)
            for i, (instruction, state, offered) in enumerate(zip(instructions, states, candidates, strict=True))
        ]
        arrays = {key: torch.from_numpy(np.stack([item[key] for item in encoded])) for key in encoded[0]}
        with torch.no_grad():
            scores = self.scorer(arrays["candidates"], arrays["context"])[0].double()
        if self.config.temperature > 0:
            chances = torch.softmax(scores / self.config.temperature, 1).numpy()
        else:
            chances = np.eye(scores.shape[1])[scores.argmax(1).numpy()]
        return [row[: len(offered)] for row, offered in zip(chances, candidates, strict=True)]

    def act(
        self,
        instructions: Sequence[str],
        states: Sequence[Mapping[str, JSON]],
        candidates: Sequence[Sequence[str]],
        rngs: Sequence[np.random.Generator],
    ) -> list[str]:
        """Return an action for each state, drawn with its own generator, whatever else is in the batch.

        Where a state offers no candidate, the action is one that no grammar knows.
        """
        rows = self.probabilities(instructions, states, candidates)
        actions = []
        for row, offered, rng in zip(rows, candidates, rngs, strict=True):
            place = int(np.searchsorted(np.cumsum(row), rng.random() * row.sum(), side="right"))
            actions.append(offered[min(place, len(row) - 1)] if len(row) else NO_CANDIDATE)
        return actions

    def save(self, path: str | Path) -> None:
        """Write the agent into a directory, which is made if it is not there."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(folder / WEIGHTS_FILE, self.scorer.state_dict())
        write_json(folder / CONFIG_FILE, asdict(self.config))

    def with_temperature(self, temperature: float) -> "CandidateAgent":
        """Return the same agent, choosing at another temperature."""
        return CandidateAgent(replace(self.config, temperature=temperature), self.scorer, self.domain)

    def with_provenance(self, **entries: JSON) -> "CandidateAgent":
        """Return the same agent with entries added to its provenance."""
        config = replace(self.config, provenance={**self.config.provenance, **entries})
        return CandidateAgent(config, self.scorer, self.domain)


def load_agent(path: str | Path, domain: Domain | None = None) -> CandidateAgent:
    """Read an agent that `CandidateAgent.save`, `clone` or `train` wrote. Nothing is unpickled.

    Args:
        path: The directory.
        domain: Its domain, for one that has no name in `dreamgym_envs.domains`.

    Raises:
        AgentError: The directory holds no agent, or a damaged one.
    """
    folder = Path(path)
    if not (folder / CONFIG_FILE).is_file():
        what = f"has no {CONFIG_FILE}" if folder.is_dir() else "is no directory"
        raise AgentError(f"no agent at {str(path)!r}: it {what}; make one with `dreamgym train ID --out {path}`")
    known = {entry.name for entry in fields(AgentConfig)}
    try:
        document = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        config = AgentConfig(**{key: value for key, value in document.items() if key in known})
        agent = CandidateAgent(config, domain=domain)
    except (AttributeError, TypeError, ValueError) as error:
        raise AgentError(f"{folder / CONFIG_FILE} describes no agent: {error}; train it anew") from error
    weights = read_tensors(folder / WEIGHTS_FILE)
    check_shapes(agent.scorer.state_dict(), weights, str(folder / WEIGHTS_FILE))
    agent.scorer.load_state_dict(weights)
    return agent


def check_shapes(expected: Mapping[str, Tensor], found: Mapping[str, Tensor], where: str) -> None:
    """Raise an AgentError that names the first tensor which is missing, unknown or of another shape."""
    for name in (*expected, *found):
        wanted = tuple(expected[name].shape) if name in expected else None
        given = tuple(found[name].shape) if name in found else None
        if wanted != given:
            raise AgentError(
                f"{where} does not fit: {name} has shape {given}, expected {wanted}; it belongs to an agent of other "
                f"sizes than {CONFIG_FILE} beside it says, train it anew"
            )


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors so that an interruption leaves the old file or the new one, never half of one."""
    part = path.with_suffix(path.suffix + ".part")
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, part)
    os.replace(part, path)


def write_json(path: Path, document: Any) -> None:
    """Write JSON so that an interruption leaves the old file or the new one, never half of one."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file.

    Raises:
        AgentError: The file is missing or damaged.
    """
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise AgentError(f"{path} is missing or damaged ({error}); train the agent anew") from error
    return tensors
