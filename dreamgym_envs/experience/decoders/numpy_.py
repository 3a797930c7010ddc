"""The default decoder: a Llama in NumPy, whose results for a row do not depend on the rest of the batch.

Fast because little is left to do: norm gains and the attention's scale are folded into the matrices, RoPE is one
complex multiplication, SiLU a tanh, the last layer is computed at the wanted positions only, tokens go through in
blocks that stay in cache, and matrix products see no padding.

A row's results do not depend on the rest of the batch, down to the bit: `blas` says how products must be cut for that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.experience.decoders.base import Indices, Logits, check_inputs
from dreamgym_envs.experience.decoders.blas import LANES, padded_width, tile_height
from dreamgym_envs.experience.decoders.llama import Floats, LlamaWeights, rotations

BLOCK_TOKENS = 264
"""Most tokens that go through the layers together (some 8 prompts): more fall out of the processor's cache."""

TILE = 8
"""Rows of a product, where BLAS rounds by the number of rows."""

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
    best_rows = 64

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
                    _padded(qkv, rows=True),
                    _padded(layer.output),
                    np.concatenate([_padded(half, rows=True) for half in np.split(gate_up, 2, axis=1)], axis=1),
                    _padded(layer.down, rows=True),
                )
            )
        self.layers: Sequence[_Layer] = tuple(layers)
        self.embedding = _padded(weights.embedding)
        self.head = _padded(weights.head * (weights.norm * root)[:, None], rows=True)
        self.epsilon = np.float32(shape.hidden * shape.epsilon)
        first = self.layers[0]
        tile = tile_height([first.qkv, first.output, first.gate_up, first.down, self.head], shape.head_dim)
        self.batch_invariant = tile is not None
        self.tile = tile or 0

    def session(self) -> "NumpySession":
        """Open a session of no rows."""
        return NumpySession(self)


class NumpySession:
    """A cache and the forward pass over it. Implements `Session`."""

    def __init__(self, decoder: NumpyDecoder) -> None:
        self._decoder = decoder
        self._rows = 0
        self._memory: dict[str, Floats] = {}
        self._allocate(0, MIN_LENGTH)

    def _allocate(self, rows: int, length: int) -> None:
        """Take memory for `rows` rows of `length` positions. Zeros, since masked positions must be finite."""
        shape = self._decoder.shape
        self._capacity = length
        self._keys = np.zeros((shape.layers, rows, shape.kv_heads, shape.head_dim, length), np.float32)
        self._values = np.zeros((shape.layers, rows, shape.kv_heads, length, padded_width(shape.head_dim)), np.float32)
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
        check_inputs(ids, row, position, last, decoder.vocabulary_size, self._rows, decoder.max_length)
        logits = np.empty((len(last), decoder.vocabulary_size), np.float32)
        if len(ids) == 0:
            return logits
        longest = int(position.max())
        if longest >= self._capacity:
            self._grow(longest + 1)
        done = 0
        for start, stop in _blocks(row):
            end = int(np.searchsorted(last, stop)) if stop < len(ids) else len(last)
            hidden = self._layers(ids[start:stop], row[start:stop], position[start:stop], last[done:end] - start)
            if hidden is not None:
                logits[done:end] = self._product("logits", hidden, decoder.head)[
                    : end - done, : decoder.vocabulary_size
                ]
            done = end
        return logits

    def _grow(self, length: int) -> None:
        """Make room for more positions, and keep what is cached."""
        keys, values = self._keys, self._values
        longest = padded_width(self._decoder.max_length)
        self._allocate(keys.shape[1], min(longest, max(2 * self._capacity, padded_width(length))))
        self._keys[..., : keys.shape[-1]] = keys
        self._values[:, :, :, : values.shape[3]] = values

    def _layers(self, ids: Indices, row: Indices, position: Indices, wanted: Indices) -> Floats | None:
        """Return the normed last hidden states at the wanted tokens [height, hidden], or None if there are none."""
        decoder = self._decoder
        final = len(decoder.layers) - 1
        plan = _Plan.make(row, position)
        rotation = self._rotations[position][:, None]
        x = self._taken(decoder.embedding, ids)
        for index in range(final):
            x = self._layer(index, x, rotation, plan, plan, None)
        if len(wanted) == 0:
            self._cache(final, x, rotation, plan)
            return None
        if len(wanted) == len(row):
            return self._norm(self._layer(final, x, rotation, plan, plan, None))
        pruned = _Plan.make(row[wanted], position[wanted])
        return self._norm(self._layer(final, x, rotation, plan, pruned, wanted))

    def _height(self, rows: int) -> int:
        """Return to how many rows a product is padded so that its rows are rounded alike."""
        tile = self._decoder.tile
        return -(-rows // tile) * tile if tile else max(2, rows)

    def _taken(self, x: Floats, indices: Indices) -> Floats:
        """Return rows of x, with zeros below up to the height of a product."""
        height = self._height(len(indices))
        if height == len(indices):
            return np.take(x, indices, axis=0)
        out = np.zeros((height, x.shape[1]), np.float32)
        out[: len(indices)] = x[indices]
        return out

    def _buffer(self, name: str, *shape: int) -> Floats:
        """Return memory that is kept from call to call: fresh memory would cost a page fault every 4 KB."""
        size = math.prod(shape)
        memory = self._memory.get(name)
        if memory is None or memory.size < size:
            memory = self._memory[name] = np.zeros(size, np.float32)
        return memory[:size].reshape(shape)

    def _product(self, name: str, a: Floats, b: Floats) -> Floats:
        """Return a @ b in a buffer; the rows of a are padded to their height."""
        out = self._buffer(name, *a.shape[:-1], b.shape[-1])
        tile = self._decoder.tile
        if tile:
            a = a.reshape(*a.shape[:-2], -1, tile, a.shape[-1])
            np.matmul(a, b[..., None, :, :], out=out.reshape(*a.shape[:-1], b.shape[-1]))
        else:
            np.matmul(a, b, out=out)
        return out

    def _norm(self, x: Floats) -> Floats:
        squares = np.vecdot(x, x)
        squares += self._decoder.epsilon
        np.sqrt(squares, out=squares)
        out = self._buffer("norm", *x.shape)
        np.divide(x, squares[:, None], out=out)
        return out

    def _cache(self, index: int, x: Floats, rotation: NDArray[np.complex64], plan: "_Plan") -> Floats:
        """Cache the keys and values of a layer's input; return its rotated queries [tokens, heads, head_dim]."""
        shape = self._decoder.shape
        tokens = len(plan.row)
        turned = shape.heads + shape.kv_heads
        qkv = self._product("qkv", self._norm(x), self._decoder.layers[index].qkv)
        joined = qkv[:tokens, : (turned + shape.kv_heads) * shape.head_dim].reshape(tokens, -1, shape.head_dim)
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
            queries, x = queries[wanted], self._taken(x, wanted)
        x += self._product("output", self._attend(index, queries, pruned), layer.output)
        hidden = self._product("gate_up", self._norm(x), layer.gate_up)
        half = hidden.shape[1] // 2
        gate, up = hidden[:, :half], hidden[:, half:]
        # silu(2 g) = g (1 + tanh g); the matrix holds half the gate.
        active = np.tanh(gate, out=self._buffer("active", len(x), half))
        active += 1.0
        active *= gate
        active *= up
        x += self._product("output", active, layer.down)
        return x

    def _attend(self, index: int, queries: Floats, plan: "_Plan") -> Floats:
        """Return attention's output [height, heads * head_dim] for rotated, scaled queries."""
        shape = self._decoder.shape
        by_head = (plan.slots, shape.kv_heads, shape.heads // shape.kv_heads, plan.width, shape.head_dim)
        height = by_head[2] * plan.width
        stacked = self._stacked(queries, plan, by_head, height)
        scores = self._product("scores", stacked, self._keys[index, plan.rows, :, :, : plan.length])
        # Queries that share a key-value head are stacked, with empty rows below them up to the height of a product.
        seen = scores[:, :, :height].reshape(*by_head[:-1], plan.length)
        seen += plan.bias
        seen -= np.maximum.reduce(seen, axis=-1, keepdims=True)
        np.exp(seen, out=seen)
        mixed = self._product("mixed", scores, self._values[index, plan.rows, :, : plan.length])
        mixed = mixed[:, :, :height, : shape.head_dim].reshape(by_head)
        mixed /= _sums(seen)
        tokens = mixed.transpose(0, 3, 1, 2, 4) if plan.dense else mixed[plan.slot, :, :, plan.offset]
        out = self._buffer("attended", self._height(len(queries)), shape.heads * shape.head_dim)
        out[: len(queries)] = tokens.reshape(len(queries), -1)
        return out

    def _stacked(self, queries: Floats, plan: "_Plan", by_head: tuple[int, ...], height: int) -> Floats:
        """Return queries [tokens, heads, head_dim] as [slots, kv_heads, height of a product, head_dim]."""
        slots, kv_heads, groups, width, head_dim = by_head
        padded = self._height(height)
        grouped = queries.reshape(-1, kv_heads, groups, head_dim)
        if plan.dense:
            grouped = grouped.reshape(slots, width, kv_heads, groups, head_dim).transpose(0, 2, 3, 1, 4)
            if padded == height:
                return grouped.reshape(slots, kv_heads, height, head_dim)
        stacked = np.zeros((slots, kv_heads, padded, head_dim), np.float32)
        by_token = stacked[:, :, :height].reshape(by_head)
        if plan.dense:
            by_token[:] = grouped
        else:
            by_token[plan.slot, :, :, plan.offset] = grouped
        return stacked


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a block's tokens meet the cache: one slot a cache row, padded to the longest chunk.

    Attributes:
        row: Cache row of each token.
        position: Position of each token.
        rows: Cache rows of the slots: a slice where few rows between are unused, else an array (which copies).
        slots: Number of slots.
        dense: Whether slots and tokens are the same thing in the same order: slot and offset are then not needed.
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
    dense: bool
    slot: NDArray[np.integer]
    offset: NDArray[np.integer]
    width: int
    length: int
    bias: Floats

    @classmethod
    def make(cls, row: Indices, position: Indices) -> "_Plan":
        """Plan a block of tokens; tokens of one row are contiguous."""
        tokens = len(row)
        length = padded_width(int(np.maximum.reduce(position)) + 1)
        if row[0] == row[-1]:
            until = position[None]
            return cls(
                row, position, slice(row[0], row[0] + 1), 1, True, _NONE, _NONE, tokens, length, _bias(until, length)
            )
        starts = np.flatnonzero(np.concatenate([_FIRST, row[1:] != row[:-1]]))
        counts = np.diff(starts, append=tokens)
        chunks, width = len(starts), int(np.maximum.reduce(counts))
        used = row[starts]
        first, stop = int(np.minimum.reduce(used)), int(np.maximum.reduce(used)) + 1
        dense = stop - first == chunks and width * chunks == tokens and bool((used[1:] > used[:-1]).all())
        if dense:
            slot: NDArray[np.integer] = _NONE
            offset: NDArray[np.integer] = _NONE
            rows: slice | Indices = slice(first, stop)
            slots = chunks
            until = position.reshape(chunks, width)
        else:
            if stop - first <= 2 * chunks:
                rows, slots, slot_of_chunk = slice(first, stop), stop - first, used - first
            else:
                rows, slots, slot_of_chunk = used, chunks, np.arange(chunks, dtype=used.dtype)
            slot = np.repeat(slot_of_chunk, counts)
            offset = np.arange(tokens) - np.repeat(starts, counts)
            # Slots and places without a token see everything: they are computed and never read.
            until = np.full((slots, width), length, np.int32)
            until[slot, offset] = position
        return cls(row, position, rows, slots, dense, slot, offset, width, length, _bias(until, length))


def _bias(until: Indices, length: int) -> Floats:
    """Return zeros up to each position and -inf beyond [slots, 1, 1, width, length]."""
    places = np.arange(length, dtype=np.int32)
    return np.where(places <= until[:, None, None, :, None], np.float32(0), np.float32(-np.inf))


_FIRST = np.ones(1, np.bool_)
_NONE = np.zeros(0, np.int32)


def _sums(x: Floats) -> Floats:
    """Return the sums over the last axis, a multiple of LANES, such that zeros after it change no bit.

    NumPy adds up to 128 numbers in eight strands, which trailing zeros leave as they are, but halves longer ones.
    """
    if x.shape[-1] > 128:
        x = np.add.reduce(x.reshape(*x.shape[:-1], -1, LANES), axis=-2)
    return np.asarray(np.add.reduce(x, axis=-1, keepdims=True), np.float32)


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


def _padded(matrix: Floats, rows: bool = False) -> Floats:
    """Return a row-major copy with zero columns, and rows if asked, up to a multiple of LANES."""
    height, width = matrix.shape
    out = np.zeros((padded_width(height) if rows else height, padded_width(width)), np.float32)
    out[:height, :width] = matrix
    return out
