"""Env-steps per second of every decoder, beside transformers' generate() on the same checkpoint.

    python -m benchmarks.decoders                                  # a random 1.03 M-parameter Llama, 33 + 20 tokens
    python -m benchmarks.decoders --prompt 24 --output 12 --checkpoint dreamgym_envs/assets/models/alfworld

An env-step is one prompt of --prompt tokens answered by --output tokens, greedily; no grammar, no sampling, no Python
environment. All rows of a batch are equally long, which is what generate() likes best. One core a thread: BLAS and
torch are held to one thread, and with two threads each decodes half of the batch in a session of its own.

Two clocks. `wall` is what a user waits for: the best of the repetitions. `cpu` takes the processor time of the threads
instead, shared by their number: what an otherwise idle machine would do if no thread ever waited for another.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from dreamgym_envs.experience.decoders import Decoder, DecoderError, Session, load_decoder

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Job = Callable[[], object]


def random_llama(vocabulary: int) -> Any:
    """Return the embedded checkpoint's architecture with random weights, exact in bfloat16 as stored ones are."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.08,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.bfloat16().float())
    return model


def decode(session: Session, prompts: np.ndarray, output: int) -> np.ndarray:
    """Answer prompts [batch, length] with `output` tokens each, greedily; return them."""
    batch, length = prompts.shape
    rows = np.arange(batch, dtype=np.int32)
    answers = np.empty((batch, output), np.int32)
    session.reset(batch)
    logits = session.forward(
        prompts.reshape(-1),
        np.repeat(rows, length),
        np.tile(np.arange(length, dtype=np.int32), batch),
        (rows + 1) * length - 1,
    )
    for step in range(output):
        answers[:, step] = logits.argmax(axis=1)
        if step + 1 < output:
            position = np.full(batch, length + step, np.int32)
            logits = session.forward(np.ascontiguousarray(answers[:, step]), rows, position, rows)
    return answers


def decoder_job(decoder: Decoder, prompts: np.ndarray, output: int, pool: ThreadPoolExecutor | None) -> Job:
    """Return a job that decodes a batch, in one thread or shared between the pool's two, in parts of `best_rows`."""
    shares = np.array_split(prompts, 2 if pool else 1)
    sessions = [decoder.session() for _ in shares]

    def share(index: int) -> list[np.ndarray]:
        parts = -(-len(shares[index]) // decoder.best_rows)
        return [decode(sessions[index], part, output) for part in np.array_split(shares[index], parts)]

    if pool is None:
        return lambda: share(0)
    return lambda: list(pool.map(share, range(2)))


def generate_job(model: Any, prompts: np.ndarray, output: int) -> Job:
    """Return a job that decodes a batch with transformers' generate()."""
    ids = torch.from_numpy(prompts.astype(np.int64))
    generate = partial(
        model.generate, ids, attention_mask=torch.ones_like(ids), max_new_tokens=output, min_new_tokens=output,
        do_sample=False, pad_token_id=0,
    )  # fmt: skip
    return torch.inference_mode()(generate)


def measure(job: Job, steps: int, threads: int, seconds: float) -> tuple[float, float]:
    """Return env-steps per second by wall and processor time, the best of `seconds` of repetitions."""
    job()
    wall = cpu = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or wall == float("inf"):
        started, used = time.perf_counter(), time.process_time()
        job()
        wall = min(wall, time.perf_counter() - started)
        cpu = min(cpu, (time.process_time() - used) / threads)
    return steps / wall, steps / cpu


def overhead(decoder: Decoder) -> float:
    """Return the microseconds of a call that has nothing to compute: the price of the Python side."""
    session = decoder.session()
    session.reset(1)
    none = np.zeros(0, np.int32)
    session.forward(none, none, none, none)
    times = []
    for _ in range(20):
        started = time.thread_time()
        for _ in range(200):
            session.forward(none, none, none, none)
        times.append((time.thread_time() - started) / 200)
    return min(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", help="a checkpoint directory (default: random weights)")
    parser.add_argument("--prompt", type=int, default=33, help="tokens of a prompt (default: %(default)s)")
    parser.add_argument("--output", type=int, default=20, help="tokens of an answer (default: %(default)s)")
    parser.add_argument(
        "--vocabulary", type=int, default=1400, help="tokens of the random model (default: %(default)s)"
    )
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64], help="batch sizes (default: 1 16 64)")
    parser.add_argument(
        "--backend", nargs="+", default=["generate", "torch", "numpy", "numba"], help="what to measure (default: all)"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of repetitions a cell (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()

    if not ONE_THREAD.items() <= os.environ.items():  # BLAS reads them when NumPy is imported, which is over
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | ONE_THREAD)
    torch.set_num_threads(1)
    if arguments.checkpoint:
        model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=torch.float32).eval()
    else:
        model = random_llama(arguments.vocabulary)
    source = arguments.checkpoint or model
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    if not arguments.json:
        parameters = sum(weight.numel() for weight in model.parameters())
        print(f"{parameters / 1e6:.2f} M parameters, {arguments.prompt} + {arguments.output} tokens, env-steps/s")
        print(f"{'backend':<10}{'threads':>8}{'batch':>7}{'wall':>9}{'cpu':>9}")
    with ThreadPoolExecutor(2) as pool:
        for backend in arguments.backend:
            decoder = None
            if backend != "generate":
                try:
                    decoder = load_decoder(source, backend)
                except DecoderError as error:
                    print(f"{backend}: {error}", file=sys.stderr)
                    continue
                if not arguments.json:
                    print(f"{backend}: {overhead(decoder):.1f} us for a call that computes nothing")
            for threads in (1, 2) if decoder else (1,):
                for batch in arguments.batch:
                    if batch < threads:
                        continue
                    prompts = rng.integers(0, model.config.vocab_size, (batch, arguments.prompt)).astype(np.int32)
                    job = (
                        decoder_job(decoder, prompts, arguments.output, pool if threads == 2 else None)
                        if decoder
                        else generate_job(model, prompts, arguments.output)
                    )
                    wall, cpu = measure(job, batch, threads, arguments.seconds)
                    rows.append(
                        {"backend": backend, "threads": threads, "batch": batch, "steps_per_second": wall, "cpu": cpu}
                    )
                    if not arguments.json:
                        print(f"{backend:<10}{threads:>8}{batch:>7}{wall:>9.0f}{cpu:>9.0f}", flush=True)
    if arguments.json:
        print(json.dumps({"prompt": arguments.prompt, "output": arguments.output, "rows": rows}))


if __name__ == "__main__":
    main()
