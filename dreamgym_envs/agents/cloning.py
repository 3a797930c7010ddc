"""Behaviour cloning: the warm start that sparse rewards need.

An untrained policy never finishes a household task, so PPO would have nothing to learn from (the paper starts from
language models, which know something). A few demonstrations are enough: the aim is a policy that succeeds now and then,
not one that has nothing left to learn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch.nn import functional as F

from dreamgym_envs.agents.agent import AgentConfig, CandidateAgent
from dreamgym_envs.core.types import Trajectory
from dreamgym_envs.domains.base import Domain


@dataclass(frozen=True, slots=True)
class CloneConfig:
    """How a clone is trained.

    Attributes:
        episodes: Most demonstrations; more make a better start and leave less to learn.
        players: Whose successful episodes count as demonstrations.
        epochs: Passes over them.
        batch_size: States a step.
        learning_rate: Of Adam.
        value_weight: Weight of the critic's loss, the squared error of the discounted return.
        gamma: Discount of that return; the same as in the RL that follows.
        seed: Of the choice of episodes, the initial weights and the order.
    """

    episodes: int = 60
    players: tuple[str, ...] = ("expert",)
    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    value_weight: float = 0.5
    gamma: float = 0.99
    seed: int = 0


def clone(
    domain: Domain,
    trajectories: Sequence[Trajectory],
    config: CloneConfig | None = None,
    *,
    agent: AgentConfig | None = None,
    progress: bool = True,
) -> CandidateAgent:
    """Return an agent that imitates the successful demonstrations among `trajectories`.

    A state's candidates are computed by the domain, as they are at play; a step whose action is none of them is left
    out and counted in the agent's provenance.

    Args:
        domain: The domain of the trajectories.
        trajectories: Episodes of any players and outcomes.
        config: How to train.
        agent: The network's sizes; None takes the defaults.
        progress: Whether to show a progress bar on stderr.

    Raises:
        ValueError: No demonstration is left.

    Example:
        >>> clone(domain, trajectories).save("runs/warm-start")  # doctest: +SKIP
    """
    config = config or CloneConfig()
    good = [t for t in trajectories if t.success and (not config.players or t.player in config.players)]
    if not good:
        raise ValueError(
            f"none of {len(trajectories)} episodes is a success of {' or '.join(config.players)}; record some with "
            f"`dreamgym record {domain.name}`"
        )
    rng = np.random.default_rng(config.seed)
    chosen = [good[i] for i in rng.permutation(len(good))[: config.episodes]]
    torch.manual_seed(config.seed)
    clone_of = CandidateAgent(agent or AgentConfig(domain.name, domain.max_candidates), domain=domain)
    data = _Examples(clone_of, chosen, config.gamma)
    optimiser = torch.optim.Adam(clone_of.scorer.parameters(), config.learning_rate)
    loss = agreement = 0.0
    epochs = track(
        range(config.epochs), "cloning", console=Console(stderr=True), disable=not progress, transient=not progress
    )
    for _ in epochs:
        loss = agreement = 0.0
        order = torch.from_numpy(rng.permutation(len(data.labels)))
        for first in range(0, len(order), config.batch_size):
            batch = order[first : first + config.batch_size]
            scores, values = clone_of.scorer(data.candidates[batch], data.context[batch])
            imitation = F.cross_entropy(scores, data.labels[batch])
            critic = F.mse_loss(values.squeeze(1), data.returns[batch])
            optimiser.zero_grad()
            torch.autograd.backward(imitation + config.value_weight * critic)
            optimiser.step()
            loss += imitation.item() * len(batch) / len(data.labels)
            agreement += (scores.argmax(1) == data.labels[batch]).sum().item() / len(data.labels)
    return clone_of.with_provenance(
        method="behaviour cloning",
        episodes=len(chosen),
        states=len(data.labels),
        states_left_out=data.left_out,
        epochs=config.epochs,
        seed=config.seed,
        loss=round(loss, 4),
        agreement=round(agreement, 4),
    )


class _Examples:
    """States with the index of the action taken and the discounted return that followed."""

    def __init__(self, agent: CandidateAgent, episodes: Sequence[Trajectory], gamma: float) -> None:
        candidates, context, labels, returns = [], [], [], []
        self.left_out = 0
        for episode in episodes:
            state = episode.task.initial
            for position, step in enumerate(episode.steps):
                offered = agent.domain.candidates(episode.task, state)[: agent.config.candidates]
                if step.action in offered:
                    arrays = agent.encoder.encode(episode.task.instruction, state.public, offered)
                    candidates.append(arrays["candidates"])
                    context.append(arrays["context"])
                    labels.append(offered.index(step.action))
                    returns.append(gamma ** (len(episode.steps) - 1 - position))
                else:
                    self.left_out += 1
                state = step.state
        if not labels:
            raise ValueError(
                "no action of the demonstrations is among its state's candidates; do the trajectories belong to "
                f"{agent.domain.name}?"
            )
        self.candidates = torch.from_numpy(np.stack(candidates))
        self.context = torch.from_numpy(np.stack(context))
        self.labels = torch.tensor(labels)
        self.returns = torch.tensor(returns, dtype=torch.float32)
