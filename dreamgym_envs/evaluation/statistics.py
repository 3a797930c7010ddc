"""Intervals for the numbers that evaluations report.

A success rate out of n episodes gets Wilson's interval, which stays inside [0, 1] and is right for small n and for
rates near 0 or 1, where the normal approximation is not. Means and results of several seeds get a bootstrap.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Interval = tuple[float, float]


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a success rate (Wilson 1927, doi:10.1080/01621459.1927.10502953).

    Args:
        successes: Successes among the trials.
        n: Trials.
        confidence: Coverage, in (0, 1).

    Raises:
        ValueError: There are no trials, or more successes than trials, or the confidence is out of range.

    Example:
        >>> low, high = wilson_interval(79, 100)
        >>> round(low, 3), round(high, 3)
        (0.7, 0.859)
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials; expected at least 1 trial and 0 to n successes")
    z = NormalDist().inv_cdf(0.5 + _checked(confidence) / 2)
    rate = successes / n
    scale = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / scale
    margin = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / scale
    # At 0 and n the bound is exact; rounding must not push it inside.
    return (0.0 if successes == 0 else max(0.0, centre - margin), 1.0 if successes == n else min(1.0, centre + margin))


def bootstrap_interval(
    values: ArrayLike | Sequence[ArrayLike],
    statistic: Callable[[NDArray[np.float64]], float] = lambda sample: float(sample.mean()),
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return a percentile bootstrap interval of a statistic.

    Several runs, such as one list an RL seed, are resampled each within itself (stratified, as in Agarwal et al. 2021,
    arXiv 2108.13264) and then pooled, so that no seed is drawn away.

    Args:
        values: Numbers, or a sequence of runs of numbers.
        statistic: From a pooled sample [n] to a number; the mean by default.
        confidence: Coverage, in (0, 1).
        resamples: Bootstrap samples.
        seed: Of the resampling.

    Raises:
        ValueError: There are no numbers, or a run without any.

    Example:
        >>> bootstrap_interval([1.0, 1.0, 1.0])
        (1.0, 1.0)
        >>> low, high = bootstrap_interval([[1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]])
        >>> low < 0.75 < high
        True
    """
    runs = [np.asarray(run, dtype=np.float64) for run in _runs(values)]
    if not runs or any(run.ndim != 1 or run.size == 0 for run in runs):
        raise ValueError("nothing to resample; expected numbers, or several runs with at least one number each")
    rng = np.random.default_rng(seed)
    drawn = [
        statistic(np.concatenate([run[rng.integers(run.size, size=run.size)] for run in runs]))
        for _ in range(resamples)
    ]
    tail = (1 - _checked(confidence)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def disjoint(first: Interval, second: Interval) -> bool:
    """Return whether two intervals have no point in common: the difference is clear."""
    return first[1] < second[0] or second[1] < first[0]


def _runs(values: ArrayLike | Sequence[ArrayLike]) -> Sequence[ArrayLike]:
    nested = isinstance(values, Sequence) and values and isinstance(values[0], Sequence | np.ndarray)
    return values if nested else [values]  # type: ignore[return-value, list-item]


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1, such as 0.95")
    return confidence
