"""The default decoder: a Llama in NumPy, whose results for a row do not depend on the rest of the batch.

Fast because little is left to do: norm gains and the attention's scale are folded into the matrices, RoPE is one complex
multiplication, SiLU a tanh, the last layer is computed at the wanted positions only, tokens go through in blocks that stay
in cache, and matrix products see no padding.

Batch invariance, down to the bit, comes from how BLAS sums. A product of a matrix of two or more rows sums each element over
k in order, however many rows there are, as long as the right matrix is row-major and its width a multiple of `LANES`; a
single row takes another path (gemv), and so do the last columns of other widths. So a lone token is computed twice, widths
are padded, and softmax sums in blocks of `LANES`. A test holds this for the BLAS at hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.experience.decoders.base import Indices, Logits
from dreamgym_envs.experience.decoders.llama import Floats, LlamaWeights, rotations

LANES = 16
"""Widths of matrices are padded to a multiple of this."""

BLOCK_TOKENS = 264
"""Most tokens that go through the layers together (some 8 prompts): more fall out of the processor's cache."""

MIN_LENGTH = 64
"""Positions of the smallest cache."""


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Floats
    output: Floats
    gate_up: Floats
    down: Floats


class NumpyDecoder:
    """Decodes a Llama with NumPy. Implements `Decoder`.

    Args:
        weights: The checkpoint's weights.

    Example:
        >>> decoder = NumpyDecoder(weights)  # doctest: +SKIP
        >>> session = decoder.session()  # doctest: +SKIP
        >>> session.reset(rows=1)  # doctest: +SKIP
        >>> zero = np.zeros(1, np.int32)  # doctest: +SKIP
        >>> session.forward(ids=zero, row=zero, position=zero, last=zero).shape  # doctest: +SKIP
        (1, 1400)
    """

    backend = "numpy"

    def __init__(self, weights: LlamaWeights) -> None:
        shape = self.shape = weights.shape
        self.vocabulary_size = shape.vocabulary
        self.max_length = shape.max_length
        # x / sqrt(mean(x^2) + e) = x / sqrt(sum(x^2) + n e) * sqrt(n): the last factor joins the gain.
        root = np.float32(np.sqrt(shape.hidden))
        interleaved = _interleaved(shape.heads + shape.kv_heads, shape.head_dim)
        queries = shape.heads * shape.head_dim
        layers = []
        for layer in weights.layers:
            qkv = layer.qkv * (layer.attention_norm * root)[:, None]
            qkv[:, :queries] *= np.float32(shape.head_dim**-0.5)
            qkv[:, : len(interleaved)] = qkv[:, interleaved]
            gate_up = layer.gate_up * (layer.mlp_norm * root)[:, None]
            gate_up[:, : shape.feed_forward] *= np.float32(0.5)
            layers.append(
                _Layer(
                    _padded(qkv),
                    _padded(layer.output),
                    np.concatenate([_padded(half) for half in np.split(gate_up, 2, axis=1)], axis=1),
                    _padded(_padded(layer.down.T).T),
                )
            )
        self.layers: Sequence[_Layer] = tuple(layers)
        self.embedding = _padded(weights.embedding)
        self.head = _padded(weights.head * (weights.norm * root)[:, None])
        self.epsilon = np.float32(shape.hidden * shape.epsilon)

    def session(self) -> "NumpySession":
        """Open a session of no rows."""
        return NumpySession(self)


class NumpySession:
    """A cache and the forward pass over it. Implements `Session`."""

    def __init__(self, decoder: NumpyDecoder) -> None:
        self._decoder = decoder
        self._rows = 0
        self._allocate(0, MIN_LENGTH)

    def _allocate(self, rows: int, length: int) -> None:
        """Take memory for `rows` rows of `length` positions. Zeros, since masked positions must be finite."""
        shape = self._decoder.shape
        self._capacity = length
        self._keys = np.zeros((shape.layers, rows, shape.kv_heads, shape.head_dim, length), np.float32)
        self._values = np.zeros((shape.layers, rows, shape.kv_heads, length, _up(shape.head_dim)), np.float32)
        self._rotations = rotations(shape, length)

    def reset(self, rows: int) -> None:
        """Forget everything cached and take `rows` new rows."""
        if rows < 0:
            raise ValueError(f"rows must be at least 0, got {rows}")
        if rows > self._keys.shape[1]:
            self._allocate(rows, self._capacity)
        self._rows = rows

    def forward(self, ids: Indices, row: Indices, position: Indices, last: Indices) -> Logits:
        """Run tokens through the model and cache them; see `Session.forward`."""
        decoder = self._decoder
        logits = np.empty((len(last), decoder.vocabulary_size), np.float32)
        if len(ids) == 0:
            return logits
        self._check(ids, row, position, last)
        done = 0
        for start, stop in _blocks(row):
            end = int(np.searchsorted(last, stop)) if stop < len(ids) else len(last)
            wanted = last[done:end] - start
            hidden = self._layers(ids[start:stop], row[start:stop], position[start:stop], wanted)
            if hidden is not None:
                logits[done:end] = (hidden @ decoder.head)[: end - done, : decoder.vocabulary_size]
            done = end
        return logits

    def _check(self, ids: Indices, row: Indices, position: Indices, last: Indices) -> None:
        """Check what comes from outside, and grow the cache where positions need it."""
        decoder = self._decoder
        if not len(ids) == len(row) == len(position):
            raise ValueError(f"ids, row and position must be equally long, got {len(ids)}, {len(row)}, {len(position)}")
        if ids.min() < 0 or ids.max() >= decoder.vocabulary_size:
            raise ValueError(f"token ids must be in [0, {decoder.vocabulary_size}), got {ids.min()} to {ids.max()}")
        if row.min() < 0 or row.max() >= self._rows:
            raise ValueError(
                f"rows must be in [0, {self._rows}), got {row.min()} to {row.max()}; call reset(rows) first"
            )
        longest = int(position.max())
        if position.min() < 0 or longest >= decoder.max_length:
            raise ValueError(f"positions must be in [0, {decoder.max_length}), got {position.min()} to {longest}")
        if len(last) and (last[0] < 0 or last[-1] >= len(ids) or (len(last) > 1 and not (last[1:] > last[:-1]).all())):
            raise ValueError(f"last must be increasing indices into {len(ids)} tokens, got {last.tolist()}")
        if longest >= self._capacity:
            keys, values = self._keys, self._values
            self._allocate(keys.shape[1], min(_up(decoder.max_length), max(2 * self._capacity, _up(longest + 1))))
            self._keys[..., : keys.shape[-1]] = keys
            self._values[:, :, :, : values.shape[3]] = values

    def _layers(self, ids: Indices, row: Indices, position: Indices, wanted: Indices) -> Floats | None:
        """Return the normed last hidden states at the wanted tokens [max(2, n), hidden], or None if there are none."""
        decoder = self._decoder
        if len(ids) == 1:
            ids, row, position = np.repeat(ids, 2), np.repeat(row, 2), np.repeat(position, 2)
            wanted = np.repeat(wanted, 2)
            wanted[1:] = 1
        elif len(wanted) == 1:
            wanted = np.repeat(wanted, 2)
        plan = _Plan.make(row, position, decoder.shape.heads // decoder.shape.kv_heads)
        rotation = self._rotations[position][:, None]
        x = decoder.embedding[ids]
        for index in range(len(decoder.layers) - 1):
            x = self._layer(index, x, rotation, plan, plan, None)
        if len(wanted) == 0:
            self._cache(len(decoder.layers) - 1, x, rotation, plan)
            return None
        if len(wanted) == len(row):
            x = self._layer(len(decoder.layers) - 1, x, rotation, plan, plan, None)
        else:
            pruned = _Plan.make(row[wanted], position[wanted], decoder.shape.heads // decoder.shape.kv_heads)
            x = self._layer(len(decoder.layers) - 1, x, rotation, plan, pruned, wanted)
        return self._norm(x)

    def _norm(self, x: Floats) -> Floats:
        squares = np.add.reduce(x * x, axis=1, keepdims=True)
        squares += self._decoder.epsilon
        return np.divide(x, np.sqrt(squares, out=squares))

    def _cache(self, index: int, x: Floats, rotation: NDArray[np.complex64], plan: "_Plan") -> Floats:
        """Cache the keys and values of a layer's input; return its rotated queries [tokens, heads, head_dim]."""
        shape = self._decoder.shape
        tokens = len(x)
        turned = shape.heads + shape.kv_heads
        qkv = self._norm(x) @ self._decoder.layers[index].qkv
        joined = qkv[:, : (turned + shape.kv_heads) * shape.head_dim].reshape(tokens, -1, shape.head_dim)
        both = joined[:, :turned].view(np.complex64)
        both *= rotation
        self._keys[index][plan.row, :, :, plan.position] = joined[:, shape.heads : turned]
        self._values[index][plan.row, :, plan.position, : shape.head_dim] = joined[:, turned:]
        return joined[:, : shape.heads]

    def _layer(
        self,
        index: int,
        x: Floats,
        rotation: NDArray[np.complex64],
        plan: "_Plan",
        pruned: "_Plan",
        wanted: Indices | None,
    ) -> Floats:
        """Run one layer over all tokens, or over the wanted ones where only they are needed after it."""
        layer = self._decoder.layers[index]
        queries = self._cache(index, x, rotation, plan)
        if wanted is not None:
            queries, x = queries[wanted], x[wanted]
        x = x + self._attend(index, queries, pruned) @ layer.output
        hidden = self._norm(x) @ layer.gate_up
        half = hidden.shape[1] // 2
        gate, up = hidden[:, :half], hidden[:, half:]
        # silu(2 g) = g (1 + tanh g); the matrix holds half the gate.
        active = np.tanh(gate)
        active += 1.0
        active *= gate
        active *= up
        x += active @ layer.down
        return x

    def _attend(self, index: int, queries: Floats, plan: "_Plan") -> Floats:
        """Return attention's output [tokens, heads * head_dim] for rotated, scaled queries."""
        shape = self._decoder.shape
        groups, tokens = shape.heads // shape.kv_heads, len(queries)
        slots, length = plan.slots, plan.length
        height = groups * plan.width
        stacked = np.zeros((slots, shape.kv_heads, max(2, height), shape.head_dim), np.float32)
        by_token = stacked[:, :, :height].reshape(slots, shape.kv_heads, groups, plan.width, shape.head_dim)
        by_token[plan.slot, :, :, plan.offset] = queries.reshape(tokens, shape.kv_heads, groups, shape.head_dim)
        scores = stacked @ self._keys[index, plan.rows, :, :, :length]
        seen = scores[:, :, :height].reshape(slots, shape.kv_heads, groups, plan.width, length)
        seen += plan.bias
        seen -= seen.max(axis=-1, keepdims=True)
        np.exp(seen, out=seen)
        total = seen.reshape(*seen.shape[:-1], length // LANES, LANES).sum(axis=-2).sum(axis=-1, keepdims=True)
        mixed = scores @ self._values[index, plan.rows, :, :length]
        mixed = mixed[:, :, :height, : shape.head_dim].reshape(
            slots, shape.kv_heads, groups, plan.width, shape.head_dim
        )
        mixed /= total
        return mixed[plan.slot, :, :, plan.offset].reshape(tokens, shape.heads * shape.head_dim)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a block's tokens meet the cache: one slot a cache row, padded to the longest chunk.

    Attributes:
        row: Cache row of each token.
        position: Position of each token.
        rows: Cache rows of the slots: a slice where few rows between are unused, else an array (which copies).
        slots: Number of slots.
        slot: Slot of each token.
        offset: Index of each token in its slot.
        width: Tokens of the longest chunk.
        length: Cached positions that attention reads, a multiple of LANES.
        bias: Zero where a token sees a position, else -inf [slots, 1, 1, width, length].
    """

    row: Indices
    position: Indices
    rows: slice | Indices
    slots: int
    slot: NDArray[np.intp]
    offset: NDArray[np.intp]
    width: int
    length: int
    bias: Floats

    @classmethod
    def make(cls, row: Indices, position: Indices, groups: int) -> "_Plan":
        """Plan a block of tokens; tokens of one row are contiguous."""
        tokens = len(row)
        changes = np.flatnonzero(row[1:] != row[:-1]) + 1
        starts = np.concatenate([[0], changes])
        counts = np.diff(starts, append=tokens)
        width = int(counts.max())
        used = row[starts]
        first, stop = int(used.min()), int(used.max()) + 1
        rows: slice | Indices
        if stop - first <= 2 * len(starts):
            rows, slots, slot_of_chunk = slice(first, stop), stop - first, (used - first).astype(np.intp)
        else:
            rows, slots, slot_of_chunk = used, len(starts), np.arange(len(starts))
        slot = np.repeat(slot_of_chunk, counts)
        offset = np.arange(tokens) - np.repeat(starts, counts)
        length = _up(int(position.max()) + 1)
        # Slots and places without a token see everything: they are computed and never read.
        until = np.full((slots, width), length, np.int32)
        until[slot, offset] = position
        bias = np.where(np.arange(length, dtype=np.int32) <= until[:, :, None], np.float32(0), np.float32(-np.inf))
        return cls(row, position, rows, slots, slot, offset, width, length, bias[:, None, None])


def _blocks(row: Indices) -> list[tuple[int, int]]:
    """Cut a flat list into blocks of about BLOCK_TOKENS tokens, at row boundaries."""
    tokens = len(row)
    if tokens <= BLOCK_TOKENS:
        return [(0, tokens)]
    ends = [*(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist(), tokens]
    blocks = []
    start = previous = 0
    for end in ends:
        if end - start > BLOCK_TOKENS and previous > start:
            blocks.append((start, previous))
            start = previous
        previous = end
    blocks.append((start, tokens))
    return blocks


def _interleaved(heads: int, head_dim: int) -> NDArray[np.intp]:
    """Return the column order that puts the two halves of a RoPE pair side by side, as a complex number has them."""
    pairs = np.arange(head_dim).reshape(2, head_dim // 2).T.ravel()
    return (np.arange(heads)[:, None] * head_dim + pairs).ravel()


def _up(width: int) -> int:
    return -(-width // LANES) * LANES


def _padded(matrix: Floats) -> Floats:
    """Return a row-major copy with zero columns up to a multiple of LANES."""
    out = np.zeros((matrix.shape[0], _up(matrix.shape[1])), np.float32)
    out[:, : matrix.shape[1]] = matrix
    return out
