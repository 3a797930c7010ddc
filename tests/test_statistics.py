"""Intervals: what they must cover, where they must not go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.evaluation.statistics import bootstrap_interval, disjoint, wilson_interval


def test_wilson_agrees_with_published_values() -> None:
    # Brown, Cai & DasGupta 2001, and scipy.stats.binomtest(...).proportion_ci(method="wilson")
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson_interval(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)
    assert wilson_interval(79, 100) == pytest.approx((0.70013, 0.85849), abs=2e-3)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_rate_and_stays_inside_the_unit_interval(trial: tuple[int, int]) -> None:
    successes, n = trial
    low, high = wilson_interval(successes, n)
    assert 0.0 <= low <= successes / n <= high <= 1.0
    assert low < high


@given(st.integers(0, 50))
def test_more_confidence_is_wider(successes: int) -> None:
    inner, outer = wilson_interval(successes, 50, 0.8), wilson_interval(successes, 50, 0.99)
    assert outer[0] <= inner[0]
    assert inner[1] <= outer[1]


def test_wilson_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for rate in (0.05, 0.5, 0.9):
        found = [wilson_interval(int(k), 60) for k in rng.binomial(60, rate, size=2000)]
        coverage = np.mean([low <= rate <= high for low, high in found])
        assert 0.92 <= coverage <= 0.985


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (5, 4), (-1, 3)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        wilson_interval(successes, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_outside_the_unit_interval_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"such as 0\.95"):
        wilson_interval(1, 2, confidence)
    with pytest.raises(ValueError, match=r"such as 0\.95"):
        bootstrap_interval([1.0, 2.0], confidence=confidence)


def test_bootstrap_of_a_mean_is_close_to_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=400)
    low, high = bootstrap_interval(values)
    margin = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - margin, abs=0.05)
    assert high == pytest.approx(values.mean() + margin, abs=0.05)


def test_bootstrap_is_the_same_for_the_same_seed_and_takes_any_statistic() -> None:
    values = [float(v) for v in range(50)]
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    low, high = bootstrap_interval(values, lambda sample: float(np.median(sample)))
    assert low < 24.5 < high


def test_runs_are_resampled_within_themselves() -> None:
    # Given two seeds without any spread inside, the difference between them must not widen the interval.
    assert bootstrap_interval([[0.0] * 10, [1.0] * 10]) == (0.5, 0.5)
    low, high = bootstrap_interval([0.0] * 10 + [1.0] * 10)
    assert low < 0.5 < high


def test_nothing_to_resample_is_an_error() -> None:
    for values in ([], [[1.0], []]):
        with pytest.raises(ValueError, match="nothing to resample"):
            bootstrap_interval(values)


def test_disjoint() -> None:
    assert disjoint((0.1, 0.2), (0.3, 0.4))
    assert disjoint((0.3, 0.4), (0.1, 0.2))
    assert not disjoint((0.1, 0.3), (0.3, 0.4))
