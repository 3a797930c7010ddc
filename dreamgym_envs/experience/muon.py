"""Muon: momentum with orthogonalised updates, for the weight matrices of small models.

Keller Jordan, "Muon: An optimizer for hidden layers in neural networks" (2024). `torch.optim.Muon` orthogonalises one
matrix at a time in bfloat16, which a CPU emulates: 119 ms a step for a 1 M-parameter Llama on one core against 30 ms
for this one, which stacks matrices of one shape in float32.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(torch.optim.Optimizer):
    """Stochastic gradient descent with Nesterov momentum whose updates are orthogonalised.

    Args:
        params: Matrices only (two dimensions).
        lr: Learning rate; an update has root mean square lr * sqrt(max(1, rows / columns)) / sqrt(columns).
        momentum: Decay of the momentum.
        weight_decay: Decoupled from the update: a step shrinks the matrix by lr * weight_decay.
        iterations: Newton-Schulz iterations.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        iterations: int = 5,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "iterations": iterations}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(tuple(matrix.shape), []).append(matrix)
            for (rows, columns), matrices in shapes.items():
                updates = torch.stack([self._momentum(matrix, group) for matrix in matrices])
                updates = orthogonalised(updates, group["iterations"])
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                    matrix.add_(update.to(matrix.dtype), alpha=-scale)

    def _momentum(self, matrix: Tensor, group: dict[str, Any]) -> Tensor:
        assert matrix.grad is not None
        state = self.state[matrix]
        buffer = state.setdefault("momentum", torch.zeros_like(matrix))
        buffer.lerp_(matrix.grad, 1 - group["momentum"])
        return matrix.grad.lerp(buffer, group["momentum"]).float()


def orthogonalised(matrices: Tensor, iterations: int = 5) -> Tensor:
    """Return the nearest semi-orthogonal matrices, roughly, by Newton-Schulz iteration.

    Args:
        matrices: float32 [n, rows, columns].
        iterations: Five give singular values within about 0.7 to 1.2.
    """
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x: Tensor = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
