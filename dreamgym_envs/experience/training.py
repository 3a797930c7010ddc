"""Fitting an experience model to trajectories: codec, then weights, from scratch or from any causal language model.

Every transition of an episode is an example, with the hidden part of its state filled in by hindsight; an episode that
revealed nearly everything also says what its world hid, which is what a dream asks at reset. The loss is on outputs
only. Matrices learn by Muon, the rest by AdamW, in batches of similar length; a run that was interrupted goes on where
its last checkpoint left it.
"""

import gc
import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, track
from tokenizers import Tokenizer
from torch import Tensor, nn

from dreamgym_envs.core.delta import Edit
from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON, State, Trajectory
from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.codec import Codec, example, fit_tables
from dreamgym_envs.experience.grammar import GrammarTables, Parser
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.muon import Muon
from dreamgym_envs.experience.vocabulary import Vocabulary

PROGRESS_FILE = "training.pt"


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
        warmup: Steps of linear warm-up, before the cosine.
        invented_weight: Weight in the loss of tokens that invent what is hidden.
        rare_copies: Most copies of an example per epoch. A class is what the output says (reasoning, operations,
            feedback, reward); see `balanced`.
        relabels: How many other tasks each episode is relabelled with.
        start_relabels: How many more for the resets of episodes that revealed enough.
        coverage: Share of hidden arrays that an episode must have revealed to teach resets.
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
    warmup: int = 50
    invented_weight: float = 3.0
    rare_copies: int = 8
    relabels: int = 1
    start_relabels: int = 6
    coverage: float = 0.85
    history: int = 0
    demonstrations: int = 0
    seed: int = 0
    threads: int = 0
    save_every: float = 60.0


@dataclass(frozen=True, slots=True)
class Encoded:
    """An example as numbers.

    Attributes:
        ids: int32 [length], prompt and output.
        prompt: Length of the prompt.
        weights: float32 [length - prompt], of each output token in the loss.
    """

    ids: NDArray[np.int32]
    prompt: int
    weights: NDArray[np.float32]


def examples(domain: Domain, trajectory: Trajectory, coverage: float) -> Iterator[tuple[Query, Prediction]]:
    """Yield an episode's transitions, and its reset if it revealed enough, as queries with their right answers."""
    hidden = domain.hindsight(trajectory)
    for transition, private in zip(trajectory.transitions(), hidden, strict=True):
        if domain.parse(transition.action) is None:
            continue
        transition = replace(transition, state=State(transition.state.public, private))
        yield example(domain, replace(transition, reasoning=transition.reasoning or domain.explain(transition)))
    yield from _start(domain, trajectory, hidden[0] if hidden else {}, coverage)


def _start(
    domain: Domain, trajectory: Trajectory, hidden: Mapping[str, JSON], coverage: float
) -> Iterator[tuple[Query, Prediction]]:
    """Yield the reset of an episode that revealed at least `coverage` of its hidden arrays."""
    if not hidden or _revealed(domain, trajectory.steps[-1].state) < coverage:
        return
    start = State(trajectory.task.initial.public, hidden)
    if domain.plausible_start(trajectory.task, start):
        delta = tuple(Edit("set", (name,), value) for name, value in hidden.items())
        yield Query(trajectory.task, trajectory.task.initial, None), Prediction("", delta, 0.0, False)


def dataset(domain: Domain, trajectories: Iterable[Trajectory], config: FitConfig) -> list[tuple[Query, Prediction]]:
    """Return the training examples of episodes, as they were and relabelled with other tasks."""
    rng = np.random.default_rng(config.seed)
    pairs: list[tuple[Query, Prediction]] = []
    for trajectory in trajectories:
        pairs += examples(domain, trajectory, config.coverage)
        for _ in range(config.relabels):
            other = domain.relabel(trajectory, rng)
            if other is not None:
                pairs += examples(domain, other, config.coverage)
        if _revealed(domain, trajectory.steps[-1].state) >= config.coverage:
            for _ in range(config.start_relabels):
                other = domain.relabel(trajectory, rng)
                if other is not None:
                    whole = replace(trajectory, task=other.task)
                    pairs += _start(domain, whole, domain.hindsight(whole)[0], config.coverage)
    return pairs


def _revealed(domain: Domain, state: State) -> float:
    """Return the share of arrays with "x-known" that are known in a state."""
    counts = [0, 0]

    def visit(node: Node, value: JSON, parent: Any) -> None:
        if node.known is not None:
            counts[0] += node.known_when(parent)
            counts[1] += 1
        if node.kind == "object":
            for name, child in node.children.items():
                if not child.private:
                    visit(child, value[name], value)
        elif node.kind == "array" and node.items is not None and node.items.kind == "object":
            for element in value:
                visit(node.items, element, {})

    visit(domain.schema.root, state.public, {})
    return counts[0] / counts[1] if counts[1] else 1.0


def encode(codec: Codec, tables: GrammarTables, query: Query, target: Prediction, invented_weight: float) -> Encoded:
    """Return an example as numbers, checked against the grammar.

    Raises:
        ValueError: The grammar forbids the right answer, which means that the data contradicts the schema.
    """
    prompt = codec.encode(query)
    output = codec.encode_output(prompt, target)
    weights = np.ones(len(output), dtype=np.float32)
    parse = Parser(tables, prompt, query.state, reasons=query.action is not None).parse()
    choice = next(parse)
    for index, token in enumerate(output):
        if token not in choice.ids:
            raise ValueError(f"the grammar forbids token {codec.vocabulary.tokenizer.id_to_token(token)!r}")
        if choice.sampled:
            weights[index] = invented_weight
        elif len(choice.ids) == 1:
            weights[index] = 0.0
        try:
            choice = parse.send(token)
        except StopIteration:
            break
    ids = np.array(prompt.ids + output, dtype=np.int32)
    return Encoded(ids, len(prompt.ids), weights)


def balanced(codec: Codec, encoded: Sequence[Encoded], most: int) -> list[int]:
    """Return how often to show each example per epoch: the square root of how rare its class is, 1 to `most`.

    A class is an output without its names: what is rare in play, such as an action that fails for want of a switch, is
    as much a part of the world as going about.
    """
    names = {*codec.slot_ids, *codec.number_ids, *codec.kind_ids.values()}
    classes = [tuple(token for token in item.ids[item.prompt :].tolist() if token not in names) for item in encoded]
    counts = Counter(classes)
    largest = max(counts.values())
    return [int(min(most, max(1.0, (largest / (4 * counts[name])) ** 0.5))) for name in classes]


def batches(encoded: Sequence[Encoded], copies: Sequence[int], tokens: int, seed: int) -> list[list[int]]:
    """Return one epoch's batches of example indices: similar lengths together, in a seeded random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.repeat(np.arange(len(encoded)), copies))
    window = 8192
    result: list[list[int]] = []
    for start in range(0, len(order), window):
        part = sorted(order[start : start + window].tolist(), key=lambda index: len(encoded[index].ids))
        batch: list[int] = []
        for index in part:
            if batch and (len(batch) + 1) * len(encoded[index].ids) > tokens:
                result.append(batch)
                batch = []
            batch.append(index)
        result.append(batch)
    return [result[index] for index in rng.permutation(len(result))]


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
        ValueError: There is nothing to learn from.
    """
    config = config or FitConfig()
    console = Console(stderr=True, quiet=quiet)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    if config.threads:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    pairs = dataset(domain, track(trajectories, "reading episodes", console=console, disable=quiet), config)
    if not pairs:
        raise ValueError("no transitions to learn from; record some with `dreamgym record`")
    tables, texts = fit_tables(domain, pairs, history=config.history, demonstrations=config.demonstrations)
    symbols = tables.symbols(domain.schema.root)
    model, vocabulary = _pretrained(Path(base), symbols) if base else _scratch(config, symbols, texts)
    codec = Codec(domain, tables, vocabulary)
    grammar = GrammarTables(codec)
    encoded: list[Encoded] = []
    skipped: dict[str, int] = {}
    for query, target in track(pairs, "encoding", console=console, disable=quiet):
        try:
            encoded.append(encode(codec, grammar, query, target, config.invented_weight))
        except ValueError as error:
            skipped[str(error)] = skipped.get(str(error), 0) + 1
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
    loss = _train(model, encoded, copies, config, out, resume, console, quiet)
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
    card(out, domain, config, result, command)
    (out / PROGRESS_FILE).unlink(missing_ok=True)
    return result


def save(model: Any, codec: Codec, out: Path) -> None:
    """Write config.json, model.safetensors (bfloat16), tokenizer.json and codec.json."""
    kept = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    model.to(torch.bfloat16).save_pretrained(out, safe_serialization=True)
    model.to(torch.float32).load_state_dict(kept)
    codec.save(out)


def card(out: Path, domain: Domain, config: FitConfig, result: dict[str, Any], command: str) -> None:
    """Write the checkpoint's card: data, numbers of the run and the command that made it."""
    rows = "\n".join(f"| {key} | {value} |" for key, value in result.items())
    settings = json.dumps(asdict(config), indent=2)
    (out / "README.md").write_text(
        f"# Experience model of {domain.title}\n\n"
        f"Plays `DreamGym/{domain.title}-v0`. Made by\n\n```\n{command}\n```\n\n"
        f"| run | |\n|---|---|\n{rows}\n\n## Settings\n\n```json\n{settings}\n```\n",
        encoding="utf-8",
    )


def _scratch(config: FitConfig, symbols: Sequence[str], texts: Sequence[str]) -> tuple[Any, Vocabulary]:
    from transformers import LlamaConfig, LlamaForCausalLM

    vocabulary = Vocabulary.train(texts, symbols)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary.size,
            hidden_size=config.hidden,
            intermediate_size=config.feed_forward,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            attn_implementation="eager",
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    return model, vocabulary


def _pretrained(base: Path, symbols: Sequence[str]) -> tuple[Any, Vocabulary]:
    """Load a causal language model and teach it the symbols: each starts as the mean of the subwords of its name."""
    from transformers import AutoModelForCausalLM

    if not (base / "tokenizer.json").is_file():
        raise ValueError(f"{base} is no checkpoint with a fast tokenizer: tokenizer.json is missing")
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    plain = Tokenizer.from_file(str(base / "tokenizer.json"))
    vocabulary = Vocabulary.extend(Tokenizer.from_file(str(base / "tokenizer.json")), symbols)
    model.resize_token_embeddings(max(vocabulary.size, model.config.vocab_size), mean_resizing=False)
    tables = [model.get_input_embeddings().weight, model.get_output_embeddings().weight]
    with torch.no_grad():
        for symbol in symbols:
            pieces = plain.encode(symbol.strip("<>"), add_special_tokens=False).ids
            for table in tables:
                if pieces:
                    table[vocabulary.ids[symbol]] = table[pieces].mean(dim=0)
    return model, vocabulary


def _train(
    model: Any,
    encoded: Sequence[Encoded],
    copies: Sequence[int],
    config: FitConfig,
    out: Path,
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
        Muon(matrices, lr=config.matrix_lr),
        torch.optim.AdamW(rest, lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    peaks = [config.matrix_lr, config.lr]
    step, epoch, place = 0, 0, 0
    saved = out / PROGRESS_FILE
    if resume and saved.is_file():
        progress = torch.load(saved, weights_only=True)
        model.load_state_dict(progress["model"])
        for optimiser, state in zip(optimisers, progress["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        step, epoch, place = progress["step"], progress["epoch"], progress["place"]
        console.print(f"resuming at step {step}")
    order = batches(encoded, copies, config.tokens, config.seed + epoch)
    precision = fastest_precision(model, encoded, order[0], device)
    gc.collect()
    gc.freeze()
    recent: list[float] = []
    last_save = time.time()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet) as progress_bar:
        bar = progress_bar.add_task("training", total=config.steps, completed=step)
        while step < config.steps:
            if place == len(order):
                epoch, place = epoch + 1, 0
                order = batches(encoded, copies, config.tokens, config.seed + epoch)
            rate = _schedule(step, config)
            for optimiser, peak in zip(optimisers, peaks, strict=True):
                for group in optimiser.param_groups:
                    group["lr"] = peak * rate
            loss = batch_loss(model, [encoded[index] for index in order[place]], device, precision)
            loss.backward()
            nn.utils.clip_grad_norm_(rest, 1.0)
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
            recent = [*recent[-99:], float(loss.detach())]
            step, place = step + 1, place + 1
            if step % 10 == 0:
                mean = sum(recent) / len(recent)
                progress_bar.update(bar, completed=step, description=f"training, epoch {epoch + 1}, loss {mean:.4f}")
            if step % 200 == 0:
                console.log(f"step {step} epoch {epoch + 1} loss {sum(recent) / len(recent):.4f}")
            if time.time() - last_save > config.save_every:
                state = {
                    "model": model.state_dict(),
                    "optimisers": [optimiser.state_dict() for optimiser in optimisers],
                    "step": step,
                    "epoch": epoch,
                    "place": place,
                }
                torch.save(state, saved.with_suffix(".tmp"))
                os.replace(saved.with_suffix(".tmp"), saved)
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
    """Return the weighted cross entropy of the outputs of a batch, padded on the right."""
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
        logits = model.get_output_embeddings()(hidden[where])
    targets = tokens.flatten()[where + 1]
    losses = nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    return (losses * weight[where]).sum() / weight[where].sum()


def fastest_precision(model: Any, encoded: Sequence[Encoded], batch: Sequence[int], device: torch.device) -> torch.dtype:
    """Return bfloat16 where autocast makes a step faster, float32 otherwise, by trying both."""
    timings: dict[torch.dtype, float] = {}
    for precision in (torch.float32, torch.bfloat16):
        for _ in range(2):  # the second run is the one that counts
            started = time.perf_counter()
            batch_loss(model, [encoded[index] for index in batch], device, precision).backward()
            timings[precision] = time.perf_counter() - started
    model.zero_grad(set_to_none=True)
    return min(timings, key=lambda precision: timings[precision])
