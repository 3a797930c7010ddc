"""An unfinished run on disk: weights, optimisers and place in the data, from which an interrupted fit goes on."""

import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

FILE = "training.pt"


class Unfinished:
    """The state of a run, written again and again while it lasts.

    Args:
        directory: Where the checkpoint will be.
        run: What the run is made of, as plain numbers and strings; another run does not go on from its state.
    """

    def __init__(self, directory: Path, run: Mapping[str, int | float | str]) -> None:
        self.path = directory / FILE
        self.run = dict(run)

    def save(
        self, model: torch.nn.Module, optimisers: Sequence[torch.optim.Optimizer], step: int, epoch: int, place: int
    ) -> None:
        """Write the state; an interruption leaves the old one or the new one."""
        state = {
            "run": self.run,
            "model": model.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in optimisers],
            "place": (step, epoch, place),
        }
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self.path)

    def load(self, model: torch.nn.Module, optimisers: Sequence[torch.optim.Optimizer]) -> tuple[int, int, int] | None:
        """Bring model and optimisers to where the run was; return its (step, epoch, place), None if there is none.

        Raises:
            ValueError: The state is damaged, or of another run.
        """
        if not self.path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, weights_only=True)
            found: dict[str, Any] = state["run"]
        except (RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError) as error:
            raise ValueError(f"{self.path} holds no state of a fit; delete it and fit without --resume") from error
        for name in {**self.run, **found}:
            if self.run.get(name) != found.get(name):
                raise ValueError(
                    f"{self.path} is of a fit with {name}={found.get(name)}, this one has {name}={self.run.get(name)}; "
                    "resume with the command that began it, or fit without --resume"
                )
        model.load_state_dict(state["model"])
        for optimiser, saved in zip(optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        step, epoch, place = state["place"]
        return step, epoch, place

    def done(self) -> None:
        """Remove the state: the run has ended."""
        self.path.unlink(missing_ok=True)
