"""`dreamgym tasks`: the tasks of recorded episodes, for dreams to start in."""

from pathlib import Path
from typing import Annotated

import typer

from dreamgym_envs.cli.console import DomainName, Json, session, share_table


def tasks(
    domain: DomainName,
    data: Annotated[list[Path] | None, typer.Option(help="File of trajectories; the shipped ones if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; where dreams look for it if left out.")] = None,
    as_json: Json = False,
) -> None:
    """Write the tasks of recorded episodes, in which dreams start.

    Example: dreamgym tasks alfworld --data runs/alfworld.jsonl.gz
    """
    with session(as_json) as output:
        from dreamgym_envs.cli.data import read_file
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.trajectories import shipped_trajectories
        from dreamgym_envs.trajectories.tasks import tasks_file, write_tasks

        found = get_domain(domain)
        files = data or [shipped_trajectories(domain)]
        target = out or tasks_file(domain)
        count = write_tasks(target, (episode for path in files for episode in read_file(found, path)))
        result = {"domain": domain, "tasks": count, "out": str(target)}
        output.report(result, lambda console: console.print(share_table(f"tasks of {domain}", result)))
