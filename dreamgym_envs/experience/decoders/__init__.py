"""Decoders: a checkpoint's forward pass on the hardware at hand, behind one interface (see `base`)."""

from pathlib import Path
from typing import Any

from dreamgym_envs.experience.decoders.base import Decoder, DecoderError, Session
from dreamgym_envs.experience.decoders.llama import LlamaWeights, as_arrays, read_config, read_tensors

__all__ = ["Decoder", "DecoderError", "Session", "load_decoder"]


def load_decoder(path_or_model: Any, backend: str = "auto") -> Decoder:
    """Load a decoder."""
    from dreamgym_envs.experience.decoders.numpy_ import NumpyDecoder

    if isinstance(path_or_model, str | Path):
        directory = Path(path_or_model)
        return NumpyDecoder(LlamaWeights.build(read_config(directory), read_tensors(directory), str(directory)))
    return NumpyDecoder(
        LlamaWeights.build(path_or_model.config.to_dict(), as_arrays(path_or_model.state_dict()), "the model")
    )
