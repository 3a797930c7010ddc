"""Checkpoints: ordinary Hugging Face directories with the codec and a card beside the weights."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.vocabulary import Vocabulary


def save(model: Any, codec: Codec, out: Path) -> None:
    """Write config.json, model.safetensors (bfloat16), tokenizer.json and codec.json."""
    kept = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    model.to(torch.bfloat16).save_pretrained(out, safe_serialization=True)
    model.to(torch.float32).load_state_dict(kept)
    codec.save(out)


def card(out: Path, domain: Domain, settings: Mapping[str, Any], result: Mapping[str, Any], command: str) -> None:
    """Write the checkpoint's card: data, numbers of the run and the command that made it."""
    rows = "\n".join(f"| {key} | {value} |" for key, value in result.items())
    (out / "README.md").write_text(
        f"# Experience model of {domain.title}\n\n"
        f"Plays `DreamGym/{domain.title}-v0`. Made by\n\n```\n{command}\n```\n\n"
        f"| run | |\n|---|---|\n{rows}\n\n## Settings\n\n```json\n{json.dumps(dict(settings), indent=2)}\n```\n",
        encoding="utf-8",
    )


def from_scratch(
    symbols: Sequence[str], texts: Sequence[str], *, hidden: int, layers: int, heads: int, feed_forward: int
) -> tuple[Any, Vocabulary]:
    """Return a small Llama with random weights, and a vocabulary trained on texts.

    Raises:
        ValueError: The width cannot be shared by the heads, in pairs as rotary embeddings need.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    if hidden % (2 * heads):
        raise ValueError(f"a width of {hidden} does not suit {heads} heads; expected a multiple of {2 * heads}")
    vocabulary = Vocabulary.train(texts, symbols)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary.size,
            hidden_size=hidden,
            intermediate_size=feed_forward,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    model.set_attn_implementation("eager")  # faster than SDPA on a CPU at these lengths
    return model, vocabulary


def from_pretrained(base: Path, symbols: Sequence[str]) -> tuple[Any, Vocabulary]:
    """Load a causal language model and teach it the symbols; a new one starts as the mean of its name's subwords."""
    from transformers import AutoModelForCausalLM

    if not (base / "tokenizer.json").is_file():
        raise ValueError(f"{base} is no checkpoint with a fast tokenizer: tokenizer.json is missing")
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    plain = Tokenizer.from_file(str(base / "tokenizer.json"))
    vocabulary = Vocabulary.extend(Tokenizer.from_file(str(base / "tokenizer.json")), symbols)
    model.resize_token_embeddings(max(vocabulary.size, model.config.vocab_size), mean_resizing=False)
    tables = [model.get_input_embeddings().weight, model.lm_head.weight]
    with torch.no_grad():
        for symbol in symbols:
            if plain.token_to_id(symbol) is not None:
                continue  # the base is an experience model and knows it
            pieces = plain.encode(symbol.strip("<>"), add_special_tokens=False).ids
            for table in tables:
                if pieces:
                    table[vocabulary.ids[symbol]] = table[pieces].mean(dim=0)
    return model, vocabulary
