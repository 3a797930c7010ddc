"""The fast decoder: a Llama in one compiled function (see `kernels`), whose results for a row do not depend on the rest of the
batch, down to the bit. Needs the extra `fast` (numba).
"""

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.experience.decoders import kernels
from dreamgym_envs.experience.decoders.base import DecoderError, Indices, Logits, check_inputs
from dreamgym_envs.experience.decoders.llama import Floats, LlamaShape, LlamaWeights, rotations

MIN_LENGTH = 64
"""Positions of the smallest cache."""

_ALIGNMENT = 64
"""Bytes in a cache line: vectors that cross one cost two accesses."""

class NumbaDecoder:
    """Decodes a Llama with kernels of its own. Implements `Decoder`.

    Args:
        weights: The checkpoint's weights.

    Raises:
        DecoderError: The widths do not fit the kernels' vectors.
    """

    backend = "numba"

    def __init__(self, weights: LlamaWeights) -> None:
        shape = self.shape = weights.shape
        why = misfit(shape)
        if why:
            raise DecoderError(f"the numba kernels cannot run this checkpoint: {why}. Use backend='numpy'.")
        self.vocabulary_size = shape.vocabulary
        self.max_length = shape.max_length
        matrices = []
        for layer in weights.layers:
            gate, up = (
                half.reshape(shape.hidden, -1, kernels.LANES) for half in np.split(layer.gate_up, 2, axis=1)
            )
            gated = np.concatenate([gate, up], axis=2).reshape(shape.hidden, -1)
            matrices += [layer.qkv, layer.output, gated, layer.down]
        matrices.append(weights.head)
        self.embedding = _aligned(np.ravel(weights.embedding))
        self.weights = _panels(matrices)
        self.gains = _aligned(
            np.concatenate([gain for layer in weights.layers for gain in (layer.attention_norm, layer.mlp_norm)] + [weights.norm])
        )

    def session(self) -> "NumbaSession":
        """Open a session of no rows."""
        return NumbaSession(self)


class NumbaSession:
    """A cache and the forward pass over it. Implements `Session`."""

    def __init__(self, decoder: NumbaDecoder) -> None:
        shape = decoder.shape
        self._decoder = decoder
        self._width = -(-shape.vocabulary // kernels.PANEL) * kernels.PANEL
        self._epsilon = np.float32(shape.epsilon)
        self._kept = np.zeros(2 * kernels.BLOCK, np.int32)
        self._numbers = np.array(
            [shape.vocabulary, shape.hidden, shape.feed_forward, shape.layers, shape.heads, shape.kv_heads]
            + [shape.head_dim, shape.max_length, 0, 0, 0],
            np.int64,
        )
        self._allocate(0, MIN_LENGTH)

    def _allocate(self, rows: int, length: int) -> None:
        """Take memory for `rows` rows of `length` positions."""
        shape = self._decoder.shape
        self._rows_allocated, self._capacity = rows, length
        size = shape.layers * rows * shape.kv_heads * length * shape.head_dim
        self._keys, self._values = _empty(size, np.float32), _empty(size, np.float32)
        queries = shape.heads * shape.head_dim
        joined = queries + 2 * shape.kv_heads * shape.head_dim
        self._work = _empty(
            kernels.work_size(shape.hidden, joined, queries, shape.feed_forward, length), np.float32
        )
        turns = rotations(shape, length)
        self._rope = _aligned(np.concatenate([turns.real, turns.imag], axis=1).ravel())
        self._numbers[9:] = rows, length
        decoder = self._decoder
        self._arguments = (
            self._numbers,
            self._epsilon,
            decoder.embedding,
            decoder.weights,
            decoder.gains,
            self._rope,
            self._keys,
            self._values,
            self._work,
            self._kept,
        )

    def reset(self, rows: int) -> None:
        """Forget everything cached and take `rows` new rows."""
        if rows < 0:
            raise ValueError(f"rows must be at least 0, got {rows}")
        if rows > self._rows_allocated:
            self._allocate(rows, self._capacity)
        self._numbers[8] = rows

    def forward(self, ids: Indices, row: Indices, position: Indices, last: Indices) -> Logits:
        """Run tokens through the model and cache them; see `Session.forward`."""
        count, width = len(last), self._width
        out = np.empty((count + kernels.TILE, width), np.float32)
        code = kernels.forward(ids, row, position, last, *self._arguments, out.ravel())
        if code == kernels.OK:
            return out[:count, : self._decoder.vocabulary_size]
        decoder = self._decoder
        check_inputs(ids, row, position, last, decoder.vocabulary_size, int(self._numbers[8]), decoder.max_length)
        self._grow(int(position.max()) + 1)
        return self.forward(ids, row, position, last)

    def _grow(self, length: int) -> None:
        """Make room for more positions, and keep what is cached."""
        shape = self._decoder.shape
        keys, values, old = self._keys, self._values, self._capacity
        most = -(-shape.max_length // kernels.PANEL) * kernels.PANEL
        needed = -(-length // kernels.PANEL) * kernels.PANEL
        self._allocate(self._rows_allocated, min(most, max(2 * old, needed)))
        # Keys are blocks of positions, so a longer cache has more blocks; values have longer panels.
        heads = shape.layers * self._rows_allocated * shape.kv_heads
        self._keys.reshape(heads, -1)[:, : old * shape.head_dim] = keys.reshape(heads, -1)
        panels = heads * (shape.head_dim // kernels.PANEL)
        self._values.reshape(panels, -1)[:, : old * kernels.PANEL] = values.reshape(panels, -1)


def misfit(shape: LlamaShape) -> str | None:
    """Return why the kernels cannot run a shape, or None where they can."""
    for name, width, multiple in (
        ("hidden_size", shape.hidden, kernels.PANEL),
        ("head_dim", shape.head_dim, kernels.PANEL),
        ("intermediate_size", shape.feed_forward, kernels.LANES),
    ):
        if width % multiple:
            return f"{name} must be a multiple of {multiple}, got {width}"
    return None


def _panels(matrices: list[Floats]) -> NDArray[np.float32] | NDArray[np.uint16]:
    """Return matrices [k, n] by panels (see `kernels`), flat, one after the other; bfloat16 where that is exact."""
    flat = []
    for matrix in matrices:
        k, n = matrix.shape
        panels = -(-n // kernels.PANEL)
        padded = np.zeros((k, panels * kernels.PANEL), np.float32)
        padded[:, :n] = matrix
        flat.append(padded.reshape(k, panels, kernels.PANEL).transpose(1, 0, 2).ravel())
    joined = np.concatenate(flat)
    bits = joined.view(np.uint32)
    if (bits & 0xFFFF).any():
        return _aligned(joined)
    halves = (bits >> 16).astype(np.uint16).reshape(-1, 2, kernels.LANES)
    return _aligned(np.ascontiguousarray(halves.transpose(0, 2, 1)).ravel())


def _empty(size: int, dtype: type) -> NDArray[np.float32]:
    """Return zeros that start at a cache line."""
    raw = np.zeros(size * np.dtype(dtype).itemsize + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size * np.dtype(dtype).itemsize].view(dtype)


def _aligned(array: NDArray) -> NDArray:
    """Return a copy that starts at a cache line."""
    out = _empty(array.size, array.dtype.type)
    out[:] = array
    return out
