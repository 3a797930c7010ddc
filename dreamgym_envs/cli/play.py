"""`dreamgym play`: be the agent."""

from typing import Annotated, Any

import typer

from dreamgym_envs.cli.console import EnvId, Json, notes, session, share_table
from dreamgym_envs.cli.environments import Model, Option, Split, Threshold, env_options

_HELP = "a number, an action in words, ? for all actions, q to stop"
_SHOWN = 24


def play(
    env_id: EnvId,
    task: Annotated[str | None, typer.Option(help="Id of the task; drawn with the seed if left out.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps after which to stop.")] = None,
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show what a dream's model thinks.")] = False,
    model: Model = None,
    threshold: Threshold = None,
    split: Split = None,
    option: Option = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of task and dream.")] = 0,
    as_json: Json = False,
) -> None:
    """Play an environment yourself: pick a numbered action or write one.

    Example: dreamgym play DreamGym/ALFWorld-v0 --reasoning
    """
    options = env_options(env_id, model, threshold, split, option)
    with session(as_json) as output:
        import gymnasium as gym

        import dreamgym_envs  # noqa: F401

        env = gym.make(env_id, render_mode="ansi", **options)
        try:
            _, info = env.reset(seed=seed, options=None if task is None else {"task_id": task})
            result: dict[str, Any] = {"env": env_id, "task_id": info["task_id"], "steps": 0, "return": 0.0}
            ended = False
            while not ended and (steps is None or result["steps"] < steps):
                notes.print(f"\n{env.render()}", markup=False)
                action = _ask(info["candidate_actions"])
                if action is None:
                    break
                _, reward, terminated, truncated, info = env.step(action)
                ended = terminated or truncated
                result["steps"] += 1
                result["return"] += float(reward)
                if reasoning and info["reasoning"]:
                    notes.print(info["reasoning"], style="dim", markup=False)
                if info["invalid_action"]:
                    notes.print(f"{action!r} is not in the grammar", style="yellow", markup=False)
            if ended:
                notes.print(f"\n{env.render()}", markup=False)
            result["success"] = bool(info["success"])
        finally:
            env.close()
        output.report(result, lambda console: console.print(share_table("played", result)))


def _ask(candidates: tuple[str, ...]) -> str | None:
    """Return the action that the person chooses, or None to stop."""
    _list(candidates[:_SHOWN], len(candidates))
    while True:
        try:
            notes.print(f"{_HELP}\n> ", end="", markup=False)
            answer = input().strip()
        except EOFError:
            return None
        if answer in ("q", "quit"):
            return None
        if answer == "?":
            _list(candidates, len(candidates))
        elif answer.isdigit() and int(answer) < len(candidates):
            return candidates[int(answer)]
        elif answer.isdigit():
            notes.print(f"there are {len(candidates)} actions, from 0", style="yellow")
        elif answer:
            return answer


def _list(candidates: tuple[str, ...], total: int) -> None:
    from rich.columns import Columns
    from rich.text import Text

    notes.print(Columns([Text(f"{number:3} {text}") for number, text in enumerate(candidates)], column_first=True))
    if len(candidates) < total:
        notes.print(f"... and {total - len(candidates)} more", style="dim")
