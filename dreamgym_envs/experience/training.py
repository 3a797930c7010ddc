"""Fitting an experience model to trajectories: codec, then weights, from scratch or from any causal language model.

The loss is on outputs only. Matrices learn by Muon, the rest by AdamW, in batches of similar length; a run that was
interrupted goes on where its last checkpoint left it.
"""

import gc
import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, track
from torch import Tensor, nn

from dreamgym_envs.core.types import Trajectory
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.checkpoint import card, from_pretrained, from_scratch, save
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import FILE as CODEC_FILE
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.dataset import Encoded, balanced, batches, dataset, encode
from dreamgym_envs.experience.muon import Muon
from dreamgym_envs.experience.resumption import Unfinished
from dreamgym_envs.experience.tables import fit_tables

MIXED = 4
"""Batches of different lengths in an optimiser step. Examples of one length are much alike, down to the verdict: alone,
they teach the optimiser what is frequent and not what makes the difference."""


@dataclass(frozen=True)
class FitConfig:
    """How an experience model is trained.

    Attributes:
        steps: Optimiser steps.
        tokens: Tokens a step.
        hidden: Width of a model from scratch.
        layers: Its layers.
        heads: Its attention heads.
        feed_forward: Width of its feed-forward layers.
        matrix_lr: Peak learning rate of the matrices (Muon).
        lr: Peak learning rate of everything else (AdamW).
        weight_decay: Decoupled weight decay of the matrices.
        warmup: Steps of linear warm-up, before the cosine.
        invented_weight: Weight in the loss of tokens that invent what is hidden.
        rare_copies: Most copies of an example per epoch. A class is what the output says (reasoning, operations,
            feedback, reward); see `balanced`.
        relabels: How many other tasks each episode is relabelled with.
        start_relabels: How many more for the resets of episodes that revealed enough.
        coverage: How much an episode must have disclosed to teach resets (see `Domain.disclosed`).
        history: Past steps in a prompt.
        demonstrations: Most demonstrations in a prompt.
        seed: Seeds initialisation and order.
        threads: Threads of torch; 0 leaves the default.
        save_every: Seconds between checkpoints of the run.
    """

    steps: int = 4000
    tokens: int = 4096
    hidden: int = 128
    layers: int = 4
    heads: int = 2
    feed_forward: int = 384
    matrix_lr: float = 0.02
    lr: float = 3e-3
    weight_decay: float = 0.1
    warmup: int = 50
    invented_weight: float = 3.0
    rare_copies: int = 8
    relabels: int = 4
    start_relabels: int = 16
    coverage: float = 0.85
    history: int = 0
    demonstrations: int = 0
    seed: int = 0
    threads: int = 0
    save_every: float = 60.0


def fit(
    domain: Domain,
    trajectories: Sequence[Trajectory],
    out: str | Path,
    config: FitConfig | None = None,
    *,
    base: str | Path | None = None,
    resume: bool = False,
    command: str = "",
    quiet: bool = False,
) -> dict[str, Any]:
    """Fit an experience model and save it as a Hugging Face checkpoint directory.

    Args:
        domain: The domain that the trajectories come from.
        trajectories: Real episodes.
        out: Directory to write.
        config: How to train.
        base: Checkpoint directory of a causal language model to start from; None starts from scratch.
        resume: Go on with an interrupted run in `out`.
        command: The command line, for the card.
        quiet: No progress bars.

    Returns:
        Numbers of the run: examples, skipped, parameters, steps, loss, seconds.

    Raises:
        ValueError: There is nothing to learn from, or the interrupted run is another one.
        FileExistsError: `out` holds a checkpoint already.
    """
    config = config or FitConfig()
    console = Console(stderr=True, quiet=quiet)
    out = Path(out)
    if (out / CODEC_FILE).exists():
        raise FileExistsError(f"{out} holds a checkpoint already; choose another --out, or delete it first")
    out.mkdir(parents=True, exist_ok=True)
    if config.threads:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    pairs = dataset(
        domain,
        track(trajectories, "reading episodes", console=console, disable=quiet),
        relabels=config.relabels,
        start_relabels=config.start_relabels,
        coverage=config.coverage,
        seed=config.seed,
    )
    if not pairs:
        raise ValueError("no transitions to learn from; record some with `dreamgym record`")
    tables, texts = fit_tables(domain, pairs, history=config.history, demonstrations=config.demonstrations)
    symbols = tables.symbols(domain.schema.root)
    sizes = {name: getattr(config, name) for name in ("hidden", "layers", "heads", "feed_forward")}
    model, vocabulary = from_pretrained(Path(base), symbols) if base else from_scratch(symbols, texts, **sizes)
    codec = Codec(domain, tables, vocabulary)
    grammar = GrammarTables(codec)
    encoded: list[Encoded] = []
    skipped: dict[str, int] = {}
    seen: set[tuple[str, bytes]] = set()
    for query, target in track(pairs, "encoding", console=console, disable=quiet):
        try:
            item = encode(codec, grammar, query, target, config.invented_weight)
        except ValueError as error:
            skipped[str(error)] = skipped.get(str(error), 0) + 1
            continue
        key = (query.task.id, item.ids.tobytes())
        if key not in seen:  # a player that tries the same thing again and again teaches it once
            seen.add(key)
            encoded.append(item)
    for reason, count in sorted(skipped.items(), key=lambda item: -item[1])[:5]:
        console.print(f"left out {count} examples: {reason}")
    copies = balanced(codec, encoded, config.rare_copies)
    lengths = np.array([len(item.ids) for item in encoded])
    prompts = np.array([item.prompt for item in encoded])
    console.print(
        f"{len(encoded)} examples, {lengths.mean():.1f} tokens each ({prompts.mean():.1f} prompt), "
        f"{vocabulary.size} tokens known, {sum(p.numel() for p in model.parameters()):,} parameters"
    )
    started = time.time()
    run = {name: value for name, value in asdict(config).items() if name not in ("threads", "save_every")}
    known = hashlib.sha256("\n".join(symbols).encode()).hexdigest()
    unfinished = Unfinished(out, {**run, "examples": len(encoded), "symbols": known})
    loss = _train(model, encoded, copies, config, unfinished, resume, console, quiet)
    result = {
        "domain": domain.name,
        "episodes": len(trajectories),
        "examples": len(encoded),
        "skipped": sum(skipped.values()),
        "tokens_per_example": float(lengths.mean()),
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": config.steps,
        "loss": loss,
        "seconds": time.time() - started,
        "out": str(out),
    }
    save(model, codec, out)
    card(out, domain, asdict(config), result, command)
    unfinished.done()
    return result


def _train(
    model: Any,
    encoded: Sequence[Encoded],
    copies: Sequence[int],
    config: FitConfig,
    unfinished: Unfinished,
    resume: bool,
    console: Console,
    quiet: bool,
) -> float:
    """Run the optimiser; return the mean loss of the last hundred steps."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device).train()
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name and "head" not in name]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    optimisers = [
        Muon(matrices, lr=config.matrix_lr, weight_decay=config.weight_decay),
        torch.optim.AdamW(rest, lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    peaks = [config.matrix_lr, config.lr]
    step, epoch, place = 0, 0, 0
    if resume and (begun := unfinished.load(model, optimisers)):
        step, epoch, place = begun
        console.print(f"resuming at step {step}")
    order = batches(encoded, copies, config.tokens // MIXED, config.seed + epoch)
    precision = fastest_precision(model, encoded, order[0], device)
    gc.collect()
    gc.freeze()
    recent: list[float] = []
    last_save = time.time()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet) as progress_bar:
        bar = progress_bar.add_task("training", total=config.steps, completed=step)
        while step < config.steps:
            if place + MIXED > len(order):
                epoch, place = epoch + 1, 0
                order = batches(encoded, copies, config.tokens // MIXED, config.seed + epoch)
            rate = _schedule(step, config)
            for optimiser, peak in zip(optimisers, peaks, strict=True):
                for group in optimiser.param_groups:
                    group["lr"] = peak * rate
            total = 0.0
            for batch in order[place : place + MIXED]:
                loss = batch_loss(model, [encoded[index] for index in batch], device, precision) / MIXED
                torch.autograd.backward(loss)
                total += float(loss.detach())
            nn.utils.clip_grad_norm_(rest, 1.0)
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
            recent = [*recent[-99:], total]
            step, place = step + 1, place + MIXED
            if step % 10 == 0:
                mean = sum(recent) / len(recent)
                progress_bar.update(bar, completed=step, description=f"training, epoch {epoch + 1}, loss {mean:.4f}")
            if step % 200 == 0:
                console.log(f"step {step} epoch {epoch + 1} loss {sum(recent) / len(recent):.4f}")
            if time.time() - last_save > config.save_every:
                unfinished.save(model, optimisers, step, epoch, place)
                last_save = time.time()
    gc.unfreeze()
    model.to("cpu").eval()
    return sum(recent) / max(1, len(recent))


def _schedule(step: int, config: FitConfig) -> float:
    """Return the learning rate's factor: linear warm-up, then a cosine to 2 %."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done))


def batch_loss(model: Any, batch: Sequence[Encoded], device: torch.device, precision: torch.dtype) -> Tensor:
    """Return the weighted cross entropy of the outputs of a batch, padded on the right.

    As in decoding, the softmax is over what the grammar allows. Over the whole vocabulary, tied embeddings of symbols
    that no output contains are all pushed the same way, and marks can no longer be told apart.
    """
    longest = max(len(item.ids) for item in batch)
    ids = np.zeros((len(batch), longest), dtype=np.int64)
    weights = np.zeros((len(batch), longest), dtype=np.float32)
    for row, item in enumerate(batch):
        ids[row, : len(item.ids)] = item.ids
        weights[row, item.prompt - 1 : len(item.ids) - 1] = item.weights
    tokens = torch.from_numpy(ids).to(device)
    weight = torch.from_numpy(weights).to(device).flatten()
    where = weight.nonzero().squeeze(1)
    with torch.autocast(device.type, precision, enabled=precision != torch.float32):
        hidden = model.get_decoder()(input_ids=tokens, use_cache=False).last_hidden_state.flatten(0, 1)
        logits = model.lm_head(hidden[where])
    targets = tokens.flatten()[where + 1]
    losses = nn.functional.cross_entropy(logits.float() + _masks(batch, logits), targets, reduction="none")
    return (losses * weight[where]).sum() / weight[where].sum()


def _masks(batch: Sequence[Encoded], logits: Tensor) -> Tensor:
    """Return what to add to the logits [n, vocabulary] of the tokens that count: 0 where allowed, -inf elsewhere."""
    pairs = (pair for item in batch for pair in zip(item.choices, item.weights, strict=True))
    rows: dict[int, tuple[tuple[int, ...], list[int]]] = {}  # the tokens of all texts share one long choice
    for row, ids in enumerate(ids for ids, weight in pairs if weight):
        rows.setdefault(id(ids), (ids, []))[1].append(row)
    masks = torch.full(logits.shape, -torch.inf)
    for ids, places in rows.values():
        masks[torch.tensor(places)[:, None], torch.tensor(ids)] = 0.0
    return masks.to(logits.device)


def fastest_precision(
    model: Any, encoded: Sequence[Encoded], batch: Sequence[int], device: torch.device
) -> torch.dtype:
    """Return bfloat16 where autocast makes a step faster, float32 otherwise, by trying both."""
    timings: dict[torch.dtype, float] = {}
    for precision in (torch.float32, torch.bfloat16):
        for _ in range(2):  # the second run is the one that counts
            started = time.perf_counter()
            torch.autograd.backward(batch_loss(model, [encoded[index] for index in batch], device, precision))
            timings[precision] = time.perf_counter() - started
    model.zero_grad(set_to_none=True)
    return min(timings, key=lambda precision: timings[precision])
