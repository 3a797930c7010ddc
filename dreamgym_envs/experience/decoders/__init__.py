"""Decoders: a checkpoint's forward pass on the hardware at hand, behind one interface (see `base`).

| backend | for | results |
|---|---|---|
| numba | small Llamas on a CPU; the extra `fast` | the same for a row whatever the batch, down to the bit |
| numpy | small Llamas on a CPU; nothing to install | the same for a row whatever the batch, down to the bit |
| torch | any causal language model, on a GPU if there is one | may differ in the last bits with the batch |
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dreamgym_envs.experience.decoders.base import Decoder, DecoderError, Session
from dreamgym_envs.experience.decoders.llama import (
    LlamaShape,
    LlamaWeights,
    as_arrays,
    read_config,
    read_tensors,
    unsupported,
)

__all__ = ["BACKENDS", "Decoder", "DecoderError", "Session", "load_decoder"]

BACKENDS = ("auto", "numba", "numpy", "torch")

SMALL = 20_000_000
"""Most parameters of a model that "auto" decodes on one core a session; a larger one is faster in torch."""

TOLERANCE = 1e-3
"""Largest difference of numba's logits from NumPy's that passes, relative to the largest logit."""


def load_decoder(path_or_model: Any, backend: str = "auto", *, device: str | None = None) -> Decoder:
    """Load a checkpoint for decoding.

    Args:
        path_or_model: A directory with config.json and model.safetensors, as `save_pretrained` writes it, or a causal
            language model of transformers.
        backend: "numba", "numpy" or "torch". "auto" takes, for a Llama of at most `SMALL` parameters, numba if it is
            installed, fits the model and passes its check against NumPy, else NumPy; and torch for everything else.
        device: Where torch computes; None takes the first GPU, or the CPU where there is none. A model that was passed
            in stays where it is.

    Returns:
        The decoder; its `backend` says which one it is.

    Raises:
        DecoderError: The checkpoint is missing, damaged or does not fit the backend, or the backend is not installed.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(
        ...     vocab_size=96, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=1
        ... )
        >>> session = load_decoder(LlamaForCausalLM(config), backend="numpy").session()
        >>> session.reset(rows=1)
        >>> zero = np.zeros(1, np.int32)
        >>> session.forward(ids=zero, row=zero, position=zero, last=zero).shape
        (1, 96)
    """
    if backend not in BACKENDS:
        raise DecoderError(f"unknown backend {backend!r}: expected one of {', '.join(BACKENDS)}")
    directory = Path(path_or_model) if isinstance(path_or_model, str | Path) else None
    config = path_or_model.config.to_dict() if directory is None else read_config(directory)
    if backend == "auto" and not _small(config):
        backend = "torch"
    if backend == "torch":
        return _torch(path_or_model, device)
    if directory is None:
        weights = LlamaWeights.build(config, as_arrays(path_or_model.state_dict()), type(path_or_model).__name__)
    else:
        LlamaShape.parse(config)
        weights = LlamaWeights.build(config, read_tensors(directory), str(directory))
    if backend == "numba":
        return _numba(weights)
    return (_numba_if_sound(weights) if backend == "auto" else None) or _numpy(weights)


def _small(config: Mapping[str, Any]) -> bool:
    """Return whether a configuration is a plain Llama of at most `SMALL` parameters."""
    if unsupported(config):
        return False
    shape = LlamaShape.parse(config)
    return sum(int(np.prod(size)) for size in shape.tensors().values()) <= SMALL


def _numpy(weights: LlamaWeights) -> Decoder:
    from dreamgym_envs.experience.decoders.numpy_ import NumpyDecoder

    return NumpyDecoder(weights)


def _numba(weights: LlamaWeights) -> Decoder:
    """Return a numba decoder that agrees with NumPy on a random probe.

    Raises:
        DecoderError: numba is missing, cannot run the checkpoint, or computes something else.
    """
    try:
        from dreamgym_envs.experience.decoders.numba_ import NumbaDecoder
    except ImportError as error:
        raise DecoderError(
            f"backend='numba' needs numba, which does not import ({error}). "
            "Run `pip install 'dreamgym-envs[fast]'`, or use backend='numpy'."
        ) from error
    decoder = NumbaDecoder(weights)
    difference = _difference(decoder, _numpy(weights))
    if not difference <= TOLERANCE:
        raise DecoderError(
            f"numba's logits differ from NumPy's by {difference:.1e}, more than {TOLERANCE:.0e}: its compiler gets "
            "something wrong on this processor. Use backend='numpy', and please report it."
        )
    return decoder


def _numba_if_sound(weights: LlamaWeights) -> Decoder | None:
    """Return a numba decoder, or None where there is none; what should work and does not is warned of."""
    from importlib.util import find_spec

    if find_spec("numba") is None:
        return None
    try:
        return _numba(weights)
    except Exception as error:  # a compiler may fail in any way, and NumPy does the same work
        if not (isinstance(error, DecoderError) and "must be a multiple" in str(error)):
            warnings.warn(f"decoding with NumPy, since numba fails: {error}", RuntimeWarning, stacklevel=3)
        return None


def _difference(decoder: Decoder, reference: Decoder) -> float:
    """Return how far two decoders' logits are apart on random tokens, relative to the largest logit."""
    rng = np.random.default_rng(0)
    longest = min(20, decoder.max_length)
    counts = np.minimum([longest, 1, longest // 2], decoder.max_length)
    row = np.repeat(np.arange(3), counts).astype(np.int32)
    position = np.concatenate([np.arange(count) for count in counts]).astype(np.int32)
    ids = rng.integers(0, decoder.vocabulary_size, len(row)).astype(np.int32)
    last = np.arange(0, len(row), 2, dtype=np.int32)
    logits = []
    for each in (decoder, reference):
        session = each.session()
        session.reset(3)
        logits.append(session.forward(ids, row, position, last))
    return float(np.abs(logits[0] - logits[1]).max() / (np.abs(logits[1]).max() + 1e-6))


def _torch(path_or_model: Any, device: str | None) -> Decoder:
    """Return a torch decoder of a model or a checkpoint directory."""
    from dreamgym_envs.experience.decoders.torch_ import TorchDecoder, load_model

    model = load_model(Path(path_or_model), device) if isinstance(path_or_model, str | Path) else path_or_model
    return TorchDecoder(model)
