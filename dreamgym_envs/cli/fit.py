"""`dreamgym fit`: train an experience model on trajectories."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dreamgym_envs.cli.console import DomainName, Json, session, share_table


def fit(
    domain: DomainName,
    out: Annotated[Path, typer.Option(help="Checkpoint directory to write.")],
    data: Annotated[
        list[Path] | None, typer.Option(help="File of trajectories; may be repeated. The shipped ones if left out.")
    ] = None,
    base: Annotated[
        Path | None, typer.Option(help="Checkpoint of a causal language model to start from; from scratch if left out.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Optimiser steps.")] = 4000,
    tokens: Annotated[int, typer.Option(min=64, help="Tokens a step.")] = 4096,
    hidden: Annotated[int, typer.Option(min=8, help="Width of a model from scratch.")] = 128,
    layers: Annotated[int, typer.Option(min=1, help="Layers of a model from scratch.")] = 4,
    relabels: Annotated[int, typer.Option(min=0, help="Other tasks that each episode is seen with.")] = 4,
    invented: Annotated[
        float, typer.Option(min=0.0, help="Weight in the loss of what is invented, such as texts of pages.")
    ] = 3.0,
    history: Annotated[int, typer.Option(min=0, help="Past steps that the model sees.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Most episodes of each file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and order.")] = 0,
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0 leaves its default.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an interrupted run left in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Fit an experience model to trajectories and save it as a Hugging Face checkpoint directory.

    Example: dreamgym fit alfworld --data runs/alfworld.jsonl.gz --out runs/model --steps 2000

    An interrupted run goes on with the same command and --resume.
    """
    with session(as_json) as output:
        from dreamgym_envs.cli.data import read_file
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.experience.training import FitConfig
        from dreamgym_envs.experience.training import fit as run
        from dreamgym_envs.trajectories import shipped_trajectories

        fitted = get_domain(domain)
        files = data or [shipped_trajectories(domain)]
        trajectories = [trajectory for path in files for trajectory in read_file(fitted, path, limit)]
        config = FitConfig(
            steps=steps,
            tokens=tokens,
            hidden=hidden,
            layers=layers,
            relabels=relabels,
            invented_weight=invented,
            history=history,
            seed=seed,
            threads=threads,
        )
        command = shlex.join(["dreamgym", *sys.argv[1:]])
        result = run(fitted, trajectories, out, config, base=base, resume=resume, command=command)
        output.report(result, lambda console: console.print(share_table(f"fitted {domain}", result)))
