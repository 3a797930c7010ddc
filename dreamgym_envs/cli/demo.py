"""`dreamgym demo`: the whole idea in minutes: clone, train in the dream, play for real."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dreamgym_envs.cli.console import DomainName, Json, notes, session

if TYPE_CHECKING:
    from rich.console import Console


def demo(
    domain: DomainName,
    steps: Annotated[int, typer.Option(min=1, help="Steps of training in the dream.")] = 40_000,
    episodes: Annotated[int, typer.Option(min=1, help="Real held-out tasks that each agent plays.")] = 100,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Demonstrations of the warm start; the domain's own number if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the agents are kept; nowhere if left out.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    as_json: Json = False,
) -> None:
    """Train an agent in a dream alone, then let it play in the real environment beside a random and a cloned one.

    Example: dreamgym demo alfworld
    """
    with session(as_json) as output, TemporaryDirectory() as scratch:
        import time

        from dreamgym_envs.agents.cloning import CloneConfig, clone
        from dreamgym_envs.agents.training import train
        from dreamgym_envs.cli.data import read_file
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.evaluation.transfer import evaluate
        from dreamgym_envs.trajectories import shipped_trajectories

        began = time.monotonic()
        shown = get_domain(domain)
        dream, real = f"DreamGym/{shown.title}-v0", f"DreamGym/{shown.title}Real-v0"
        folder = (out or Path(scratch)) / "dream"
        notes.rule("1. a warm start from offline demonstrations")
        offline = read_file(shown, shipped_trajectories(domain))
        warm = clone(shown, offline, CloneConfig(episodes=limit or shown.demonstrations, seed=seed))
        notes.rule(f"2. {steps:,} steps of MaskablePPO in {dream}")
        trained = train(dream, folder, steps=steps, seed=seed, warm_start=warm)
        notes.rule(f"3. {episodes} held-out tasks in {real}")
        rows = []
        for name, agent in (("random", "random"), ("warm start", warm), ("trained in the dream", str(folder))):
            notes.print(name)
            found = evaluate(real, agent, episodes, seed, env_options={"split": "test"})
            rows.append(
                {
                    "agent": name,
                    "success": found.success,
                    "ci95": list(found.ci95),
                    "mean_return": found.mean_return,
                    "steps": found.mean_length,
                }
            )
        result = {
            "domain": domain,
            "episodes": episodes,
            "train_steps": trained.steps,
            "rows": rows,
            "seconds": round(time.monotonic() - began, 1),
        }
        output.report(result, lambda console: _show(console, result))


def _show(console: "Console", result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"{result['episodes']} real tasks that nobody trained on", title_justify="left")
    for column in ("agent", "success", "95 % interval", "mean return", "mean steps"):
        table.add_column(column, justify="left" if column == "agent" else "right")
    for row in result["rows"]:
        low, high = row["ci95"]
        numbers = (
            f"{row['success']:.2f}",
            f"{low:.2f} to {high:.2f}",
            f"{row['mean_return']:.2f}",
            f"{row['steps']:.1f}",
        )
        table.add_row(row["agent"], *numbers)
    console.print(table)
    console.print(f"{result['train_steps']:,} dream steps, no real ones; {result['seconds'] / 60:.1f} minutes in all")
