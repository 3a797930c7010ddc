"""`dreamgym train`: reinforcement learning in a dream or in the real environment."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dreamgym_envs.cli.console import EnvId, Json, notes, session, share_table
from dreamgym_envs.cli.environments import Model, Option, Split, Threshold, env_options

if TYPE_CHECKING:
    from dreamgym_envs.agents.agent import CandidateAgent


def train(
    env_id: EnvId,
    out: Annotated[Path, typer.Option(help="Directory of the agent.")],
    algo: Annotated[str, typer.Option(help="maskable_ppo or ppo.")] = "maskable_ppo",
    steps: Annotated[int, typer.Option(min=1, help="Environment steps.")] = 40_000,
    num_envs: Annotated[int, typer.Option(min=1, help="Environments side by side.")] = 64,
    warm_start: Annotated[
        Path | None, typer.Option(help="Agent to start from; a behaviour clone of the demonstrations if left out.")
    ] = None,
    scratch: Annotated[bool, typer.Option("--scratch", help="Start from nothing instead.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Trajectories with the demonstrations; the shipped ones if left out.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Most demonstrations of a warm start; the domain's own number if left out."),
    ] = None,
    model: Model = None,
    threshold: Threshold = None,
    split: Split = None,
    option: Option = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an interrupted run left in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Train an agent with PPO, from a behaviour clone of offline demonstrations, which is kept in OUT/warm-start.

    Example: dreamgym train DreamGym/ALFWorld-v0 --steps 40000 --out runs/dream

    An interrupted run goes on with the same command and --resume.
    """
    if scratch and warm_start is not None:
        raise typer.BadParameter("--scratch starts from nothing, --warm-start from an agent; choose one")
    options = env_options(env_id, model, threshold, split, option)
    with session(as_json) as output:
        from dreamgym_envs.agents.training import checkpoint_in
        from dreamgym_envs.agents.training import train as run

        # Cloning takes a while: what `train` will refuse is better refused before. A run that was interrupted before
        # its first checkpoint has nothing to go on from: it starts anew, from a clone as it did.
        begun = checkpoint_in(out, algo, resume=resume).exists()
        start: Path | CandidateAgent | None = warm_start
        if start is None and not scratch and not begun:
            start = _clone(env_id, data, limit, seed)
            start.save(out / "warm-start")
        outcome = run(
            env_id,
            out,
            algo=algo,
            steps=steps,
            seed=seed,
            warm_start=start,
            resume=resume,
            num_envs=num_envs,
            env_options=options,
        )
        result = asdict(outcome)
        output.report(result, lambda console: console.print(share_table(f"trained in {env_id}", result)))


def _clone(env_id: str, data: Path | None, limit: int | None, seed: int) -> "CandidateAgent":
    """Return a behaviour clone of the demonstrations."""
    from dreamgym_envs.agents.cloning import CloneConfig, clone
    from dreamgym_envs.cli.data import read_file
    from dreamgym_envs.domains import get_domain
    from dreamgym_envs.registration import ENVIRONMENTS
    from dreamgym_envs.trajectories import shipped_trajectories

    domain = get_domain(next(row.domain for row in ENVIRONMENTS if row.id == env_id))
    trajectories = read_file(domain, data or shipped_trajectories(domain.name))
    agent = clone(domain, trajectories, CloneConfig(episodes=limit or domain.demonstrations, seed=seed))
    notes.print(f"warm start: {agent.config.provenance['agreement']:.0%} of the demonstrated actions")
    return agent
