"""`dreamgym record`: play the real environment and keep what happens."""

from pathlib import Path
from typing import Annotated

import typer

from dreamgym_envs.cli.console import DomainName, Json, session, share_table
from dreamgym_envs.cli.environments import settings


def mixture(text: str) -> dict[str, float]:
    """Return the shares that a text like "expert=3,noisy=1" gives.

    Raises:
        typer.BadParameter: It is no such text.
    """
    from dreamgym_envs.trajectories.record import are_shares

    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        try:
            shares[name.strip()] = float(share or 1)
        except ValueError:
            raise typer.BadParameter(f"{part!r} is no share; expected a mixture such as expert=3,noisy=1") from None
    if "" in shares or not are_shares(shares.values()):
        raise typer.BadParameter(f"{text!r} is no mixture; expected one such as expert=3,noisy=1")
    return shares


def record(
    domain: DomainName,
    out: Annotated[Path, typer.Option(help="File to write: .jsonl or .jsonl.gz.")],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes that the file is to hold.")] = 100,
    mix: Annotated[
        str, typer.Option(help="Who plays: kinds of player with their shares.")
    ] = "expert=3,noisy=3,random=1",
    processes: Annotated[int, typer.Option(min=1, help="Processes that play.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Episodes in a row that play one task.")] = 1,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Longest episode; the domain's own limit if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same file.")] = 0,
    split: Annotated[str, typer.Option(help="Split of the real environment's tasks.")] = "train",
    option: Annotated[list[str] | None, typer.Option(help="Option of the real environment, name=value.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an interrupted recording left.")] = False,
    as_json: Json = False,
) -> None:
    """Record players in the real environment.

    Example: dreamgym record alfworld --episodes 200 --out runs/alfworld.jsonl.gz --mix expert=3,noisy=3,random=1

    An interrupted recording loses the episodes in flight at most; the same command with --resume goes on with it.
    """
    players, options = mixture(mix), {"split": split, **settings(option)}
    with session(as_json) as output:
        from dreamgym_envs.cli.data import record_with_bar
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.trajectories.record import Plan

        played = get_domain(domain)
        plan = Plan(players, seed, steps or played.max_episode_steps, repeats, options)
        report = record_with_bar(played, out, episodes, plan, processes, resume)
        result = {
            "domain": domain,
            "out": str(out),
            "episodes": report.episodes,
            "resumed": report.resumed,
            "transitions": report.transitions,
            "successes": report.successes,
            "by_player": dict(sorted(report.by_player.items())),
            "seconds": report.seconds,
            "transitions_per_second": report.transitions / max(report.seconds, 1e-9),
        }
        output.report(result, lambda console: console.print(share_table(f"recorded {domain}", result)))
