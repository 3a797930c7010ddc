"""How BLAS rounds: what makes a row's product the same, down to the bit, whatever the other rows are.

BLAS picks its kernels by a product's shape, and kernels sum in different orders. Most (AVX-512 ones among them) sum
each element over k in order whatever the number of rows, as long as there are two or more, the right matrix is
row-major and its width a multiple of `LANES`. Others (AVX2 ones) round a row by its place in the product, but treat
all rows alike where there are exactly `TILE`; cut so, large products are some 1.6 times slower. A probe finds out which
kind is at hand.
"""

from collections.abc import Sequence

import numpy as np

from dreamgym_envs.experience.decoders.llama import Floats

LANES = 16
"""Widths of matrices are padded to a multiple of this."""

TILE = 8
"""Rows of a product, where BLAS rounds by the number of rows."""


def padded_width(width: int) -> int:
    """Return the next multiple of LANES."""
    return -(-width // LANES) * LANES


def tile_height(matrices: Sequence[Floats], head_dim: int) -> int | None:
    """Find how products must be cut so that BLAS rounds a row alike in all of them.

    Returns:
        0 if products of two or more rows need no cuts, `TILE` if those of TILE rows do, None if neither helps.
    """
    heights = {0: (2, 3, 4, 5, 6, 7, 8, 12, 13, 33, 64, 264), TILE: (TILE,)}
    return next((tile for tile, rows in heights.items() if _alike(matrices, head_dim, rows)), None)


def _alike(matrices: Sequence[Floats], head_dim: int, heights: Sequence[int]) -> bool:
    """Return whether products of these heights round all their rows alike, in the layers and in attention."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Floats:
        return rng.standard_normal(shape, dtype=np.float32)

    def products(row: Floats, matrix: Floats) -> bool:
        results = [np.repeat(row[None], height, axis=0) @ matrix for height in heights]
        return all((result == results[0][0]).all() for result in results)

    keys, values = numbers(head_dim, 12 * LANES), numbers(12 * LANES, padded_width(head_dim))
    query, shares = numbers(head_dim), np.zeros(12 * LANES, np.float32)
    shares[:13] = numbers(13)
    lengths = range(LANES, 12 * LANES + 1, LANES)
    scores = query[None].repeat(heights[0], axis=0) @ keys
    mixed = shares[None].repeat(heights[0], axis=0) @ values
    return (
        all(products(numbers(matrix.shape[0]), matrix) for matrix in matrices)
        and all(products(query, keys[:, :length]) for length in lengths)
        and all(products(shares[:length], values[:length]) for length in lengths)
        and all((query[None].repeat(heights[0], axis=0) @ keys[:, :n] == scores[:, :n]).all() for n in lengths)
        and all((shares[None, :n].repeat(heights[0], axis=0) @ values[:n] == mixed).all() for n in lengths)
    )
