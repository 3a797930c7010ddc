"""The decoder for larger models and GPUs: any causal language model of transformers, run by its own modules.

A flat list becomes a batch padded on the left, so that the wanted tokens share a column. The key-value cache is static:
memory for rows x positions that is kept, written in place, and read up to the longest row. Padding writes to a position
that nobody reads.
"""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, Cache, PreTrainedModel
from transformers.cache_utils import CacheLayerMixin

from dreamgym_envs.experience.decoders.base import DecoderError, Indices, Logits, check_inputs

MIN_LENGTH = 64
"""Positions of the smallest cache."""


class TorchDecoder:
    """Decodes any causal language model with full attention in every layer. Implements `Decoder`.

    Results of a row may differ in the last bits with the rest of the batch: the libraries below choose their kernels by
    shape.

    Args:
        model: The model, on its device.

    Raises:
        DecoderError: The model has layers without a plain key-value cache (sliding windows, recurrent states).
    """

    backend = "torch"
    batch_invariant = False

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config(decoder=True)
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"}:
            raise DecoderError(f"only layers of full attention can be decoded, {config.model_type} has {sorted(kinds)}")
        self.model = model.eval()
        self.device = model.device
        self.layers = int(config.num_hidden_layers)
        self.vocabulary_size = int(config.vocab_size)
        self.max_length = int(getattr(config, "max_position_embeddings", 1 << 20))
        self.best_rows = 1024 if self.device.type == "cuda" else 64
        # transformers 5.20 renamed the argument.
        parameters = inspect.signature(model.forward).parameters
        self.cache_argument = "cache" if "cache" in parameters else "past_key_values"

    def session(self) -> "TorchSession":
        """Open a session of no rows."""
        return TorchSession(self)


class _RowLayer(CacheLayerMixin):
    """One layer's keys and values [rows, heads, capacity + 1, head_dim]; the last position takes the padding.

    Attributes:
        rows: Cache rows of the batch: a slice, or indices.
        at: Cache row and position of every token of the padded batch, each [batch, columns].
        length: Positions to read.
    """

    is_sliding = False

    def __init__(self, rows: int, capacity: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size = rows, capacity
        self.rows: slice | torch.Tensor = slice(0, 0)
        self.at: tuple[torch.Tensor, torch.Tensor] | None = None
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Take the memory, of the type that the model computes in."""
        rows, capacity = self.size
        self.keys, self.values = (
            states.new_zeros(rows, states.shape[1], capacity + 1, states.shape[3])
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write a batch's keys and values [batch, heads, columns, head_dim]; return all that it may look at."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.at is not None and self.keys is not None and self.values is not None
        row, position = self.at
        self.keys[row, :, position] = key_states.transpose(1, 2)
        self.values[row, :, position] = value_states.transpose(1, 2)
        return self.keys[self.rows, :, : self.length], self.values[self.rows, :, : self.length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return how many positions are read, and the first."""
        return self.length, 0

    def get_seq_length(self) -> int:
        """Return how many positions are read."""
        return self.length

    def get_max_length(self) -> int:
        """Return the capacity."""
        return self.size[1]

    get_max_cache_shape = get_max_length

    def resized(self, rows: int, capacity: int) -> "_RowLayer":
        """Return a larger layer that holds the same."""
        new = _RowLayer(rows, capacity)
        if self.is_initialized:
            assert self.keys is not None and self.values is not None
            new.lazy_initialization(self.keys, self.values)
            assert new.keys is not None and new.values is not None
            for old, copy in ((self.keys, new.keys), (self.values, new.values)):
                copy[: self.size[0], :, : self.size[1]] = old[:, :, :-1]
        return new


class TorchSession:
    """A static cache and the forward pass over it. Implements `Session`."""

    def __init__(self, decoder: TorchDecoder) -> None:
        self._decoder = decoder
        self._rows = 0
        self._size = 0, MIN_LENGTH
        self._layers = [_RowLayer(*self._size) for _ in range(decoder.layers)]

    def _resize(self, rows: int, capacity: int) -> None:
        self._size = rows, capacity
        self._layers = [layer.resized(rows, capacity) for layer in self._layers]

    def reset(self, rows: int) -> None:
        """Forget everything cached and take `rows` new rows."""
        if rows < 0:
            raise ValueError(f"rows must be at least 0, got {rows}")
        if rows > self._size[0]:
            self._resize(rows, self._size[1])
        self._rows = rows

    @torch.inference_mode()
    def forward(self, ids: Indices, row: Indices, position: Indices, last: Indices) -> Logits:
        """Run tokens through the model and cache them; see `Session.forward`."""
        decoder, device = self._decoder, self._decoder.device
        check_inputs(ids, row, position, last, decoder.vocabulary_size, self._rows, decoder.max_length)
        if len(ids) == 0:
            return np.empty((0, decoder.vocabulary_size), np.float32)
        length = int(position.max()) + 1
        if length > self._size[1]:
            self._resize(self._size[0], min(decoder.max_length, max(2 * self._size[1], length)))
        starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        counts = np.diff(starts, append=len(ids))
        rows, columns = row[starts], int(counts.max())
        slot = np.repeat(np.arange(len(rows)), counts)
        column = np.arange(len(ids)) - np.repeat(starts + counts - columns, counts)

        tokens = np.zeros((len(rows), columns), np.int64)
        places = np.zeros((len(rows), columns), np.int64)
        written = np.full((len(rows), columns), self._size[1], np.int64)
        tokens[slot, column], places[slot, column], written[slot, column] = ids, position, position
        every = torch.from_numpy(np.stack([tokens, places, written])).to(device, non_blocking=True)
        dtype = decoder.model.dtype
        hidden = torch.arange(length, device=device) > every[1][:, :, None]
        mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, torch.finfo(dtype).min)

        dense = len(rows) == rows[-1] - rows[0] + 1 and bool((np.diff(rows) == 1).all())
        used = torch.from_numpy(rows.astype(np.int64)).to(device)
        for layer in self._layers:
            layer.rows = slice(int(rows[0]), int(rows[-1]) + 1) if dense else used
            layer.at = used[:, None].expand(-1, columns), every[2]
            layer.length = length
        kept, place = np.unique(column[last], return_inverse=True)
        output = decoder.model(
            input_ids=every[0],
            position_ids=every[1],
            attention_mask=mask[:, None],
            use_cache=True,
            logits_to_keep=torch.from_numpy(kept).to(device),
            **{decoder.cache_argument: Cache(layers=list(self._layers))},
        )
        wanted = output.logits[torch.from_numpy(slot[last]).to(device), torch.from_numpy(place).to(device)]
        logits: Logits = wanted.float().cpu().numpy()
        return logits


def load_model(directory: Path, device: str | None = None) -> PreTrainedModel:
    """Load a checkpoint directory with transformers: float32 on a CPU, the checkpoint's own type on a GPU.

    Args:
        directory: As `save_pretrained` writes it.
        device: None takes the first GPU, or the CPU where there is none.

    Raises:
        DecoderError: transformers cannot load it, or a tensor is missing.
    """
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=torch.float32 if place.type == "cpu" else "auto",
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DecoderError(f"transformers cannot load {directory}: {reason}. Save the checkpoint again.") from error
    model, report = loaded
    missing = sorted(report["missing_keys"])
    if missing:
        raise DecoderError(f"{directory} lacks {len(missing)} tensors, {missing[0]} first. Save the checkpoint again.")
    placed: PreTrainedModel = model.to(place)
    return placed
