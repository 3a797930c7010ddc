"""A Llama's forward pass as one compiled function: vectors and a matrix micro-kernel in LLVM, the rest in numba.

Layouts (L = `LANES`, the floats in a vector register; a panel is 2 L columns wide):

- A matrix [k, n] is stored by panels, [n / 2L, k, 2L], so that the micro-kernel reads one stream. Matrices that
  bfloat16 holds exactly stay bfloat16, half the bytes: columns j and j + L of a panel share a 32-bit word, and a shift
  or a mask makes them float32.
- Keys are stored transposed, [layer, row, head, position / 2L, head_dim, 2L], and values [layer, row, head,
  head_dim / 2L, position, 2L]. So attention's two products are products with panels as well.

Every element of a product is summed over k in order, by one accumulator, whatever tile computes it, and everything
else goes token by token. So a token's result does not depend on the batch, down to the bit. LLVM may contract a product
and a sum into one instruction where the machine has it ("contract"), and may not reorder anything.

Everything that is compiled lives in this file, because numba's cache looks at one file's time stamp only.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config
from numba.extending import intrinsic, models, overload, register_model


def _lanes() -> int:
    """Return how many floats a vector register holds on the processor that numba compiles for."""
    named = config.CPU_FEATURES or ""
    features = named if named else ",".join(f"+{name}" for name, has in llvm.get_host_cpu_features().items() if has)
    if "+avx512f" in features:
        return 16
    return 8 if "+avx" in features else 4


LANES = _lanes()
PANEL = 2 * LANES
TILE = 12 if LANES == 16 else 6
"""Rows of the largest micro-kernel: as many accumulators as there are registers, less a few."""

BLOCK = 22 * TILE
"""Most tokens that go through the layers together; what they need stays in the processor's cache."""

CHUNK = 4 * TILE
"""Most tokens of a row that attend together."""

OK, GROW, BAD_INPUT = 0, 1, 2
"""What `forward` returns: done; the cache is too short for a position; an argument is out of range."""

_FLOAT = ir.FloatType()
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_FLOATS = ir.VectorType(_FLOAT, LANES)
_INTS = ir.VectorType(_INT32, LANES)


def _jit(function: Callable[..., Any]) -> Any:
    """Compile on the first call, without the GIL, and keep the machine code on disk where a directory is writable."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba found no place for its cache
        return njit(nogil=True)(function)


# Vectors of LANES floats


class Vector(types.Type):
    """The numba type of a vector register."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector({LANES})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _FLOATS)


_VECTOR = Vector()


def _floats(value: float) -> ir.Constant:
    return ir.Constant(_FLOATS, [value] * LANES)


def _ints(value: int) -> ir.Constant:
    return ir.Constant(_INTS, [value] * LANES)


def _data(context: Any, builder: Any, array: Any, value: Any) -> Any:
    return context.make_array(array)(context, builder, value).data


def _vector_at(builder: Any, data: Any, index: Any) -> Any:
    return builder.bitcast(builder.gep(data, [index]), _FLOATS.as_pointer())


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _broadcast(builder: Any, value: Any) -> Any:
    lanes = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), value, _INT32(0))
    return builder.shuffle_vector(lanes, lanes, ir.Constant(_INTS, [0] * LANES))


def _exponential(builder: Any, x: Any) -> Any:
    """Return e^x to about one unit in the last place (Cephes' expf).

    x is clamped to [-80, 88]: beyond lie infinity and subnormal numbers, which cost the processor a hundred times more.
    """
    for bound, predicate in ((-80.0, "<"), (88.0, ">")):
        x = builder.select(builder.fcmp_ordered(predicate, x, _floats(bound)), _floats(bound), x)
    magic = 12582912.0  # 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits
    rounded = _fma(builder, x, _floats(1.4426950408889634), _floats(magic))
    power = builder.bitcast(rounded, _INTS)
    whole = builder.fsub(rounded, _floats(magic))
    rest = _fma(builder, whole, _floats(-0.693359375), x)
    rest = _fma(builder, whole, _floats(2.12194440e-4), rest)
    series = _floats(1.9875691500e-4)
    for coefficient in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0):
        series = _fma(builder, series, rest, _floats(coefficient))
    scaled = builder.add(builder.bitcast(series, _INTS), builder.shl(power, _ints(23)))
    return builder.bitcast(scaled, _FLOATS)


def _silu(builder: Any, x: Any) -> Any:
    decay = _exponential(builder, builder.fsub(_floats(0.0), x))
    return builder.fdiv(x, builder.fadd(decay, _floats(1.0)))


@intrinsic
def _load(_: Any, array: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature.args[0], args[0])
        return builder.load(_vector_at(builder, data, args[1]), align=4)

    return _VECTOR(array, types.intp), codegen


@intrinsic
def _store(_: Any, array: Any, index: Any, vector: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature.args[0], args[0])
        builder.store(args[2], _vector_at(builder, data, args[1]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), codegen


@intrinsic
def _splat(_: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _broadcast(builder, args[0])

    return _VECTOR(types.float32), codegen


@intrinsic
def _exp(_: Any, vector: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _exponential(builder, args[0])

    return _VECTOR(vector), codegen


@intrinsic
def _first(_: Any, vector: Any, count: Any, other: Any) -> Any:
    """Return the vector with `other` in all lanes but the first `count`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count = builder.insert_element(ir.Constant(_INTS, ir.Undefined), builder.trunc(args[1], _INT32), _INT32(0))
        counts = builder.shuffle_vector(count, count, ir.Constant(_INTS, [0] * LANES))
        kept = builder.icmp_signed("<", ir.Constant(_INTS, list(range(LANES))), counts)
        return builder.select(kept, args[0], args[2])

    return _VECTOR(vector, types.intp, vector), codegen


def _reduced(builder: Any, vector: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Join the lanes of a vector by halves, always in the same order."""
    width = LANES
    while width > 1:
        width //= 2
        order = list(range(width, 2 * width)) + [0] * (LANES - width)
        vector = join(vector, builder.shuffle_vector(vector, vector, ir.Constant(_INTS, order)))
    return builder.extract_element(vector, _INT32(0))


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def _sum(_: Any, vector: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _reduced(builder, args[0], builder.fadd)

    return types.float32(vector), codegen


@intrinsic
def _max(_: Any, vector: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _reduced(builder, args[0], lambda a, b: _larger(builder, a, b))

    return types.float32(vector), codegen


@intrinsic
def _maximum(_: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _larger(builder, args[0], args[1])

    return _VECTOR(a, b), codegen


def _operator(which: Any, name: str) -> None:
    """Let numba write `a + b` for two vectors."""

    @intrinsic
    def compute(_: Any, a: Any, b: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args, flags=("contract",))

        return _VECTOR(a, b), codegen

    @overload(which)
    def choose(a, b):  # type: ignore[no-untyped-def]
        if isinstance(a, Vector) and isinstance(b, Vector):
            return lambda a, b: compute(a, b)
        return None


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")


# Matrix products

STORE, ADD, SWIGLU = np.int64(0), np.int64(1), np.int64(2)
"""What a product does with a panel of its result: keep it; add it to what is there; keep silu(first half) * second."""


class View(NamedTuple):
    """A matrix within a flat array: where it starts, and how far its rows (of B: its panels) are apart."""

    data: Any
    start: Any
    stride: Any


def _micro_kernel(rows: int, panels: int) -> Any:
    """Return an intrinsic that multiplies `rows` rows of `a` with `panels` panels of `b`, all sums in registers."""

    @intrinsic
    def multiply(_: Any, a: Any, k: Any, b: Any, c: Any, mode: Any) -> Any:
        a_type, b_type, c_type = a.types[0], b.types[0], c.types[0]

        def columns(builder: Any, data: Any, index: Any) -> tuple[Any, Any]:
            """Load the two vectors of a panel's row as float32."""
            if b_type.dtype == types.uint16:
                words = builder.load(builder.bitcast(builder.gep(data, [index]), _INTS.as_pointer()), align=2)
                low, high = builder.shl(words, _ints(16)), builder.and_(words, _ints(0xFFFF0000))
                return builder.bitcast(low, _FLOATS), builder.bitcast(high, _FLOATS)
            second = builder.add(index, _INT64(LANES))
            return (
                builder.load(_vector_at(builder, data, index), align=4),
                builder.load(_vector_at(builder, data, second), align=4),
            )

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def places(array: Any, view: Any, count: int) -> list[Any]:
                """Return pointers to the first `count` rows or panels of a view."""
                value, start, stride = cgutils.unpack_tuple(builder, view, 3)
                first = builder.gep(_data(context, builder, array, value), [start])
                return [builder.gep(first, [builder.mul(stride, _INT64(i))]) for i in range(count)]

            a, k, b, c, mode = args
            a_rows, b_panels, c_rows = places(a_type, a, rows), places(b_type, b, panels), places(c_type, c, rows)
            cells = [[cgutils.alloca_once_value(builder, _floats(0.0)) for _ in range(2 * panels)] for _ in range(rows)]
            with cgutils.for_range(builder, k) as loop:
                place = builder.mul(loop.index, _INT64(PANEL))
                right = [column for data in b_panels for column in columns(builder, data, place)]
                for i in range(rows):
                    left = _broadcast(builder, builder.load(builder.gep(a_rows[i], [loop.index])))
                    for cell, column in zip(cells[i], right, strict=True):
                        builder.store(_fma(builder, left, column, builder.load(cell)), cell)
            sums = [[builder.load(cell) for cell in row] for row in cells]

            def write(row: int, column: int, value: Any, add: bool = False) -> None:
                target = _vector_at(builder, c_rows[row], _INT64(column * LANES))
                if add:
                    value = builder.fadd(value, builder.load(target, align=4))
                builder.store(value, target, align=4)

            with builder.if_else(builder.icmp_signed("==", mode, _INT64(SWIGLU))) as (gated, plain):
                with gated:
                    for i in range(rows):
                        for p in range(panels):
                            gate, up = sums[i][2 * p : 2 * p + 2]
                            write(i, p, builder.fmul(_silu(builder, gate), up))
                with plain, builder.if_else(builder.icmp_signed("==", mode, _INT64(ADD))) as branches:
                    for branch, add in zip(branches, (True, False), strict=True):
                        with branch:
                            for i in range(rows):
                                for j, value in enumerate(sums[i]):
                                    write(i, j, value, add)
            return context.get_dummy_value()

        return types.void(a, types.intp, b, c, types.intp), codegen

    return multiply


_kernel_1_4, _kernel_1_2, _kernel_1_1 = _micro_kernel(1, 4), _micro_kernel(1, 2), _micro_kernel(1, 1)
_kernel_2_2, _kernel_2_1, _kernel_4_1 = _micro_kernel(2, 2), _micro_kernel(2, 1), _micro_kernel(4, 1)
_kernel_8_1, _kernel_full = _micro_kernel(min(8, TILE), 1), _micro_kernel(TILE, 1)


@njit(inline="always")  # type: ignore[untyped-decorator]
def _move(view, steps, by):  # type: ignore[no-untyped-def]
    """Return a view that starts `steps` rows or panels and `by` elements later."""
    return View(view.data, view.start + steps * view.stride + by, view.stride)


@_jit
def _product(a, rows, k, b, panels, c, width, mode):  # type: ignore[no-untyped-def]
    """Multiply `rows` rows of a [rows, k] with `panels` panels of b, into `width` columns of c a panel.

    Rows are padded to what a micro-kernel takes: up to TILE - 1 rows after the last one are read and written.
    """
    if rows == 1:
        while panels >= 4:
            _kernel_1_4(a, k, b, c, mode)
            panels, b, c = panels - 4, _move(b, 4, 0), _move(c, 0, 4 * width)
        if panels >= 2:
            _kernel_1_2(a, k, b, c, mode)
            panels, b, c = panels - 2, _move(b, 2, 0), _move(c, 0, 2 * width)
        if panels:
            _kernel_1_1(a, k, b, c, mode)
    elif rows == 2:
        while panels >= 2:
            _kernel_2_2(a, k, b, c, mode)
            panels, b, c = panels - 2, _move(b, 2, 0), _move(c, 0, 2 * width)
        if panels:
            _kernel_2_1(a, k, b, c, mode)
    else:
        full = rows // TILE * TILE
        rest = rows - full
        for _ in range(panels):
            for row in range(0, full, TILE):
                _kernel_full(_move(a, row, 0), k, b, _move(c, row, 0), mode)
            if rest:
                a_rest, c_rest = _move(a, full, 0), _move(c, full, 0)
                if rest > 8:
                    _kernel_full(a_rest, k, b, c_rest, mode)
                elif rest > 4:
                    _kernel_8_1(a_rest, k, b, c_rest, mode)
                elif rest > 2:
                    _kernel_4_1(a_rest, k, b, c_rest, mode)
                else:
                    _kernel_2_1(a_rest, k, b, c_rest, mode)
            b, c = _move(b, 1, 0), _move(c, 0, width)


# The model


@_jit
def _normalise(x, x_at, rows, hidden, gains, gain_at, epsilon, out_at):  # type: ignore[no-untyped-def]
    """Write RMSNorm of x [rows, hidden] elsewhere in x."""
    for row in range(rows):
        start, target = x_at + row * hidden, out_at + row * hidden
        total = _splat(0.0)
        for i in range(0, hidden, LANES):
            value = _load(x, start + i)
            total = total + value * value
        scale = _splat(np.float32(1.0) / np.sqrt(_sum(total) / np.float32(hidden) + epsilon))
        for i in range(0, hidden, LANES):
            _store(x, target + i, _load(x, start + i) * scale * _load(gains, gain_at + i))


@_jit
def _copy(source, source_at, target, target_at, size):  # type: ignore[no-untyped-def]
    for i in range(0, size, LANES):
        _store(target, target_at + i, _load(source, source_at + i))


@_jit
def _rotate(x, at, heads, head_dim, rope, position):  # type: ignore[no-untyped-def]
    """Apply RoPE to `heads` heads of one token in place; rope is [length, cos | sin], head_dim numbers a position."""
    half = head_dim // 2
    turn = position * head_dim
    for head in range(heads):
        start = at + head * head_dim
        for i in range(0, half, LANES):
            cos, sin = _load(rope, turn + i), _load(rope, turn + half + i)
            first, second = _load(x, start + i), _load(x, start + half + i)
            _store(x, start + i, first * cos - second * sin)
            _store(x, start + half + i, second * cos + first * sin)


@_jit
def _remember(x, at, kv_heads, head_dim, capacity, slot, position, keys, values):  # type: ignore[no-untyped-def]
    """Cache one token's keys and values, which follow each other in x; slot counts the rows of all layers."""
    block, lane = position // PANEL, position % PANEL
    for head in range(kv_heads):
        base = (slot * kv_heads + head) * capacity * head_dim
        key = at + head * head_dim
        value = key + kv_heads * head_dim
        target = base + block * head_dim * PANEL + lane
        for i in range(head_dim):
            keys[target + i * PANEL] = x[key + i]
        for i in range(0, head_dim, PANEL):
            _copy(x, value + i, values, base + i * capacity + position * PANEL, PANEL)


@_jit
def _softmax(scores, at, seen, total, scale):  # type: ignore[no-untyped-def]
    """Turn the first `seen` of `total` scores into probabilities of scale * score, and the rest into zeros."""
    low = _splat(-np.inf)
    largest = low
    for i in range(0, seen, LANES):
        largest = _maximum(largest, _first(_load(scores, at + i), seen - i, low))
    top, factor, zero = _splat(_max(largest)), _splat(scale), _splat(0.0)
    mass = zero
    for i in range(0, seen, LANES):
        value = _first(_exp((_load(scores, at + i) - top) * factor), seen - i, zero)
        _store(scores, at + i, value)
        mass = mass + value
    share = _splat(np.float32(1.0) / _sum(mass))
    for i in range(0, seen, LANES):
        _store(scores, at + i, _load(scores, at + i) * share)
    for i in range((seen + LANES - 1) // LANES * LANES, total, LANES):
        _store(scores, at + i, zero)


@_jit
def _attend(queries, tokens, row, position, first, shape, slots, capacity, keys, values, scores, mixed):  # type: ignore[no-untyped-def]
    """Write attention's output to mixed [tokens, heads * head_dim], chunk by chunk of one row each.

    Rows and positions of the tokens start at index `first`; `slots` rows of the cache belong to earlier layers.
    """
    heads, kv_heads, head_dim = shape
    width = np.int64(PANEL)
    done = np.int64(0)
    while done < tokens:
        stop = done + 1
        while stop < tokens and stop - done < CHUNK and row[first + stop] == row[first + done]:
            stop += 1
        chunk = stop - done
        length = np.int64(position[first + stop - 1]) + 1
        blocks = (length + PANEL - 1) // PANEL
        for head in range(heads):
            base = ((slots + row[first + done]) * kv_heads + head // (heads // kv_heads)) * capacity * head_dim
            own = _move(queries, done, head * head_dim)
            _product(own, chunk, head_dim, View(keys, base, head_dim * PANEL), blocks, scores, width, STORE)
            for i in range(chunk):
                seen = np.int64(position[first + done + i]) + 1
                _softmax(scores.data, scores.start + i * scores.stride, seen, length, np.float32(head_dim**-0.5))
            out = _move(mixed, done, head * head_dim)
            _product(scores, chunk, length, View(values, base, capacity * PANEL), head_dim // PANEL, out, width, STORE)
        done = stop


@_jit
def _invalid(ids, row, position, last, vocabulary, rows, length):  # type: ignore[no-untyped-def]
    """Return whether an argument of `forward` is out of range."""
    tokens = len(ids)
    if len(row) != tokens or len(position) != tokens:
        return True
    for i in range(tokens):
        if not (0 <= ids[i] < vocabulary and 0 <= row[i] < rows and 0 <= position[i] < length):
            return True
    before = -1
    for index in last:
        if not before < index < tokens:
            return True
        before = index
    return False


@_jit
def forward(ids, row, position, last, numbers, epsilon, embedding, weights, gains, rope, keys, values, work, kept, out):  # type: ignore[no-untyped-def]
    """Run a flat list of tokens through the model; see `Session.forward` for the first four arguments.

    Args:
        ids: Token ids.
        row: Cache rows.
        position: Positions.
        last: Indices whose logits are wanted.
        numbers: int64: vocabulary, hidden, feed_forward, layers, heads, kv_heads, head_dim, longest sequence, rows in
            use, rows allocated, capacity of a row.
        epsilon: Of the norms.
        embedding: float32 [vocabulary, hidden].
        weights: All matrices by panels, layer by layer (queries-keys-values, output, gate and up side by side in every
            panel, down), then the head; float32, or bfloat16 as uint16.
        gains: Of the norms, in the order of use.
        rope: [capacity, cos | sin].
        keys: The keys' cache.
        values: The values' cache.
        work: Memory for the activations of one block; see `work_size`.
        kept: Memory for rows and positions of the wanted tokens of a block, int32 [2, BLOCK].
        out: Where the logits go, [len(last) + TILE, vocabulary padded to panels].

    Returns:
        OK, GROW or BAD_INPUT.
    """
    vocabulary, hidden, feed_forward, layers, heads, kv_heads, head_dim = numbers[:7]
    longest, rows, allocated, capacity = numbers[7:]
    if _invalid(ids, row, position, last, vocabulary, rows, longest):
        return BAD_INPUT
    for place in position:
        if place >= capacity:
            return GROW
    queries, remembered = heads * head_dim, 2 * kv_heads * head_dim
    joined = queries + remembered
    height = BLOCK + TILE
    x = View(work, np.int64(0), hidden)
    normed = View(work, height * hidden, hidden)
    qkv = View(work, 2 * height * hidden, joined)
    mixed = View(work, qkv.start + height * joined, queries)
    active = View(work, mixed.start + height * queries, feed_forward)
    scores = View(work, active.start + height * feed_forward, capacity)
    logits = View(out, np.int64(0), (vocabulary + PANEL - 1) // PANEL * PANEL)
    width, half_width = np.int64(PANEL), np.int64(LANES)
    wanted = 0
    for start in range(0, len(ids), BLOCK):
        tokens = min(BLOCK, len(ids) - start)
        for i in range(tokens):
            _copy(embedding, ids[start + i] * hidden, work, x.start + i * hidden, hidden)
        count = tokens
        gain = np.int64(0)
        matrix = View(weights, np.int64(0), hidden * PANEL)
        for layer in range(layers):
            slots = layer * allocated
            _normalise(work, x.start, tokens, hidden, gains, gain, epsilon, normed.start)
            _product(
                normed, tokens, hidden, _move(matrix, queries // PANEL, 0), remembered // PANEL,
                _move(qkv, 0, queries), width, STORE,
            )  # fmt: skip
            for i in range(tokens):
                at, place = qkv.start + i * joined + queries, position[start + i]
                _rotate(work, at, kv_heads, head_dim, rope, place)
                _remember(work, at, kv_heads, head_dim, capacity, slots + row[start + i], place, keys, values)
            of_row, of_position, first = row, position, np.int64(start)
            if layer == layers - 1:
                # Past the last cache only the wanted tokens matter: they move to the front.
                count = 0
                while wanted + count < len(last) and last[wanted + count] < start + tokens:
                    token = last[wanted + count] - start
                    kept[count], kept[BLOCK + count] = row[start + token], position[start + token]
                    _copy(work, x.start + token * hidden, work, x.start + count * hidden, hidden)
                    _copy(work, normed.start + token * hidden, work, normed.start + count * hidden, hidden)
                    count += 1
                if count == 0:
                    break
                of_row, of_position, first = kept[:BLOCK], kept[BLOCK:], np.int64(0)
            _product(normed, count, hidden, matrix, queries // PANEL, qkv, width, STORE)
            for i in range(count):
                _rotate(work, qkv.start + i * joined, heads, head_dim, rope, of_position[first + i])
            _attend(
                qkv, count, of_row, of_position, first, (heads, kv_heads, head_dim), slots, capacity, keys, values,
                scores, mixed,
            )  # fmt: skip
            matrix = View(weights, matrix.start + hidden * joined, queries * PANEL)
            _product(mixed, count, queries, matrix, hidden // PANEL, x, width, ADD)
            _normalise(work, x.start, count, hidden, gains, gain + hidden, epsilon, normed.start)
            matrix = View(weights, matrix.start + queries * hidden, hidden * PANEL)
            _product(normed, count, hidden, matrix, feed_forward // LANES, active, half_width, SWIGLU)
            matrix = View(weights, matrix.start + 2 * hidden * feed_forward, feed_forward * PANEL)
            _product(active, count, feed_forward, matrix, hidden // PANEL, x, width, ADD)
            matrix = View(weights, matrix.start + feed_forward * hidden, hidden * PANEL)
            gain += 2 * hidden
        if count:
            _normalise(work, x.start, count, hidden, gains, gain, epsilon, normed.start)
            _product(normed, count, hidden, matrix, logits.stride // PANEL, _move(logits, wanted, 0), width, STORE)
            wanted += count
    return OK


def work_size(hidden: int, joined: int, queries: int, feed_forward: int, capacity: int) -> int:
    """Return how many floats `forward` needs for the activations of one block."""
    return (BLOCK + TILE) * (2 * hidden + joined + queries + feed_forward) + (CHUNK + TILE) * capacity
