"""The fast decoder: a Llama in one compiled function (see `kernels`). Needs the extra `fast` (numba).

A row's results do not depend on the rest of the batch, down to the bit, and the GIL is free while it computes, so that
sessions in several threads run side by side.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.experience.decoders import kernels
from dreamgym_envs.experience.decoders.base import DecoderError, Indices, Logits, check_inputs
from dreamgym_envs.experience.decoders.llama import Floats, LlamaShape, LlamaWeights, rotations

MIN_LENGTH = 64
"""Positions of the smallest cache."""

CACHE_LINE = 64
"""Bytes: a vector that lies across two lines costs two accesses."""

_ROWS, _ALLOCATED, _CAPACITY = 8, 9, 10
"""Places in the `numbers` of `kernels.forward`."""


class NumbaDecoder:
    """Decodes a Llama with compiled kernels. Implements `Decoder`.

    Args:
        weights: The checkpoint's weights. They are kept as bfloat16 where that changes none of them.

    Raises:
        DecoderError: The widths do not fit the kernels' vectors.
    """

    backend = "numba"
    batch_invariant = True
    best_rows = 16

    def __init__(self, weights: LlamaWeights) -> None:
        shape = self.shape = weights.shape
        why = misfit(shape)
        if why:
            raise DecoderError(f"the numba kernels cannot run this checkpoint: {why}. Use backend='numpy'.")
        self.vocabulary_size = shape.vocabulary
        self.max_length = shape.max_length
        matrices: list[Floats] = []
        gains: list[Floats] = []
        for layer in weights.layers:
            matrices += [layer.qkv, layer.output, _gated(layer.gate_up), layer.down]
            gains += [layer.attention_norm, layer.mlp_norm]
        self.weights = _panels([*matrices, weights.head])
        self.gains = _aligned(np.concatenate([*gains, weights.norm]))
        self.embedding = _aligned(np.ravel(weights.embedding))

    def session(self) -> "NumbaSession":
        """Open a session of no rows."""
        return NumbaSession(self)


class NumbaSession:
    """A cache and the forward pass over it. Implements `Session`."""

    def __init__(self, decoder: NumbaDecoder) -> None:
        shape = decoder.shape
        self._decoder = decoder
        self._width = _up(shape.vocabulary)
        numbers = [shape.vocabulary, shape.hidden, shape.feed_forward, shape.layers, shape.heads, shape.kv_heads]
        self._numbers = np.array([*numbers, shape.head_dim, shape.max_length, 0, 0, 0], np.int64)
        self._kept = np.zeros(2 * kernels.BLOCK, np.int32)
        self._allocate(0, _up(MIN_LENGTH))

    def _allocate(self, rows: int, length: int) -> None:
        """Take memory for `rows` rows of `length` positions."""
        decoder, shape = self._decoder, self._decoder.shape
        queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        work = kernels.work_size(shape.hidden, queries + 2 * keys, queries, shape.feed_forward, length)
        turns = rotations(shape, length)
        self._keys, self._values = (_zeros(shape.layers * rows * keys * length, np.float32) for _ in range(2))
        self._numbers[_ALLOCATED], self._numbers[_CAPACITY] = rows, length
        self._arguments: tuple[Any, ...] = (
            self._numbers,
            np.float32(shape.epsilon),
            decoder.embedding,
            decoder.weights,
            decoder.gains,
            _aligned(np.concatenate([turns.real, turns.imag], axis=1).ravel()),
            self._keys,
            self._values,
            _zeros(work, np.float32),
            self._kept,
        )

    def reset(self, rows: int) -> None:
        """Forget everything cached and take `rows` new rows."""
        if rows < 0:
            raise ValueError(f"rows must be at least 0, got {rows}")
        if rows > self._numbers[_ALLOCATED]:
            self._allocate(rows, int(self._numbers[_CAPACITY]))
        self._numbers[_ROWS] = rows

    def forward(self, ids: Indices, row: Indices, position: Indices, last: Indices) -> Logits:
        """Run tokens through the model and cache them; see `Session.forward`."""
        count = len(last)
        # Micro-kernels write whole tiles: a few rows more than asked for, which nobody sees.
        out = np.empty((count + kernels.TILE, self._width), np.float32)
        code = kernels.forward(ids, row, position, last, *self._arguments, out.reshape(-1))
        if code == kernels.OK:
            return out[:count, : self._decoder.vocabulary_size]
        decoder = self._decoder
        rows = int(self._numbers[_ROWS])
        check_inputs(ids, row, position, last, decoder.vocabulary_size, rows, decoder.max_length)
        self._grow(int(position.max()) + 1)
        return self.forward(ids, row, position, last)

    def _grow(self, length: int) -> None:
        """Make room for more positions, and keep what is cached."""
        shape, keys, values = self._decoder.shape, self._keys, self._values
        rows, old = int(self._numbers[_ALLOCATED]), int(self._numbers[_CAPACITY])
        self._allocate(rows, min(_up(shape.max_length), max(2 * old, _up(length))))
        # A longer cache has more blocks of keys, and longer panels of values.
        heads = shape.layers * rows * shape.kv_heads
        panels = heads * shape.head_dim // kernels.PANEL
        if rows:
            self._keys.reshape(heads, -1)[:, : old * shape.head_dim] = keys.reshape(heads, -1)
            self._values.reshape(panels, -1)[:, : old * kernels.PANEL] = values.reshape(panels, -1)


def misfit(shape: LlamaShape) -> str | None:
    """Return why the kernels cannot run a shape, or None where they can."""
    for name, width, multiple in (
        ("hidden_size", shape.hidden, kernels.PANEL),
        ("head_dim", shape.head_dim, kernels.PANEL),
        ("intermediate_size", shape.feed_forward, kernels.LANES),
    ):
        if width % multiple:
            return f"{name} must be a multiple of {multiple} on this processor, got {width}"
    return None


def _up(width: int) -> int:
    return -(-width // kernels.PANEL) * kernels.PANEL


def _gated(gate_up: Floats) -> Floats:
    """Return [hidden, 2 * feed_forward] with the columns of gate and up side by side in every panel."""
    hidden = gate_up.shape[0]
    gate, up = (half.reshape(hidden, -1, kernels.LANES) for half in np.split(gate_up, 2, axis=1))
    return np.concatenate([gate, up], axis=2).reshape(hidden, -1)


def _panels(matrices: list[Floats]) -> NDArray[Any]:
    """Return matrices [k, n] by panels (see `kernels`), flat, one after the other; bfloat16 where that is exact."""
    flat = []
    for matrix in matrices:
        k, n = matrix.shape
        padded = np.zeros((k, _up(n)), np.float32)
        padded[:, :n] = matrix
        flat.append(padded.reshape(k, -1, kernels.PANEL).transpose(1, 0, 2).ravel())
    joined = np.concatenate(flat)
    bits = joined.view(np.uint32)
    if (bits & 0xFFFF).any():
        return _aligned(joined)
    halves = (bits >> 16).astype(np.uint16).reshape(-1, 2, kernels.LANES)
    return _aligned(halves.transpose(0, 2, 1).ravel())


def _zeros(size: int, dtype: Any) -> NDArray[Any]:
    """Return a flat array that starts at a cache line."""
    wanted = size * np.dtype(dtype).itemsize
    raw = np.zeros(wanted + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + wanted].view(dtype)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that starts at a cache line."""
    out = _zeros(array.size, array.dtype)
    out[:] = array
    return out
