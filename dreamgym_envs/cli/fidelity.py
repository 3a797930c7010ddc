"""`dreamgym fidelity`: how true a dream is."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dreamgym_envs.cli.console import DomainName, Json, progress_bar, session
from dreamgym_envs.cli.environments import Threshold
from dreamgym_envs.cli.record import mixture

if TYPE_CHECKING:
    from rich.console import Console

    from dreamgym_envs.trajectories.record import Plan


def fidelity(
    domain: DomainName,
    model: Annotated[str, typer.Option(help='"embedded" or a checkpoint directory.')] = "embedded",
    data: Annotated[
        str,
        typer.Option(help='Real episodes: "generated", or "official" where there are any, recorded now; or a file.'),
    ] = "generated",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes.")] = 120,
    limit: Annotated[int | None, typer.Option(min=1, help="Most transitions judged one by one.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Longest episode; the domain's own limit if left out.")
    ] = None,
    mix: Annotated[
        str, typer.Option(help="Who plays: kinds of player with their shares.")
    ] = "expert=1,noisy=1,random=1",
    threshold: Threshold = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes that record; one a core if left out.")] = None,
    mistakes: Annotated[int, typer.Option(min=0, help="Wrong predictions to show in full.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of recording and dreams.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure an experience model on real episodes that it was not trained on.

    Example: dreamgym fidelity alfworld --episodes 60 --json

    Single steps are compared with what really happened; players play the same tasks in the dream as in reality.
    """
    players = mixture(mix)
    with session(as_json) as output:
        from dreamgym_envs.cli.data import held_out_episodes
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.evaluation.fidelity import fidelity as run
        from dreamgym_envs.experience import THRESHOLD, load_model
        from dreamgym_envs.trajectories.record import Plan

        measured = get_domain(domain)
        longest = steps or measured.max_episode_steps
        loaded = load_model(model, measured, threshold=THRESHOLD if threshold is None else threshold)

        def plan(options: dict[str, Any]) -> "Plan":
            return Plan(players, seed, longest, options=options)

        trajectories = held_out_episodes(measured, data, episodes, plan, processes)
        with progress_bar() as bar:
            lines: dict[str, Any] = {}

            def show(stage: str, done: int, total: int) -> None:
                if stage not in lines:
                    lines[stage] = bar.add_task(stage, total=total, note="")
                bar.update(lines[stage], completed=done)

            result = run(
                measured,
                loaded,
                trajectories,
                data=data,
                limit=limit,
                max_steps=longest,
                seed=seed,
                mistakes=mistakes,
                progress=show,
            )
        output.report({"model": model, **result}, lambda console: _show(console, result))


def _show(console: "Console", result: dict[str, Any]) -> None:
    from rich.table import Table

    steps = Table(title=f"{result['domain']}, {result['data']}: {result['n']} single steps", title_justify="left")
    for name in ("verb", "steps", "all exact", "deterministic", "exact"):
        steps.add_column(name, justify="left" if name == "verb" else "right")
    for verb, part in (*result["by_verb"].items(), ("all", result)):
        shares = (part["n"], part["all_exact"], part["deterministic"], part["deterministic_exact"])
        steps.add_row(verb, *map(_number, shares))
    console.print(steps)
    facts = Table(show_header=False, box=None)
    for name in (
        "success_recall",
        "success_precision",
        "false_success_per_1000",
        "reward_mae",
        "invalid",
        "contradictions_per_100",
        "paid_satisfied",
        "failed_starts",
    ):
        facts.add_row(name.replace("_", " "), _number(result[name]))
    for name, share in result["enum_accuracy"].items():
        facts.add_row(f"{name.replace('_', ' ')} right", _number(share))
    console.print(facts)
    players = Table(title="success on the same tasks, 95 % interval", title_justify="left")
    for name in ("player", "episodes", "real", "dream"):
        players.add_column(name, justify="left" if name == "player" else "right")
    for key in result:
        if key.endswith("_episodes"):
            player = key.removesuffix("_episodes")
            players.add_row(
                player,
                str(result[key]),
                *(
                    f"{result[f'{player}_success_{source}']:.3f} "
                    f"[{result[f'{player}_success_{source}_ci95'][0]:.3f}, "
                    f"{result[f'{player}_success_{source}_ci95'][1]:.3f}]"
                    for source in ("real", "dream")
                ),
            )
    console.print(players)
    for mistake in result["mistakes"]:
        console.print()
        for name, value in mistake.items():
            console.print(f"{name.replace('_', ' ')}: {value}", markup=False)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
