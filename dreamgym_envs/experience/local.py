"""An experience model from a checkpoint directory, run in this process."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dreamgym_envs.domains.base import Domain
from dreamgym_envs.experience.cache import PredictionCache
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import FILE as CODEC_FILE
from dreamgym_envs.experience.codec import Codec, Prompt
from dreamgym_envs.experience.decoders import load_decoder
from dreamgym_envs.experience.decoders.base import Decoder, Session
from dreamgym_envs.experience.generation import generate
from dreamgym_envs.experience.model import THRESHOLD, Prediction, Query

ROWS_WORTH_A_THREAD = 4


class CheckpointError(ValueError):
    """A directory that is not a usable checkpoint."""


class LocalModel:
    """Plays an environment from a checkpoint: codec, grammar and decoder. Implements `ExperienceModel`.

    Args:
        codec: The checkpoint's codec.
        decoder: Any decoder of the checkpoint's weights.
        threads: Threads that share a batch; None takes one a core.
        cache: Most predictions kept (see `PredictionCache`); 0 turns the cache off.
        threshold: Probability that reasoning and verdict must have before a reward is paid (see `generate`).
    """

    def __init__(
        self,
        codec: Codec,
        decoder: Decoder,
        *,
        threads: int | None = None,
        cache: int = 0,
        threshold: float = THRESHOLD,
    ) -> None:
        if not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold must be a probability in [0, 1], got {threshold!r}")
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, or None for one a core, got {threads}")
        self.codec = codec
        self.decoder = decoder
        self.threshold = threshold
        self.cache = PredictionCache(cache)
        self._tables = GrammarTables(codec)
        self._sessions: list[Session] = []
        self._threads = threads if threads is not None else (os.cpu_count() or 1)
        self._pool: ThreadPoolExecutor | None = None

    @classmethod
    def load(
        cls,
        directory: str | Path,
        domain: Domain,
        *,
        backend: str = "auto",
        threads: int | None = None,
        cache: int = 0,
        threshold: float = THRESHOLD,
    ) -> "LocalModel":
        """Load a checkpoint directory, as written by `dreamgym fit`.

        Args:
            directory: Holds config.json, model.safetensors, tokenizer.json and codec.json.
            domain: The domain that it plays.
            backend: "auto", "numpy", "numba" or "torch".
            threads: See the class.
            cache: See the class.
            threshold: See the class.

        Raises:
            CheckpointError: Something is missing or does not fit.
        """
        directory = Path(directory)
        if not (directory / CODEC_FILE).is_file():
            raise CheckpointError(
                f"{directory} holds no experience model: {CODEC_FILE} is missing. "
                f"Fit one with `dreamgym fit {domain.name} --out {directory}`, or use model='embedded'."
            )
        try:
            codec = Codec.load(directory, domain)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{directory / CODEC_FILE} cannot be read as a codec of {domain.name}: {error}. "
                f"Fit one with `dreamgym fit {domain.name}`."
            ) from error
        decoder = load_decoder(directory, backend=backend)
        if decoder.vocabulary_size < codec.vocabulary.size:
            raise CheckpointError(
                f"{directory} does not fit together: the weights know {decoder.vocabulary_size} tokens, "
                f"codec and tokenizer {codec.vocabulary.size}. Fit it again with `dreamgym fit {domain.name}`."
            )
        return cls(codec, decoder, threads=threads, cache=cache, threshold=threshold)

    def predict(self, queries: Sequence[Query]) -> list[Prediction]:
        """Answer a batch; see `ExperienceModel.predict`.

        Raises:
            ValueError: A query is longer than the checkpoint was made for.
        """
        prompts = [self.codec.encode(query) for query in queries]
        longest = max((len(prompt.ids) for prompt in prompts), default=0)
        if longest >= self.decoder.max_length:
            raise ValueError(
                f"a query takes {longest} tokens, the checkpoint was made for {self.decoder.max_length}: shorten the "
                "instruction or the state, or fit a checkpoint from a model with more positions"
            )
        if not self.cache.capacity:
            return self._generate(queries, prompts)
        keys = [(tuple(prompt.ids), tuple(prompt.strings.items())) for prompt in prompts]
        answers = [self.cache.get(key) for key in keys]
        open_ = [index for index, answer in enumerate(answers) if answer is None]
        fresh = self._generate([queries[i] for i in open_], [prompts[i] for i in open_])
        for index, prediction in zip(open_, fresh, strict=True):
            self.cache.put(keys[index], prediction)
            answers[index] = prediction
        return [answer for answer in answers if answer is not None]

    def _generate(self, queries: Sequence[Query], prompts: Sequence[Prompt]) -> list[Prediction]:
        """Share the batch among the threads, each with a session of its own."""
        parts = min(self._threads, max(1, len(queries) // ROWS_WORTH_A_THREAD))
        while len(self._sessions) < parts:
            self._sessions.append(self.decoder.session())
        if parts == 1:
            return self._share(self._sessions[0], queries, prompts)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=self._threads)
        futures = [
            self._pool.submit(self._share, self._sessions[i], queries[i::parts], prompts[i::parts])
            for i in range(parts)
        ]
        shares = [future.result() for future in futures]
        return [shares[index % parts][index // parts] for index in range(len(queries))]

    def _share(self, session: Session, queries: Sequence[Query], prompts: Sequence[Prompt]) -> list[Prediction]:
        """Answer one thread's queries, as many at once as the decoder likes."""
        size = self.decoder.best_rows
        return [
            prediction
            for start in range(0, len(queries), size)
            for prediction in generate(
                session, self._tables, queries[start : start + size], prompts[start : start + size], self.threshold
            )
        ]
