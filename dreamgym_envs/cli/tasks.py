"""`dreamgym tasks`: the tasks of recorded episodes or of the real environment, for dreams to start in."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from dreamgym_envs.cli.console import DomainName, Json, session, share_table
from dreamgym_envs.cli.environments import settings


def tasks(
    domain: DomainName,
    data: Annotated[list[Path] | None, typer.Option(help="File of trajectories; the shipped ones if left out.")] = None,
    real: Annotated[
        int | None, typer.Option(min=1, help="Take so many tasks of the real environment instead, drawn with the seed.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of the real environment's tasks.")] = "train",
    option: Annotated[list[str] | None, typer.Option(help="Option of the real environment, name=value.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    out: Annotated[Path | None, typer.Option(help="File to write; where dreams look for it if left out.")] = None,
    as_json: Json = False,
) -> None:
    """Write the tasks of recorded episodes, or of the real environment, in which dreams start.

    Example: dreamgym tasks alfworld --data runs/alfworld.jsonl.gz

    Example: dreamgym tasks webshop --real 2400
    """
    if real is not None and data:
        raise typer.BadParameter("--real takes tasks from the real environment, --data from episodes; choose one")
    options = {"split": split, **settings(option)}
    with session(as_json) as output:
        from dreamgym_envs.cli.data import read_file
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.trajectories import shipped_trajectories
        from dreamgym_envs.trajectories.tasks import real_tasks, tasks_file, write_tasks

        found = get_domain(domain)
        target = out or tasks_file(domain)
        if real is not None:
            with closing(found.engine(**options)) as engine:
                count = write_tasks(target, real_tasks(engine, real, seed))
        else:
            files = data or [shipped_trajectories(domain)]
            count = write_tasks(target, (episode.task for path in files for episode in read_file(found, path)))
        result = {"domain": domain, "tasks": count, "out": str(target)}
        output.report(result, lambda console: console.print(share_table(f"tasks of {domain}", result)))
