"""The experience model from fitting to prediction, on the toy domain of boxes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from dreamgym_envs.core.delta import apply_delta
from dreamgym_envs.experience import load_model
from dreamgym_envs.experience.cache import PredictionCache
from dreamgym_envs.experience.checkpoint import from_scratch
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.dataset import batches, encode, examples
from dreamgym_envs.experience.generation import draw
from dreamgym_envs.experience.local import LocalModel
from dreamgym_envs.experience.model import ExperienceModel, Prediction, Query
from dreamgym_envs.experience.muon import orthogonalised
from dreamgym_envs.experience.resumption import Unfinished
from dreamgym_envs.experience.training import FitConfig, batch_loss, fit
from tests.toy import Boxes, episodes

CONFIG = FitConfig(steps=260, tokens=1024, hidden=64, layers=2, heads=2, feed_forward=128, threads=1, warmup=10)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("boxes")
    fit(Boxes(), episodes(250), out, CONFIG, command="pytest", quiet=True)
    return out


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    domain = Boxes()
    return [query for episode in episodes(40, seed=9) for query, _ in examples(domain, episode, 0.9)]


def seeded(queries: list[Query]) -> list[Query]:
    """Return the queries, each with a generator of its own."""
    return [
        Query(q.task, q.state, q.action, q.history, rng=np.random.default_rng(index)) for index, q in enumerate(queries)
    ]


def test_a_checkpoint_is_an_ordinary_hugging_face_directory(checkpoint: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json"))
    assert model.config.vocab_size == len(tokenizer)
    card = (checkpoint / "README.md").read_text()
    assert "pytest" in card
    assert "examples" in card


def test_fitting_learns_what_is_deterministic(checkpoint: Path) -> None:
    # Given held-out episodes, when the deterministic drop of a thing that nobody holds is predicted
    domain = Boxes()
    model = LocalModel.load(checkpoint, domain, threads=1)
    pairs = [pair for episode in episodes(60, seed=5) for pair in examples(domain, episode, 0.9)]
    drops = [(query, target) for query, target in pairs if query.action == "drop pin 1"]
    answers = model.predict([query for query, _ in drops])
    # Then nothing happens, nearly always, after two minutes of nobody's time
    right = [answer.delta == target.delta for answer, (_, target) in zip(answers, drops, strict=True)]
    assert np.mean(right) > 0.9


def test_the_loss_leaves_alone_what_the_grammar_forbids(checkpoint: Path, queries: list[Query]) -> None:
    # Given a model that ties its embeddings, and an example
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    codec = Codec.load(checkpoint, Boxes())
    (pair,) = (pair for episode in episodes(1, seed=9) for pair in list(examples(Boxes(), episode, 2.0))[:1])
    item = encode(codec, GrammarTables(codec), *pair, invented_weight=1.0)
    # When the gradient of its loss is taken
    torch.autograd.backward(batch_loss(model, [item], torch.device("cpu"), torch.float32))
    learnt = set(model.get_input_embeddings().weight.grad.any(dim=1).nonzero().flatten().tolist())
    # Then no token learns from it but those that it holds and those that could have stood in their place
    assert learnt <= {*item.ids.tolist(), *(token for choice in item.choices for token in choice)}
    assert len(learnt) < codec.vocabulary.size / 2


def test_an_answer_does_not_depend_on_the_batch(checkpoint: Path, queries: list[Query]) -> None:
    model = LocalModel.load(checkpoint, Boxes(), threads=2)
    together = model.predict(seeded(queries[:33]))
    alone = [model.predict([query])[0] for query in seeded(queries[:33])]
    assert together == alone


def test_every_answer_applies_and_is_valid(checkpoint: Path, queries: list[Query]) -> None:
    domain = Boxes()
    model = LocalModel.load(checkpoint, domain)
    for query, answer in zip(queries, model.predict(seeded(queries)), strict=True):
        domain.schema.validate(apply_delta(domain.schema, query.state, answer.delta))
        assert 0.0 < answer.confidence <= 1.0


def test_a_query_that_is_too_long_says_so(checkpoint: Path, queries: list[Query]) -> None:
    task = replace(queries[0].task, instruction="take the " + "very " * 3000 + "wet ball")
    with pytest.raises(ValueError, match=r"a query takes \d+ tokens, the checkpoint was made for 2048: shorten"):
        LocalModel.load(checkpoint, Boxes()).predict([replace(queries[0], task=task)])


def test_the_cache_changes_nothing_but_the_work(checkpoint: Path, queries: list[Query]) -> None:
    plain = LocalModel.load(checkpoint, Boxes())
    cached = LocalModel.load(checkpoint, Boxes(), cache=1000)
    first, second = cached.predict(queries), cached.predict(queries)
    assert first == second == plain.predict(queries)
    kept = sum(not answer.sampled for answer in first)
    assert kept > 0
    assert cached.cache.hits >= kept


def test_the_cache_is_bounded_and_forgets_the_oldest() -> None:
    cache = PredictionCache(2)
    for key in "abc":
        cache.put(key, Prediction(key, (), 0.0, False))
    cache.put("d", Prediction("d", (), 0.0, False, sampled=True))
    assert len(cache) == 2
    assert cache.get("a") is None
    assert cache.get("d") is None
    assert cache.get("c") is not None
    assert cache.hit_rate == pytest.approx(1 / 3)


def test_no_reward_is_paid_below_the_threshold(checkpoint: Path, queries: list[Query]) -> None:
    bold = LocalModel.load(checkpoint, Boxes(), threshold=0.0).predict(queries)
    shy = LocalModel.load(checkpoint, Boxes(), threshold=1.0).predict(queries)
    assert sum(answer.reward for answer in bold) > 0
    assert sum(answer.reward for answer in shy) <= sum(answer.confidence == 1.0 for answer in shy)


def test_an_interrupted_fit_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a run that is interrupted after its checkpoint
    import dreamgym_envs.experience.training as training

    config = FitConfig(**{**CONFIG.__dict__, "steps": 12, "save_every": 0.0})
    real, calls = training.batch_loss, []

    def interrupted(*args: object) -> object:
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(training, "batch_loss", interrupted)
    monkeypatch.setattr(training, "fastest_precision", lambda *args: training.torch.float32)
    with pytest.raises(KeyboardInterrupt):
        fit(Boxes(), episodes(40), tmp_path / "a", config, quiet=True)
    monkeypatch.setattr(training, "batch_loss", real)
    # When it is resumed, and another one runs undisturbed
    fit(Boxes(), episodes(40), tmp_path / "a", config, resume=True, quiet=True)
    fit(Boxes(), episodes(40), tmp_path / "b", config, quiet=True)
    # Then both end with the same weights
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in "ab")
    assert first == second


def test_a_fit_goes_on_only_from_a_run_of_its_own(tmp_path: Path) -> None:
    config = FitConfig(**{**CONFIG.__dict__, "steps": 2})
    (tmp_path / "training.pt").write_bytes(b"not a state")
    with pytest.raises(ValueError, match="holds no state of a fit; delete it"):
        fit(Boxes(), episodes(20), tmp_path, config, resume=True, quiet=True)
    # Given the state of a longer run
    model = torch.nn.Linear(2, 2)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    Unfinished(tmp_path, {"steps": 3}).save(model, [optimiser], 1, 0, 4)
    assert Unfinished(tmp_path, {"steps": 3}).load(model, [optimiser]) == (1, 0, 4)
    with pytest.raises(ValueError, match=r"is of a fit with steps=3, this one has steps=2"):
        Unfinished(tmp_path, {"steps": 2}).load(model, [optimiser])


def test_a_fit_overwrites_no_checkpoint(checkpoint: Path) -> None:
    before = (checkpoint / "model.safetensors").read_bytes()
    for resume in (False, True):
        with pytest.raises(FileExistsError, match="holds a checkpoint already"):
            fit(Boxes(), episodes(20), checkpoint, CONFIG, resume=resume, quiet=True)
    assert (checkpoint / "model.safetensors").read_bytes() == before


def test_a_pretrained_language_model_can_be_the_base(checkpoint: Path, tmp_path: Path) -> None:
    config = FitConfig(**{**CONFIG.__dict__, "steps": 2})
    fit(Boxes(), episodes(20), tmp_path, config, base=checkpoint, quiet=True)
    assert isinstance(LocalModel.load(tmp_path, Boxes()), ExperienceModel)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "codec.json").unlink(), "codec.json is missing"),
        (lambda path: (path / "codec.json").write_text("{"), "cannot be read"),
        (lambda path: (path / "tokenizer.json").unlink(), "tokenizer.json is missing or damaged"),
        (lambda path: (path / "tokenizer.json").write_text("{"), "tokenizer.json is missing or damaged"),
        (lambda path: (path / "model.safetensors").unlink(), "model.safetensors"),
        (
            lambda path: (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:5000]),
            "model.safetensors",
        ),
        (lambda path: rewrite(path / "codec.json", domain="shop"), "plays 'shop', not 'boxes'"),
        (lambda path: rewrite(path / "codec.json", slots=999), "not of the same checkpoint"),
        (lambda path: rewrite(path / "config.json", hidden_size=32), "config.json says"),
    ],
)
def test_a_damaged_checkpoint_says_what_is_wrong(
    checkpoint: Path, tmp_path: Path, damage: object, message: str
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    damage(tmp_path)  # type: ignore[operator]
    with pytest.raises(ValueError, match=message):
        load_model(str(tmp_path), Boxes())


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match="a width of 33 does not suit 2 heads; expected a multiple of 4"):
        from_scratch(["<a>"], ["text"], hidden=33, layers=1, heads=2, feed_forward=8)


@pytest.mark.parametrize("capacity", [-1, "many"])
def test_a_cache_has_a_size(capacity: object) -> None:
    with pytest.raises(ValueError, match="expected the most predictions to keep"):
        PredictionCache(capacity)  # type: ignore[arg-type]


def rewrite(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_sampling_follows_the_probabilities() -> None:
    logits = np.log(np.array([0.6, 0.3, 0.1, 1e-9], dtype=np.float32))
    logits[1] = -np.inf
    rng = np.random.default_rng(0)
    counts = np.bincount([draw(logits, rng) for _ in range(4000)], minlength=4)
    assert counts[1] == counts[3] == 0
    assert counts[0] / 4000 == pytest.approx(0.6 / 0.7, abs=0.02)


def test_an_epoch_shows_every_example_as_often_as_asked() -> None:
    domain = Boxes()
    from dreamgym_envs.experience.choices import GrammarTables
    from dreamgym_envs.experience.codec import Codec
    from dreamgym_envs.experience.tables import fit_tables
    from dreamgym_envs.experience.vocabulary import Vocabulary

    pairs = [pair for episode in episodes(30) for pair in examples(domain, episode, 0.9)]
    tables, texts = fit_tables(domain, pairs)
    codec = Codec(domain, tables, Vocabulary.train(texts, tables.symbols(domain.schema.root)))
    grammar = GrammarTables(codec)
    encoded = [encode(codec, grammar, query, target, 3.0) for query, target in pairs]
    copies = [1 + index % 3 for index in range(len(encoded))]
    order = batches(encoded, copies, 400, seed=0)
    shown = [index for batch in order for index in batch]
    assert sorted(shown) == sorted(np.repeat(np.arange(len(encoded)), copies).tolist())
    assert all(len(batch) * max(len(encoded[i].ids) for i in batch) <= 400 for batch in order if len(batch) > 1)


def test_muon_orthogonalises() -> None:
    import torch

    torch.manual_seed(0)
    matrices = torch.randn(3, 16, 8)
    singular = torch.linalg.svdvals(orthogonalised(matrices))
    assert singular.min() > 0.5
    assert singular.max() < 1.3
