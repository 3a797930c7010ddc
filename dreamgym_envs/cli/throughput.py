"""`dreamgym throughput`: how fast a dream is."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dreamgym_envs.cli.console import DomainName, Json, progress_bar, session

if TYPE_CHECKING:
    from rich.console import Console


def throughput(
    domain: DomainName = "alfworld",
    model: Annotated[str, typer.Option(help='"embedded" or a checkpoint directory.')] = "embedded",
    num_envs: Annotated[list[int] | None, typer.Option(min=1, help="Numbers of environments; may be repeated.")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Seconds a row and round.")] = 2.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; a row's speed is their median.")] = 3,
    real: Annotated[bool, typer.Option(help="Run the real environment beside it.")] = True,
    generate: Annotated[bool, typer.Option(help="Run transformers' generate() beside it.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of tasks and actions.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure steps a second of the dream, the real environment and transformers' generate() in one run.

    Example: dreamgym throughput alfworld --seconds 1 --rounds 2 --json
    """
    with session(as_json) as output:
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.evaluation.throughput import SIZES
        from dreamgym_envs.evaluation.throughput import throughput as run

        with progress_bar("rows") as bar:
            line = bar.add_task("measuring", total=None, note="")

            def show(name: str) -> None:
                bar.update(line, advance=1, note=name)

            result = run(
                get_domain(domain),
                model,
                sizes=sorted(set(num_envs or SIZES)),
                seconds=seconds,
                rounds=rounds,
                real=real,
                generate=generate,
                seed=seed,
                progress=show,
            )
            bar.update(line, note="")
        output.report(result, lambda console: _show(console, result))


def _show(console: "Console", result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"{result['domain']}: steps a second", title_justify="left")
    for name in ("what", "backend", "batch", "threads", "cache", "steps/s"):
        table.add_column(name, justify="left" if name in ("what", "backend") else "right")
    for row in result["rows"]:
        cache = f"hit {row['cache_hit_rate']:.1%}" if row["cache_hit_rate"] is not None else "off"
        what = row["env"] if row["what"] == "environment" else f"{row['env']}, model alone"
        table.add_row(
            what, row["backend"], str(row["num_envs"]), str(row["threads"]), cache, f"{row['steps_per_second']:.0f}"
        )
    console.print(table)
    for name, value in result.items():
        if name in ("dream_over_real", "dream_over_lean_real", "predict_over_generate"):
            console.print(
                f"{name.replace('_', ' ')}: " + ", ".join(f"{ratio:.1f}x at {size}" for size, ratio in value.items())
            )
        elif name in ("numpy_over_real", "cache_gain"):
            console.print(f"{name.replace('_', ' ')}: {value:.2f}x")
