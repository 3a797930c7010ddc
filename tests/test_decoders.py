"""Decoders: transformers' logits, by one call for every shape of batch, and the same whatever the batch."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from dreamgym_envs.experience import decoders
from dreamgym_envs.experience.decoders import Decoder, DecoderError, load_decoder

VOCABULARY = 211
EXACT = ("numpy", "numba")
LLAMAS = {
    "two heads": {},
    "shared key-value heads": {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32},
    "untied head, one layer": {"tie_word_embeddings": False, "num_hidden_layers": 1},
}


def llama(**changes: object) -> LlamaForCausalLM:
    """A random Llama with weights large enough that no two logits tie, all of them exact in bfloat16."""
    torch.manual_seed(0)
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": 128,
        "intermediate_size": 192,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "tie_word_embeddings": True,
        "max_position_embeddings": 256,
        "initializer_range": 0.15,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    model = LlamaForCausalLM(LlamaConfig(**(settings | changes))).eval()
    return as_stored(model)


def qwen() -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.15,
    )
    return as_stored(Qwen2ForCausalLM(config).eval())


def as_stored(model: PreTrainedModel) -> PreTrainedModel:
    """Round a model's weights to bfloat16 and vary the norms' gains, as training does."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5)
            weight.copy_(weight.bfloat16().float())
    return model


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return llama()


@pytest.fixture(scope="module")
def exact(model: LlamaForCausalLM) -> dict[str, Decoder]:
    return {backend: load_decoder(model, backend) for backend in EXACT}


@pytest.fixture
def checkpoint(model: LlamaForCausalLM, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def flat(chunks: list[tuple[int, int, list[int]]], every: bool = True) -> tuple[np.ndarray, ...]:
    """Arguments of `forward` for chunks (row, first position, tokens); logits for every token, or each chunk's last."""
    ids = [token for _, _, tokens in chunks for token in tokens]
    row = [row for row, _, tokens in chunks for _ in tokens]
    position = [start + i for _, start, tokens in chunks for i in range(len(tokens))]
    ends = np.cumsum([len(tokens) for _, _, tokens in chunks]) - 1
    last = range(len(ids)) if every else ends
    return tuple(np.array(values, dtype=np.int32) for values in (ids, row, position, last))


def prompts(*lengths: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, VOCABULARY, length).tolist() for length in lengths]


def greedy(decoder: Decoder, prompts: list[list[int]], tokens: int) -> list[list[int]]:
    session = decoder.session()
    session.reset(len(prompts))
    pending = [(row, 0, prompt) for row, prompt in enumerate(prompts)]
    outputs: list[list[int]] = [[] for _ in prompts]
    for step in range(tokens):
        chosen = session.forward(*flat(pending, every=False)).argmax(axis=1).tolist()
        for output, token in zip(outputs, chosen, strict=True):
            output.append(token)
        pending = [(row, len(prompt) + step, [outputs[row][-1]]) for row, prompt in enumerate(prompts)]
    return outputs


def expected_logits(model: PreTrainedModel, prompt: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([prompt])).logits[0].numpy()


def expected_greedy(model: PreTrainedModel, prompt: list[int], tokens: int) -> list[int]:
    ids = torch.tensor([prompt])
    mask = torch.ones_like(ids)
    output = model.generate(ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0)
    return output[0, len(prompt) :].tolist()


# What a decoder computes


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
@pytest.mark.parametrize("changes", LLAMAS.values(), ids=LLAMAS.keys())
def test_a_llama_decodes_as_in_transformers(backend: str, changes: dict[str, object]) -> None:
    model = llama(**changes)
    decoder = load_decoder(model, backend)
    batch = prompts(9, 1, 33)

    session = decoder.session()
    session.reset(3)
    logits = session.forward(*flat([(row, 0, prompt) for row, prompt in enumerate(batch)]))

    expected = np.concatenate([expected_logits(model, prompt) for prompt in batch])
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected, atol=1e-4 * np.abs(expected).max())
    assert greedy(decoder, batch, 20) == [expected_greedy(model, prompt, 20) for prompt in batch]


def test_torch_decodes_other_architectures_too() -> None:
    model = qwen()
    batch = prompts(5, 17)
    decoder = load_decoder(model)
    assert decoder.backend == "torch"
    assert greedy(decoder, batch, 20) == [expected_greedy(model, prompt, 20) for prompt in batch]


@pytest.mark.parametrize("backend", EXACT)
def test_stored_weights_give_what_the_model_in_memory_gives(
    checkpoint: Path, model: LlamaForCausalLM, exact: dict[str, Decoder], backend: str
) -> None:
    # given the same model stored as float32, and as bfloat16
    halved = checkpoint.parent / "bfloat16"
    llama().to(torch.bfloat16).save_pretrained(halved)
    arguments = flat([(0, 0, prompts(12)[0])])
    logits = []
    for decoder in (exact[backend], load_decoder(checkpoint, backend), load_decoder(halved, backend)):
        session = decoder.session()
        session.reset(1)
        logits.append(session.forward(*arguments))
    np.testing.assert_array_equal(logits[1], logits[0])
    np.testing.assert_array_equal(logits[2], logits[0])


def test_numba_keeps_bfloat16_weights_halved_and_others_whole() -> None:
    model = llama(num_hidden_layers=1)
    assert load_decoder(model, "numba").weights.dtype == np.uint16
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight.mul_(1.001)
    decoder = load_decoder(model, "numba")
    assert decoder.weights.dtype == np.float32
    assert greedy(decoder, prompts(7), 10) == [expected_greedy(model, prompts(7)[0], 10)]


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_widths_that_are_no_multiple_of_anything_decode(backend: str) -> None:
    model = llama(hidden_size=36, intermediate_size=50, num_attention_heads=6, num_key_value_heads=3, head_dim=6)
    batch = prompts(5, 2)
    assert greedy(load_decoder(model, backend), batch, 12) == [expected_greedy(model, prompt, 12) for prompt in batch]


# One call for every shape of batch


@pytest.mark.parametrize("backend", EXACT)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_row_does_not_depend_on_the_batch_nor_on_its_chunks(
    exact: dict[str, Decoder], backend: str, data: st.DataObject
) -> None:
    decoder = exact[backend]
    rows = data.draw(st.integers(1, 12), "rows")
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=rows, max_size=rows), "lengths")
    texts = prompts(*lengths, seed=data.draw(st.integers(0, 99), "seed"))
    # given what each row gives alone, in one piece
    alone = decoder.session()
    expected = []
    for text in texts:
        alone.reset(1)
        expected.append(alone.forward(*flat([(0, 0, text)])))
    # when the rows are decoded together, in random pieces and with some left out of each call
    together = decoder.session()
    together.reset(rows)
    done = [0] * rows
    while any(count < len(text) for count, text in zip(done, texts, strict=True)):
        sizes = data.draw(st.lists(st.integers(0, 17), min_size=rows, max_size=rows), "sizes")
        chunks = [
            (row, done[row], texts[row][done[row] : done[row] + size])
            for row, size in enumerate(sizes)
            if size and done[row] < len(texts[row])
        ]
        if not chunks:
            chunks = [(row, done[row], text[done[row] :]) for row, text in enumerate(texts) if done[row] < len(text)]
        logits = together.forward(*flat(chunks))
        # then every bit is the same
        place = 0
        for row, start, tokens in chunks:
            part = logits[place : place + len(tokens)]
            np.testing.assert_array_equal(part, expected[row][start : start + len(tokens)])
            place += len(tokens)
            done[row] += len(tokens)


def test_rows_do_not_depend_on_the_batch_where_blas_rounds_by_the_number_of_rows(checkpoint: Path) -> None:
    # given OpenBLAS's kernels for AVX2 (another BLAS, or another processor, ignores the variable)
    script = (
        "import sys\n"
        "from dreamgym_envs.experience.decoders import load_decoder\n"
        "from tests.test_decoders import greedy, prompts\n"
        "decoder = load_decoder(sys.argv[1], 'numpy')\n"
        "texts = prompts(9, 1, 33, 2, 5, 6, 7, 30, 30)\n"
        "assert decoder.batch_invariant\n"
        "assert greedy(decoder, texts, 9) == [greedy(decoder, [text], 9)[0] for text in texts]\n"
    )
    command = [sys.executable, "-c", script, str(checkpoint)]
    subprocess.run(command, env=os.environ | {"OPENBLAS_CORETYPE": "Haswell"}, check=True)


@pytest.mark.parametrize("backend", EXACT)
def test_large_batches_give_what_single_rows_give(exact: dict[str, Decoder], backend: str) -> None:
    # given more tokens than go through the layers at once
    texts = prompts(*np.random.default_rng(3).integers(5, 40, 40))
    together = greedy(exact[backend], texts, 12)
    assert together == [greedy(exact[backend], [text], 12)[0] for text in texts]


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
def test_only_the_wanted_logits_come_back(model: LlamaForCausalLM, backend: str) -> None:
    session = load_decoder(model, backend).session()
    session.reset(2)
    ids, row, position, _ = flat([(0, 0, prompts(6)[0]), (1, 0, prompts(4)[0])])
    every = session.forward(ids, row, position, np.arange(10, dtype=np.int32))

    some = session.forward(ids, row, position, np.array([2, 5, 9], np.int32))
    np.testing.assert_allclose(some, every[[2, 5, 9]], atol=1e-4)

    # none at all still caches
    session.reset(2)
    assert session.forward(ids[:5], row[:5], position[:5], np.zeros(0, np.int32)).shape == (0, VOCABULARY)
    next_ = session.forward(ids[5:6], row[5:6], position[5:6], np.zeros(1, np.int32))
    np.testing.assert_allclose(next_, every[5:6], atol=1e-4)
    assert session.forward(*flat([])).shape == (0, VOCABULARY)


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
def test_the_cache_grows_with_the_positions_and_keeps_what_it_holds(model: LlamaForCausalLM, backend: str) -> None:
    text = prompts(200)[0]
    session = load_decoder(model, backend).session()
    session.reset(1)
    session.reset(3)
    pieces = [
        session.forward(*flat([(2, start, text[start : start + size]), (0, start, text[start : start + size])]))
        for start, size in ((0, 50), (50, 30), (80, 1), (81, 119))
    ]
    ours = np.concatenate([piece[len(piece) // 2 :] for piece in pieces])
    expected = expected_logits(model, text)
    np.testing.assert_allclose(ours, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
def test_reset_forgets(model: LlamaForCausalLM, backend: str) -> None:
    session = load_decoder(model, backend).session()
    session.reset(2)
    first = session.forward(*flat([(0, 0, prompts(8)[0])]))
    session.forward(*flat([(1, 0, prompts(60, seed=1)[0])]))
    session.reset(1)
    np.testing.assert_allclose(session.forward(*flat([(0, 0, prompts(8)[0])])), first, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
def test_sessions_run_side_by_side_in_threads(model: LlamaForCausalLM, backend: str) -> None:
    decoder = load_decoder(model, backend)
    batches = [prompts(11, 3, 20, seed=seed) for seed in range(8)]
    alone = [greedy(decoder, batch, 10) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda batch: greedy(decoder, batch, 10), batches)) == alone


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([VOCABULARY], [0], [0], [0]), "token ids"),
        (([-1], [0], [0], [0]), "token ids"),
        (([1], [2], [0], [0]), "rows must be in"),
        (([1], [0], [256], [0]), "positions must be in"),
        (([1], [0], [-1], [0]), "positions must be in"),
        (([1], [0], [0], [1]), "last must be"),
        (([1, 2], [0, 0], [0, 1], [1, 0]), "last must be"),
        (([1, 2], [0], [0, 1], [1]), "equally long"),
    ],
)
def test_arguments_out_of_range_are_refused(
    model: LlamaForCausalLM, backend: str, arguments: tuple[list[int], ...], message: str
) -> None:
    session = load_decoder(model, backend).session()
    session.reset(2)
    with pytest.raises(ValueError, match=message):
        session.forward(*(np.array(values, np.int32) for values in arguments))


def test_a_decoder_says_what_it_is(exact: dict[str, Decoder]) -> None:
    for backend, decoder in exact.items():
        assert isinstance(decoder, Decoder)
        assert (decoder.backend, decoder.vocabulary_size, decoder.max_length) == (backend, VOCABULARY, 256)
        assert decoder.batch_invariant
    with pytest.raises(ValueError, match="at least 0"):
        exact["numpy"].session().reset(-1)


# Which backend


def test_auto_takes_numba_for_a_small_llama(model: LlamaForCausalLM) -> None:
    assert load_decoder(model).backend == "numba"


def test_auto_takes_torch_for_a_large_llama(model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "SMALL", 1000)
    assert load_decoder(model).backend == "torch"


def test_auto_takes_numpy_where_numba_is_not_installed(
    model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "dreamgym_envs.experience.decoders.numba_", None)
    assert load_decoder(model).backend == "numpy"
    with pytest.raises(DecoderError, match=r"pip install 'dreamgym-envs\[fast\]'"):
        load_decoder(model, "numba")


def test_auto_takes_numpy_for_widths_that_the_kernels_do_not_know() -> None:
    model = llama(hidden_size=36, num_attention_heads=6, num_key_value_heads=6, head_dim=6)
    assert load_decoder(model).backend == "numpy"
    with pytest.raises(DecoderError, match="hidden_size must be a multiple of"):
        load_decoder(model, "numba")


def test_numba_that_computes_something_else_is_not_used(
    model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a tolerance that no decoder meets
    monkeypatch.setattr(decoders, "TOLERANCE", -1.0)
    with pytest.warns(RuntimeWarning, match="decoding with NumPy"):
        assert load_decoder(model).backend == "numpy"
    with pytest.raises(DecoderError, match="differ from NumPy's"):
        load_decoder(model, "numba")


def test_kernels_compile_where_no_cache_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from dreamgym_envs.experience.decoders import kernels

    def njit(cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available for file")
        return lambda function: ("compiled", function, options)

    monkeypatch.setattr(kernels, "njit", njit)
    assert kernels._jit(len) == ("compiled", len, {"nogil": True})


@pytest.mark.slow
def test_kernels_for_a_processor_without_avx512_compute_the_same(checkpoint: Path, exact: dict[str, Decoder]) -> None:
    # given numba told to compile for an older processor
    script = (
        "import sys, json, numpy as np\n"
        "from dreamgym_envs.experience.decoders import load_decoder\n"
        "from tests.test_decoders import greedy, prompts\n"
        "decoder = load_decoder(sys.argv[1], 'numba')\n"
        "together = greedy(decoder, prompts(9, 1, 33, 2, 5, 6, 7), 15)\n"
        "assert together == [greedy(decoder, [text], 15)[0] for text in prompts(9, 1, 33, 2, 5, 6, 7)]\n"
        "print(json.dumps(together))\n"
    )
    features = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+fma"
    environment = os.environ | {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    result = subprocess.run(
        [sys.executable, "-c", script, str(checkpoint)], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == greedy(exact["numpy"], prompts(9, 1, 33, 2, 5, 6, 7), 15)


# Checkpoints that are none


def test_an_unknown_backend_is_named(model: LlamaForCausalLM) -> None:
    with pytest.raises(DecoderError, match="unknown backend 'jax': expected one of auto, numba, numpy, torch"):
        load_decoder(model, "jax")


@pytest.mark.parametrize("backend", ["auto", "numpy", "torch"])
def test_a_directory_without_a_checkpoint_is_refused(tmp_path: Path, backend: str) -> None:
    with pytest.raises(DecoderError, match=r"is no checkpoint: it has no config.json. Fit one with `dreamgym fit"):
        load_decoder(tmp_path, backend)
    with pytest.raises(DecoderError, match="it is not a directory"):
        load_decoder(tmp_path / "absent", backend)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_a_truncated_checkpoint_is_refused(checkpoint: Path, backend: str) -> None:
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(DecoderError, match=r"truncated or damaged|cannot load"):
        load_decoder(checkpoint, backend)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_weights_that_do_not_fit_the_config_are_refused(checkpoint: Path, backend: str) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"intermediate_size": 64}))
    with pytest.raises(DecoderError, match=r"gate_proj|size|mismatch"):
        load_decoder(checkpoint, backend)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_missing_tensors_are_named(checkpoint: Path, backend: str) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(DecoderError, match=r"lacks .*model\.layers\.3"):
        load_decoder(checkpoint, backend)


def test_layers_beyond_the_config_are_refused(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
    with pytest.raises(DecoderError, match="more than the 1 layers"):
        load_decoder(checkpoint, "numpy")


def test_config_and_weights_files_that_are_damaged_or_absent_are_named(checkpoint: Path) -> None:
    elsewhere = checkpoint.parent / "copy"
    shutil.copytree(checkpoint, elsewhere)
    (elsewhere / "config.json").write_text("{")
    with pytest.raises(DecoderError, match=r"config.json is not JSON"):
        load_decoder(elsewhere)
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(DecoderError, match=r"it has no model.safetensors"):
        load_decoder(checkpoint)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "qwen2"},
        {"attention_bias": True},
        {"hidden_act": "gelu"},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
    ],
)
def test_numpy_and_numba_refuse_what_is_not_a_plain_llama(checkpoint: Path, changes: dict[str, object]) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | changes))
    for backend in EXACT:
        with pytest.raises(DecoderError, match="Use backend='torch'"):
            load_decoder(checkpoint, backend)
