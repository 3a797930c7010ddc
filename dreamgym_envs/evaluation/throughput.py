"""How fast a dream is, beside the real environment and beside transformers' generate(), in one run.

Everybody plays random candidate actions, resets included. Rounds alternate between the contestants, so that a busy
machine slows all of them and not one; a row's speed is the median of its rounds.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import torch

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.envs.vector import DreamVectorEnv
from dreamgym_envs.experience import embedded_checkpoint, load_model
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.local import LocalModel
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.registration import ENVIRONMENTS

__all__ = ["Row", "throughput"]

SIZES = (1, 16, 64)
CACHE = 200_000
LEAN = "engine, lean"
_NEW_TOKENS = 64
_QUERIES = 256


@dataclass(frozen=True, slots=True)
class Row:
    """A contestant and its speed.

    Attributes:
        env: Id of the environment; of the dream that was asked, where a model is measured alone.
        num_envs: Environments stepped together; the batch, where a model is measured alone.
        cache: Whether the transition cache is on.
        backend: "engine" for the real environment with all that the original does at a step (`Domain.reference`),
            "engine, lean" for the same without what nobody here reads, where that is a difference; the decoder
            ("numpy", "numba", "torch"), or "generate" for transformers' generate().
        threads: Threads that share a batch.
        what: "environment", or "model" where predictions are measured without an environment around them.
        steps_per_second: Median over the rounds; predictions a second for a model alone.
        cache_hit_rate: Share of queries that the cache answered, if it is on.
    """

    env: str
    num_envs: int
    cache: bool
    backend: str
    threads: int
    what: str = "environment"
    steps_per_second: float = 0.0
    cache_hit_rate: float | None = None


class Runner(Protocol):
    """A contestant: does some work at every call and says how many steps it was."""

    def __call__(self) -> int:
        """Go on for a little while."""
        ...


class SingleRunner:
    """Random candidate actions in one environment."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        self.env = env
        self._chance = np.random.default_rng(seed)
        self._info = env.reset(seed=seed)[1]

    def __call__(self) -> int:
        """Take one step, and start the next episode if this one ends."""
        candidates = self._info["candidate_actions"]
        action = candidates[int(self._chance.integers(len(candidates)))]
        _, _, terminated, truncated, self._info = self.env.step(action)
        if terminated or truncated:
            self._info = self.env.reset()[1]
        return 1


class VectorRunner:
    """Random candidate actions in a vector environment; resets that it makes on its own are no steps."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any], seed: int) -> None:
        self.envs = envs
        self._chance = np.random.default_rng(seed)
        self._candidates = envs.reset(seed=seed)[1]["candidate_actions"]
        self._ended = np.zeros(envs.num_envs, dtype=np.bool_)

    def __call__(self) -> int:
        """Take one step in every environment."""
        actions = [options[int(self._chance.integers(len(options)))] for options in self._candidates]
        stepped = int((~self._ended).sum())
        _, _, terminated, truncated, infos = self.envs.step(actions)
        self._candidates = infos["candidate_actions"]
        self._ended = terminated | truncated
        return stepped


class ModelRunner:
    """Queries of a dream, put to a model in batches."""

    def __init__(self, answer: Callable[[Sequence[Query]], object], queries: Sequence[Query], batch: int) -> None:
        self._answer = answer
        self._queries = queries
        self._batch = batch
        self._place = 0

    def __call__(self) -> int:
        """Have the next batch answered."""
        picked = [self._queries[(self._place + i) % len(self._queries)] for i in range(self._batch)]
        self._place += self._batch
        self._answer(picked)
        return self._batch


class Generator:
    """The same checkpoint behind transformers' generate(): greedy, left-padded, ends at the outcome token.

    It stops after `_NEW_TOKENS` in any case, since without a grammar some answers never end; where right answers are
    longer, such as a page of results, it is spared work that `predict` does.
    """

    def __init__(self, directory: Path, codec: Codec) -> None:
        from transformers import AutoModelForCausalLM

        self._model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self._codec = codec
        self._ends = sorted(codec.outcome_ids.values())

    def __call__(self, queries: Sequence[Query]) -> torch.Tensor:
        """Return the generated token ids, int64 [batch, length]."""
        prompts = [self._codec.encode(query).ids for query in queries]
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        with torch.inference_mode():
            generated: torch.Tensor = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                max_new_tokens=_NEW_TOKENS,
                eos_token_id=self._ends,
                pad_token_id=0,
            )
        return generated


class _Listener:
    """A model that remembers what it was asked."""

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self.queries: list[Query] = []

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        self.queries += [replace(query, rng=None) for query in queries if query.action is not None]
        return self.model.predict(queries)


def throughput(
    domain: Domain,
    model: str = "embedded",
    *,
    sizes: Sequence[int] = SIZES,
    seconds: float = 2.0,
    rounds: int = 3,
    real: bool = True,
    generate: bool = True,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure how many steps a second the dream, the real environment and transformers' generate() make.

    Args:
        domain: The domain.
        model: "embedded" or the path of a checkpoint.
        sizes: Numbers of environments.
        seconds: Least seconds a row and round.
        rounds: Rounds.
        real: Whether to run the real environment.
        generate: Whether to run transformers' generate().
        seed: Of tasks and actions.
        progress: Called after every row of every round with its name.

    Returns:
        A JSON document: domain, rows (see `Row`), and the ratios that the rows allow: "dream_over_real" by number of
        environments, "dream_over_lean_real" the same, "numpy_over_real" at the largest, "predict_over_generate" by
        batch on one core, "cache_gain" at the largest.

    Raises:
        CheckpointError: There is no such checkpoint.
        ImportError: The real environment is not installed.
    """
    contestants = _contestants(domain, model, sizes, real, generate, seed)
    rates: list[list[float]] = [[] for _ in contestants]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _, runner in contestants:
            runner()  # compiles, allocates
        for _ in range(rounds):
            for (row, runner), found in zip(contestants, rates, strict=True):
                found.append(_rate(runner, seconds))
                if progress is not None:
                    progress(f"{row.env} x{row.num_envs} {row.backend}")
    finally:
        torch.set_num_threads(before)
    rows = [
        replace(row, steps_per_second=median(found), cache_hit_rate=_hit_rate(runner) if row.cache else None)
        for (row, runner), found in zip(contestants, rates, strict=True)
    ]
    for _, runner in contestants:
        if isinstance(runner, SingleRunner | VectorRunner):
            (runner.env if isinstance(runner, SingleRunner) else runner.envs).close()
    return {"domain": domain.name, "rows": [asdict(row) for row in rows], **_ratios(rows)}


def _contestants(
    domain: Domain, model: str, sizes: Sequence[int], real: bool, generate: bool, seed: int
) -> list[tuple[Row, Runner]]:
    ids = {row.kind: row.id for row in ENVIRONMENTS if row.domain == domain.name}
    dream, largest = ids["dream"], max(sizes)
    found: list[tuple[Row, Runner]] = []
    if real:
        kinds = {"engine": domain.reference, **({LEAN: {}} if domain.reference else {})}
        for backend, options in kinds.items():
            env = gym.make(ids["real"], **{**domain.held_out["generated"], **options})
            found.append((Row(ids["real"], 1, False, backend, 1), SingleRunner(env, seed)))

    def add(size: int, **options: Any) -> None:
        runner: Runner
        if size == 1:
            runner = SingleRunner(gym.make(dream, model=model, model_options=options), seed)
        else:
            runner = VectorRunner(gym.make_vec(dream, num_envs=size, model=model, model_options=options), seed)
        used = load_model(model, domain, **options)
        assert isinstance(used, LocalModel)
        row = Row(dream, size, bool(used.cache.capacity), used.decoder.backend, os.cpu_count() or 1)
        found.append((row, runner))

    for size in sizes:
        add(size)
    if found[-1][0].backend != "numpy":
        add(largest, backend="numpy")
    add(largest, cache=CACHE)
    if generate:
        single = load_model(model, domain, threads=1)
        assert isinstance(single, LocalModel)
        queries = _queries(domain, single, seed)
        directory = embedded_checkpoint(domain.name) if model == "embedded" else Path(model)
        generator = Generator(directory, single.codec)
        for batch in sorted({min(sizes), largest}):
            row = Row(dream, batch, False, single.decoder.backend, 1, "model")
            found.append((row, ModelRunner(single.predict, queries, batch)))
            found.append((replace(row, backend="generate"), ModelRunner(generator, queries, batch)))
    return found


def _queries(domain: Domain, model: LocalModel, seed: int) -> list[Query]:
    """Return what random play asks a dream's model."""
    listener = _Listener(model)
    runner = VectorRunner(DreamVectorEnv(domain, 16, listener, max_episode_steps=domain.max_episode_steps), seed)
    while len(listener.queries) < _QUERIES:
        runner()
    return listener.queries


def _rate(runner: Runner, seconds: float) -> float:
    steps, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < seconds:
        steps += runner()
    return steps / spent


def _hit_rate(runner: Runner) -> float | None:
    model = runner.envs.unwrapped.model if isinstance(runner, VectorRunner) else None  # type: ignore[attr-defined]
    return model.cache.hit_rate if isinstance(model, LocalModel) else None


def _ratios(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what the rows say of each other."""
    environments = [row for row in rows if row.what == "environment"]
    real, lean = (next((r for r in environments if r.backend == kind), None) for kind in ("engine", LEAN))
    plain = [row for row in environments if row not in (real, lean) and not row.cache]
    default = {row.num_envs: row for row in reversed(plain)}  # the first row of a size is the default backend's
    largest = max(default)
    ratios: dict[str, Any] = {}
    for name, engine in (("dream_over_real", real), ("dream_over_lean_real", lean)):
        if engine is not None:
            ratios[name] = {
                str(size): row.steps_per_second / engine.steps_per_second for size, row in sorted(default.items())
            }
    if real is not None:
        numpy = next(row for row in plain if row.num_envs == largest and row.backend == "numpy")
        ratios["numpy_over_real"] = numpy.steps_per_second / real.steps_per_second
    cached = [row for row in environments if row.cache]
    if cached:
        ratios["cache_gain"] = cached[0].steps_per_second / default[largest].steps_per_second
    models = {(row.num_envs, row.backend == "generate"): row for row in rows if row.what == "model"}
    if models:
        ratios["predict_over_generate"] = {
            str(batch): models[batch, False].steps_per_second / row.steps_per_second
            for (batch, generates), row in sorted(models.items())
            if generates
        }
    return ratios
