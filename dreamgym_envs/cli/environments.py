"""The options by which commands choose an environment's variant, and what they mean to `gym.make`."""

from typing import Annotated, Any

import typer

__all__ = ["Model", "Option", "Split", "Threshold", "env_options", "settings"]

Model = Annotated[
    str | None, typer.Option(help='Who plays a dream: "embedded" (if left out) or a checkpoint directory.')
]
Threshold = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Probability that a dream's verdict needs before it pays; measured if left out."),
]
Split = Annotated[str | None, typer.Option(help="Split of the tasks; the environment's own default if left out.")]
Option = Annotated[
    list[str] | None,
    typer.Option(help="Another argument of the environment, name=value; may be repeated: games=official."),
]


def settings(texts: list[str] | None) -> dict[str, Any]:
    """Return the keyword arguments that texts like "split=valid" give; whole numbers and true/false are read as such.

    Raises:
        typer.BadParameter: One has no "=".
    """
    options: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is no option; expected name=value")
        options[name] = {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)
    return options


def env_options(
    env_id: str, model: str | None, threshold: float | None, split: str | None, option: list[str] | None
) -> dict[str, Any]:
    """Return the keyword arguments of `gym.make`.

    Raises:
        typer.BadParameter: A dream's option is given for a real environment.
    """
    from dreamgym_envs.registration import ENVIRONMENTS

    dreamt = any(row.id == env_id and row.kind == "dream" for row in ENVIRONMENTS)
    if not dreamt and (model is not None or threshold is not None):
        raise typer.BadParameter(f"{env_id} is a real environment; --model and --threshold belong to a dream")
    options = settings(option)
    if model is not None:
        options["model"] = model
    if threshold is not None:
        options["model_options"] = {"threshold": threshold}
    if split is not None:
        options["split"] = split
    return options
