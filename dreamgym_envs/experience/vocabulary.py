"""Symbols and text: one id space for the codec's symbols and the tokenizer's subwords.

The vocabulary is an ordinary Hugging Face tokenizer: byte-level BPE for text that has to be spelt, and one added token
for each symbol of the codec. A pretrained language model keeps its own subwords and gets the symbols added.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FILE = "tokenizer.json"


class Vocabulary:
    """Maps symbols and text to token ids and back.

    Args:
        tokenizer: A tokenizer that holds every symbol as one token.
        symbols: The codec's symbols.

    Raises:
        ValueError: A symbol is not a token of the tokenizer.
    """

    def __init__(self, tokenizer: Tokenizer, symbols: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.size: int = tokenizer.get_vocab_size(with_added_tokens=True)
        table = tokenizer.get_vocab(with_added_tokens=True)
        missing = [symbol for symbol in symbols if symbol not in table]
        if missing:
            raise ValueError(
                f"the tokenizer lacks {len(missing)} of the codec's symbols ({missing[0]!r}, ...): "
                "tokenizer.json and codec.json are not of the same checkpoint; fit it again with `dreamgym fit`"
            )
        self.ids: dict[str, int] = {symbol: table[symbol] for symbol in symbols}
        self.symbols: dict[int, str] = {index: symbol for symbol, index in self.ids.items()}
        self.text_ids: tuple[int, ...] = tuple(sorted(set(table.values()) - set(self.symbols)))
        self._encode = lru_cache(maxsize=65536)(self._encode_text)

    @classmethod
    def train(cls, texts: Iterable[str], symbols: Sequence[str], subwords: int = 768) -> "Vocabulary":
        """Train byte-level BPE on `texts` and add the symbols; of "$20.99" the dollars are a word, and the cents."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(r" ?\$?\d+|\.\d+| ?[^\s\d.$]+|\s|."), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=subwords, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls.extend(tokenizer, symbols)

    @classmethod
    def extend(cls, tokenizer: Tokenizer, symbols: Sequence[str]) -> "Vocabulary":
        """Add the symbols to a tokenizer, such as a pretrained model's."""
        tokenizer.add_tokens([AddedToken(symbol, normalized=False, special=True) for symbol in symbols])
        return cls(tokenizer, symbols)

    @classmethod
    def load(cls, directory: Path, symbols: Sequence[str]) -> "Vocabulary":
        """Read `tokenizer.json` of a checkpoint directory.

        Raises:
            ValueError: It is missing, damaged or not of this checkpoint.
        """
        path = directory / FILE
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library, in Rust, raises nothing more special
            raise ValueError(f"{path} is missing or damaged ({error}); fit it again with `dreamgym fit`") from error
        return cls(tokenizer, symbols)

    def save(self, directory: Path) -> None:
        """Write `tokenizer.json` into a checkpoint directory."""
        self.tokenizer.save(str(directory / FILE))

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the subword ids of a text that holds no symbol."""
        return self._encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of subword ids."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))

    def _encode_text(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)
