"""`dreamgym evaluate`: how often an agent succeeds."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dreamgym_envs.cli.console import EnvId, Json, session
from dreamgym_envs.cli.environments import Model, Option, Split, Threshold, env_options

if TYPE_CHECKING:
    from rich.console import Console


def evaluate(
    env_id: EnvId,
    agent: Annotated[str, typer.Option(help="random, expert, noisy, or the directory of a trained agent.")] = "random",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes.")] = 100,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Of a trained agent's choices; its own if left out, 0 takes the best.")
    ] = None,
    model: Model = None,
    threshold: Threshold = None,
    split: Split = None,
    option: Option = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes of a real environment; one a core.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of tasks and choices.")] = 0,
    as_json: Json = False,
) -> None:
    """Let an agent play, in a dream or in the real environment, and report its success with a 95 % interval.

    Example: dreamgym evaluate DreamGym/ALFWorldReal-v0 --agent runs/dream --episodes 100 --split test
    """
    options = env_options(env_id, model, threshold, split, option)
    with session(as_json) as output:
        from dreamgym_envs.evaluation.transfer import evaluate as run

        found = run(env_id, agent, episodes, seed, processes=processes, env_options=options, temperature=temperature)
        result = found.to_dict()
        output.report(result, lambda console: _show(console, result))


def _show(console: "Console", result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"{result['agent']} in {result['env']}", title_justify="left")
    table.add_column("task family")
    table.add_column("episodes", justify="right")
    table.add_column("success", justify="right")
    table.add_column("mean return", justify="right")
    for family, part in result["by_family"].items():
        table.add_row(family, str(part["episodes"]), f"{part['success']:.3f}", f"{part['mean_return']:.3f}")
    low, high = result["ci95"]
    success = f"{result['success']:.3f} [{low:.3f}, {high:.3f}]"
    table.add_row("all", str(result["episodes"]), success, f"{result['mean_return']:.3f}", style="bold")
    console.print(table)
    console.print(f"mean length {result['mean_length']:.1f}")
