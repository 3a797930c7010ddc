"""The decoders' contract: one call for prefill, decode, mixed lengths and forced chunks.

A decoder holds a checkpoint's weights, which any number of threads may share. A session holds one thread's key-value
cache. Masks and sampling live outside (`experience.generation`): a decoder maps tokens to logits and nothing else.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int32]
Logits = NDArray[np.float32]


class DecoderError(ValueError):
    """A checkpoint that cannot be decoded, or a backend that cannot decode it."""


@runtime_checkable
class Session(Protocol):
    """A key-value cache with its forward pass; for one thread at a time."""

    def reset(self, rows: int) -> None:
        """Forget everything cached and take `rows` new rows. Memory is kept, and grows when it must."""
        ...

    def forward(self, ids: Indices, row: Indices, position: Indices, last: Indices) -> Logits:
        """Run tokens through the model and cache them.

        The tokens are a flat list without padding. Tokens of one row are contiguous and in order, and follow what the
        row has cached: a new row starts at position 0.

        Args:
            ids: Token ids, int32 [T].
            row: Cache row of each token, int32 [T], in [0, rows).
            position: Position of each token in its row, int32 [T].
            last: Indices into the T tokens, increasing, whose next-token logits are wanted, int32 [n].

        Returns:
            Logits, float32 [n, vocabulary size]; the caller may change them.

        Raises:
            ValueError: A token, row, position or index is out of range.
        """
        ...


@runtime_checkable
class Decoder(Protocol):
    """A checkpoint's weights, ready to decode.

    Attributes:
        backend: "numpy", "numba" or "torch".
        vocabulary_size: Number of tokens that the model knows.
        max_length: Number of positions that the model was made for.
        batch_invariant: Whether a token's logits depend on nothing but its row, down to the bit: not on the other rows,
            and not on how the row was cut into calls.
        best_rows: Rows of a session beyond which a batch is not faster, or slower because its cache outgrows the
            processor's; decode larger batches in parts, one after the other in the same session.
    """

    backend: str
    vocabulary_size: int
    max_length: int
    batch_invariant: bool
    best_rows: int

    def session(self) -> Session:
        """Open a session of no rows. Sessions of one decoder may run in different threads at the same time."""
        ...


def check_inputs(
    ids: Indices, row: Indices, position: Indices, last: Indices, vocabulary: int, rows: int, length: int
) -> None:
    """Check the arguments of `Session.forward` against a session's limits.

    Raises:
        ValueError: A token, row, position or index is out of range; the message says which.
    """
    tokens = len(ids)
    if not tokens == len(row) == len(position):
        raise ValueError(f"ids, row and position must be equally long, got {tokens}, {len(row)}, {len(position)}")
    if len(last) and (last[0] < 0 or last[-1] >= tokens or (len(last) > 1 and not (last[1:] > last[:-1]).all())):
        raise ValueError(f"last must be increasing indices into {tokens} tokens, got {last.tolist()}")
    if tokens == 0:
        return
    for name, values, limit in (("token ids", ids, vocabulary), ("rows", row, rows), ("positions", position, length)):
        # As unsigned numbers negative ones are the largest.
        if np.maximum.reduce(values.view(np.uint32)) >= limit:
            low, high = values.min(), values.max()
            raise ValueError(f"{name} must be in [0, {limit}), got {low} to {high}. Rows come from reset(rows).")
