"""Reinforcement learning in an environment named by its id, dreamt or real alike.

One function, `train`: PPO or MaskablePPO of Stable-Baselines3 with the policy that scores candidates, started from a
behaviour clone. What it writes is an agent's directory (see `agent`) that also holds

    checkpoint/        agent, optimiser and step count, from which an interrupted run goes on
    progress.jsonl     one line an update: success by task family, losses, seconds
    successes.jsonl    every episode that was paid, with its last state and whether that satisfies the goal
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from dreamgym_envs.agents.agent import CONFIG_FILE, AgentConfig, AgentError, CandidateAgent, load_agent
from dreamgym_envs.agents.checkpoint import Checkpoint, Start
from dreamgym_envs.agents.policy import CandidatePolicy
from dreamgym_envs.agents.processes import make_vector
from dreamgym_envs.agents.recorder import Recorder
from dreamgym_envs.agents.sb3 import GymVectorToSB3
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.wrappers.candidates import VectorCandidateActions
from dreamgym_envs.wrappers.infos import domain_of
from dreamgym_envs.wrappers.text import VectorTextArrays

ALGORITHMS: dict[str, Any] = {"maskable_ppo": MaskablePPO, "ppo": PPO}
"""Algorithms by name."""


@dataclass(frozen=True, slots=True)
class PPOConfig:
    """Settings of PPO, chosen by measurement (see CHANGELOG and the module's tests for what they give).

    Attributes:
        n_steps: Steps of each environment an update.
        batch_size: States a gradient step.
        n_epochs: Passes over an update's steps.
        learning_rate: Of Adam at the start.
        final_learning_rate: Of Adam at the end; linear between.
        gamma: Discount; below 1 it pays to be quick.
        gae_lambda: Of generalised advantage estimation.
        clip_range: Of the probability ratio.
        ent_coef: Weight of the entropy bonus.
        vf_coef: Weight of the critic's loss.
        max_grad_norm: Of the gradient clipping.
        target_kl: KL divergence from the behaviour policy at which an update stops; None never stops it.
    """

    n_steps: int = 32
    batch_size: int = 256
    n_epochs: int = 8
    learning_rate: float = 5e-4
    final_learning_rate: float = 1e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.003
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float | None = 0.05

    def settings(self) -> dict[str, Any]:
        """Return the keyword arguments of SB3's PPO and MaskablePPO."""
        settings = asdict(self)
        low, high = settings.pop("final_learning_rate"), self.learning_rate
        schedule: Callable[[float], float] = lambda remaining: low + (high - low) * remaining  # noqa: E731
        return {**settings, "learning_rate": schedule}


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What came of a training run.

    Attributes:
        env: The environment's id.
        algo: The algorithm.
        steps: Environment steps in all, those before a resumption included.
        seconds: Of this call.
        update_seconds: Those of them spent outside the environment.
        out: The agent's directory.
        episodes: Episodes that ended during this call.
        success: Success rate of the last of them (see `recorder.RECENT`), None without any.
        mean_return: Their mean return.
        by_family: Their success rate by task family.
        paid: Episodes that were paid as successes.
        false_paid: Those of them whose last state does not satisfy the goal.
    """

    env: str
    algo: str
    steps: int
    seconds: float
    update_seconds: float
    out: str
    episodes: int
    success: float | None
    mean_return: float | None
    by_family: Mapping[str, float]
    paid: int
    false_paid: int


def train(
    env_id: str,
    out: str | Path,
    *,
    algo: str = "maskable_ppo",
    steps: int = 40_000,
    seed: int = 0,
    warm_start: str | Path | CandidateAgent | None = None,
    resume: bool = False,
    num_envs: int = 64,
    processes: int | None = None,
    env_options: Mapping[str, Any] | None = None,
    config: PPOConfig | None = None,
    checkpoint_every: int = 10_000,
    progress: bool = True,
) -> TrainingResult:
    """Train an agent and save it.

    Args:
        env_id: For example "DreamGym/ALFWorld-v0" or "DreamGym/ALFWorldReal-v0".
        out: The agent's directory; must not hold an agent yet, unless `resume`.
        algo: "maskable_ppo" or "ppo".
        steps: Environment steps, rounded up to whole updates.
        seed: Of environments, weights and sampling.
        warm_start: An agent to start from; None starts from nothing, which sparse rewards rarely forgive.
        resume: Go on from the checkpoint in `out`, if there is one.
        num_envs: Environments side by side.
        processes: Processes for an environment that cannot be batched, such as a real engine; None takes one a core.
        env_options: Keyword arguments of the environment, such as {"model": path}.
        config: PPO's settings.
        checkpoint_every: Steps between checkpoints.
        progress: Whether to show a progress bar on stderr.

    Raises:
        ValueError: An unknown algorithm or environment, or nothing to train.
        AgentError: The warm start belongs to another domain, or the checkpoint to another run.
        FileExistsError: `out` holds an agent and `resume` is off.

    Example:
        >>> train("DreamGym/ALFWorld-v0", "runs/dream", warm_start="runs/warm-start")  # doctest: +SKIP
    """
    config = config or PPOConfig()
    folder = Path(out)
    checkpoint = checkpoint_in(folder, algo, resume=resume)
    if steps < 1:
        raise ValueError(f"steps is {steps}; expected at least 1")
    warm = load_agent(warm_start) if isinstance(warm_start, str | Path) else warm_start
    vector = make_vector(env_id, num_envs, processes=processes, env_options=env_options)
    try:
        domain = domain_of(vector)
        start = checkpoint.load(domain, env=env_id, algo=algo) if resume and checkpoint.exists() else Start(warm)
        shape = _shape(domain, start.agent)
        venv = _Timed(VectorTextArrays(VectorCandidateActions(vector, shape.candidates), **shape.features()))
        model = ALGORITHMS[algo](
            CandidatePolicy,
            venv,
            policy_kwargs={"embedding": shape.embedding, "hidden": shape.hidden},
            # A resumed run must not replay the episodes that it has had.
            seed=(seed + start.steps) % 2**32,
            device="cpu",
            **config.settings(),
        )
        model.set_logger(Logger(None, []))  # the recorder writes; SB3's own would leave an empty folder behind
        if start.agent is not None:
            model.policy.scorer.load_state_dict(start.agent.scorer.state_dict())
        if start.optimiser is not None:
            model.policy.optimizer.load_state_dict(start.optimiser)
        model.num_timesteps = start.steps
        provenance = {
            "method": "reinforcement learning",
            "env": env_id,
            "algo": algo,
            "seed": seed,
            "num_envs": num_envs,
            "ppo": asdict(config),
            "warm_start": shape.provenance.get("warm_start", {}) if start.steps else dict(shape.provenance),
        }
        agent = CandidateAgent(replace(shape, provenance=provenance), model.policy.scorer, domain)
        folder.mkdir(parents=True, exist_ok=True)
        recorder = Recorder(agent, folder, steps, checkpoint_every, progress)
        began = time.perf_counter()
        if start.steps < steps:
            try:
                model.learn(steps - start.steps, callback=recorder, reset_num_timesteps=False)
            finally:
                recorder.close()
            recorder.save()
        seconds = time.perf_counter() - began
        return TrainingResult(
            env=env_id,
            algo=algo,
            steps=model.num_timesteps,
            seconds=round(seconds, 1),
            update_seconds=round(seconds - venv.seconds, 1),
            out=str(folder),
            episodes=recorder.total.episodes,
            success=recorder.recent().rate(),
            mean_return=recorder.recent().mean_return(),
            by_family=recorder.recent().by_family(),
            paid=recorder.total.paid,
            false_paid=recorder.total.false_paid,
        )
    finally:
        vector.close()


def checkpoint_in(out: str | Path, algo: str, *, resume: bool) -> Checkpoint:
    """Return the checkpoint, there or yet to come, of a run that may begin or go on in `out`.

    Raises:
        ValueError: There is no such algorithm.
        FileExistsError: `out` holds an agent and `resume` is off.
    """
    folder = Path(out)
    if algo not in ALGORITHMS:
        raise ValueError(f"no algorithm {algo!r}; there are: {', '.join(ALGORITHMS)}")
    checkpoint = Checkpoint(folder / "checkpoint")
    if not resume and (checkpoint.exists() or (folder / CONFIG_FILE).exists()):
        raise FileExistsError(f"{folder} holds an agent already; go on with --resume, or choose another --out")
    return checkpoint


def _shape(domain: Domain, agent: CandidateAgent | None) -> AgentConfig:
    if agent is None:
        return AgentConfig(domain.name, domain.max_candidates)
    if agent.config.domain != domain.name:
        raise AgentError(
            f"the warm start acts in {agent.config.domain!r}, the environment is {domain.name!r}; clone one from "
            f"trajectories of {domain.name}"
        )
    return agent.config


class _Timed(GymVectorToSB3):
    """Knows how long its environments took."""

    seconds = 0.0

    def step_wait(self) -> VecEnvStepReturn:
        began = time.perf_counter()
        result = super().step_wait()
        self.seconds += time.perf_counter() - began
        return result
