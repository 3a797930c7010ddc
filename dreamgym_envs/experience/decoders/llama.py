"""A Llama checkpoint as plain NumPy arrays: what the NumPy and numba backends are made from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dreamgym_envs.experience.decoders.base import DecoderError

Floats = NDArray[np.float32]

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """The numbers of a Llama's config.json that its forward pass needs."""

    vocabulary: int
    hidden: int
    feed_forward: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    epsilon: float
    rope_theta: float
    max_length: int
    tied: bool

    @classmethod
    def parse(cls, config: Mapping[str, Any]) -> "LlamaShape":
        """Read a Hugging Face configuration.

        Raises:
            DecoderError: The architecture is not a plain Llama; the message says why.
        """
        why = unsupported(config)
        if why:
            raise DecoderError(f"only plain Llama checkpoints run on this backend: {why}. Use backend='torch'.")
        try:
            heads = int(config["num_attention_heads"])
            hidden = int(config["hidden_size"])
            rope = config.get("rope_parameters") or {}
            shape = cls(
                vocabulary=int(config["vocab_size"]),
                hidden=hidden,
                feed_forward=int(config["intermediate_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=heads,
                kv_heads=int(config.get("num_key_value_heads") or heads),
                head_dim=int(config.get("head_dim") or hidden // heads),
                epsilon=float(config.get("rms_norm_eps", 1e-6)),
                rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
                max_length=int(config.get("max_position_embeddings", 2048)),
                tied=bool(config.get("tie_word_embeddings", False)),
            )
        except KeyError as error:
            raise DecoderError(f"{CONFIG_FILE} lacks {error}") from error
        if shape.heads % shape.kv_heads or shape.head_dim % 2:
            raise DecoderError(
                f"{CONFIG_FILE}: {shape.heads} heads cannot share {shape.kv_heads} key-value heads of {shape.head_dim}"
            )
        return shape

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the shape that each tensor of the checkpoint must have, by its Hugging Face name."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        expected: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocabulary, self.hidden),
            "model.norm.weight": (self.hidden,),
        }
        if not self.tied:
            expected["lm_head.weight"] = (self.vocabulary, self.hidden)
        for layer in range(self.layers):
            expected |= {
                f"model.layers.{layer}.{name}.weight": size
                for name, size in {
                    "input_layernorm": (self.hidden,),
                    "self_attn.q_proj": (queries, self.hidden),
                    "self_attn.k_proj": (keys, self.hidden),
                    "self_attn.v_proj": (keys, self.hidden),
                    "self_attn.o_proj": (self.hidden, queries),
                    "post_attention_layernorm": (self.hidden,),
                    "mlp.gate_proj": (self.feed_forward, self.hidden),
                    "mlp.up_proj": (self.feed_forward, self.hidden),
                    "mlp.down_proj": (self.hidden, self.feed_forward),
                }.items()
            }
        return expected


@dataclass(frozen=True, slots=True)
class LlamaLayer:
    """One layer's matrices, each [in, out], float32; projections that share an input are joined.

    Attributes:
        attention_norm: Gain [hidden].
        qkv: [hidden, (heads + 2 kv_heads) * head_dim].
        output: [heads * head_dim, hidden].
        mlp_norm: Gain [hidden].
        gate_up: [hidden, 2 * feed_forward], the gate first.
        down: [feed_forward, hidden].
    """

    attention_norm: Floats
    qkv: Floats
    output: Floats
    mlp_norm: Floats
    gate_up: Floats
    down: Floats


@dataclass(frozen=True, slots=True)
class LlamaWeights:
    """A Llama's weights, as they are in the checkpoint.

    Attributes:
        shape: Its dimensions.
        embedding: [vocabulary, hidden].
        layers: Its layers.
        norm: Gain of the last norm [hidden].
        head: [hidden, vocabulary]; the embedding transposed where they are tied.
    """

    shape: LlamaShape
    embedding: Floats
    layers: tuple[LlamaLayer, ...]
    norm: Floats
    head: Floats

    @classmethod
    def build(cls, config: Mapping[str, Any], tensors: Mapping[str, Floats], source: str) -> "LlamaWeights":
        """Check a checkpoint's tensors against its config and join them.

        Args:
            config: The Hugging Face configuration.
            tensors: Arrays by their Hugging Face names.
            source: Where they come from, for messages.

        Raises:
            DecoderError: A tensor is missing, has another shape than the config says, or is of a layer beyond it.
        """
        shape = LlamaShape.parse(config)
        beyond = f"model.layers.{shape.layers}."
        if any(name.startswith(beyond) for name in tensors):
            raise DecoderError(
                f"{source} has more than the {shape.layers} layers that {CONFIG_FILE} says. {_FIT_AGAIN}"
            )
        for name, expected in shape.tensors().items():
            if name not in tensors:
                raise DecoderError(f"{source} lacks the tensor {name} that {CONFIG_FILE} asks for. {_FIT_AGAIN}")
            if tensors[name].shape != expected:
                raise DecoderError(
                    f"{source}: {name} is {list(tensors[name].shape)}, but {CONFIG_FILE} says {list(expected)}. "
                    f"{_FIT_AGAIN}"
                )

        def joined(layer: int, *names: str) -> Floats:
            return np.concatenate([tensors[f"model.layers.{layer}.{name}.weight"].T for name in names], axis=1)

        layers = tuple(
            LlamaLayer(
                attention_norm=tensors[f"model.layers.{i}.input_layernorm.weight"],
                qkv=joined(i, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                output=joined(i, "self_attn.o_proj"),
                mlp_norm=tensors[f"model.layers.{i}.post_attention_layernorm.weight"],
                gate_up=joined(i, "mlp.gate_proj", "mlp.up_proj"),
                down=joined(i, "mlp.down_proj"),
            )
            for i in range(shape.layers)
        )
        embedding = tensors["model.embed_tokens.weight"]
        head = embedding if shape.tied else tensors["lm_head.weight"]
        return cls(shape, embedding, layers, tensors["model.norm.weight"], head.T)


_FIT_AGAIN = "Save or fit the checkpoint again (`dreamgym fit`)."


def unsupported(config: Mapping[str, Any]) -> str | None:
    """Return why a configuration is not a plain Llama, or None where it is one."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    reasons = {
        f"model_type is {config.get('model_type')!r}": config.get("model_type") != "llama",
        f"hidden_act is {config.get('hidden_act')!r}": config.get("hidden_act", "silu") != "silu",
        f"rope_type is {kind!r}": kind != "default",
        "its projections have biases": bool(config.get("attention_bias") or config.get("mlp_bias")),
        "it is quantized": bool(config.get("quantization_config")),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def read_config(directory: Path) -> dict[str, Any]:
    """Return a checkpoint directory's config.json.

    Raises:
        DecoderError: The directory or the file is missing, or is not JSON.
    """
    path = directory / CONFIG_FILE
    if not path.is_file():
        what = f"has no {CONFIG_FILE}" if directory.is_dir() else "is not a directory"
        raise DecoderError(
            f"{directory} is no checkpoint: it {what}. Fit one with `dreamgym fit DOMAIN --out {directory}`, "
            "or give a directory written by save_pretrained()."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DecoderError(f"{path} is not JSON: {error}. {_FIT_AGAIN}") from error
    if not isinstance(config, dict):
        raise DecoderError(f"{path} must hold a JSON object, got {type(config).__name__}. {_FIT_AGAIN}")
    return config


def read_tensors(directory: Path) -> dict[str, Floats]:
    """Return the tensors of a checkpoint directory's model.safetensors as float32.

    Raises:
        DecoderError: The file is missing, truncated or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = directory / WEIGHTS_FILE
    if not path.is_file():
        raise DecoderError(f"{directory} is no checkpoint: it has no {WEIGHTS_FILE}. {_FIT_AGAIN}")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise DecoderError(f"{path} is truncated or damaged ({error}). Copy it again, or: {_FIT_AGAIN}") from error
    return as_arrays(tensors)


def as_arrays(tensors: Mapping[str, Any]) -> dict[str, Floats]:
    """Return torch tensors as float32 arrays."""
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in tensors.items()}


def rotations(shape: LlamaShape, length: int) -> NDArray[np.complex64]:
    """Return RoPE's rotations as complex numbers [length, head_dim / 2], rounded as transformers rounds them."""
    exponents = np.arange(0, shape.head_dim, 2, dtype=np.float32) / np.float32(shape.head_dim)
    frequencies = (1.0 / np.float32(shape.rope_theta) ** exponents).astype(np.float32)
    angles = np.arange(length, dtype=np.float32)[:, None] * frequencies
    table: NDArray[np.complex64] = (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)
    return table
