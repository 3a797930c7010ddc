"""The codec writes what the grammar reads back, and the grammar never lets an invalid prediction through."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym_envs.core.delta import apply_delta
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.dataset import encode, examples
from dreamgym_envs.experience.grammar import Parser
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.symbols import abstracted, expanded, split_instruction, split_number
from dreamgym_envs.experience.tables import fit_tables
from dreamgym_envs.experience.vocabulary import Vocabulary
from tests.toy import Boxes, episodes


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Query, Prediction]]:
    domain = Boxes()
    return [pair for episode in episodes(300) for pair in examples(domain, episode, coverage=0.9)]


@pytest.fixture(scope="module")
def codec(pairs: list[tuple[Query, Prediction]]) -> Codec:
    domain = Boxes()
    tables, texts = fit_tables(domain, pairs, slots=16)
    return Codec(domain, tables, Vocabulary.train(texts, tables.symbols(domain.schema.root)))


def read(codec: Codec, tables: GrammarTables, query: Query, output: list[int]) -> Prediction:
    parse = Parser(tables, codec.encode(query), query.state, reasons=query.action is not None).parse()
    choice = next(parse)
    for token in output:
        assert token in choice.ids
        try:
            choice = parse.send(token)
        except StopIteration as stop:
            return stop.value
    raise AssertionError("the output ended before the prediction was complete")


def test_every_real_transition_is_written_and_read_back(codec: Codec, pairs: list[tuple[Query, Prediction]]) -> None:
    tables = GrammarTables(codec)
    for query, target in pairs:
        start, ids = codec.encode_example(query, target)
        answer = read(codec, tables, query, ids[start:])
        assert (answer.reasoning, answer.reward, answer.terminated) == (
            target.reasoning,
            target.reward,
            target.terminated,
        )
        schema = codec.schema
        assert apply_delta(schema, query.state, answer.delta) == apply_delta(schema, query.state, target.delta)


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), index=st.integers(0, 10**6))
def test_random_outputs_under_the_grammar_are_valid_states(
    seed: int, index: int, codec: Codec, pairs: list[tuple[Query, Prediction]]
) -> None:
    # Given any query, when tokens are drawn at random from what the grammar allows
    query, _ = pairs[index % len(pairs)]
    rng = np.random.default_rng(seed)
    tables = GrammarTables(codec)
    parse = Parser(tables, codec.encode(query), query.state, reasons=query.action is not None).parse()
    choice = next(parse)
    for _ in range(5000):
        assert choice.ids, "the grammar allows nothing"
        assert np.array_equal(np.flatnonzero(choice.mask == 0), np.unique(choice.ids))
        try:
            choice = parse.send(int(rng.choice(choice.ids)))
        except StopIteration as stop:
            prediction = stop.value
            break
    else:
        raise AssertionError("no end after 5,000 tokens")
    # Then the delta applies, the state is valid and nothing is in two places
    state = apply_delta(codec.schema, query.state, prediction.delta)
    codec.schema.validate(state)
    names = [item["name"] for box in state.public["boxes"] for item in box["contents"]]
    names += [item["name"] for item in state.public["holding"]]
    assert len(names) == len(set(names))


def test_a_reveal_keeps_every_promise(codec: Codec, pairs: list[tuple[Query, Prediction]]) -> None:
    tables = GrammarTables(codec)
    rng = np.random.default_rng(1)
    reveals = [
        (query, target)
        for query, target in pairs
        if query.action is not None and any(e.path[-1] == "contents" and e.op == "set" for e in target.delta)
    ]
    for query, target in reveals[:200]:
        start, ids = codec.encode_example(query, target)
        opening = ids[start:].index(codec.operation_ids["set boxes.contents"])
        parse = Parser(tables, codec.encode(query), query.state).parse()
        choice = next(parse)
        for token in ids[start : start + opening]:
            choice = parse.send(token)
        try:
            while True:
                choice = parse.send(int(rng.choice(choice.ids)))
        except StopIteration as stop:
            edit = next(e for e in stop.value.delta if e.op == "set" and e.path[-1] == "contents")
        place, shown = edit.path[1], {item["name"] for item in edit.value}
        wanted = query.task.instruction.split()[-1]
        promised = {entry["name"] for entry in query.state.private["hidden"] if entry["place"] == place}
        assert promised == {name for name in shown if split_number(name)[0] == wanted}


def test_frequent_texts_are_one_token_whatever_they_name(codec: Codec, pairs: list[tuple[Query, Prediction]]) -> None:
    assert "You take ⟦1⟧." in codec.lexicon_ids["feedback"]
    query, target = next(pair for pair in pairs if pair[0].action is not None)
    encoded = encode(codec, GrammarTables(codec), query, target, 3.0)
    assert len(encoded.ids) - encoded.prompt < 20


@given(
    st.text(alphabet="abc 12.", max_size=30), st.lists(st.text(alphabet="abc12", min_size=1, max_size=4), max_size=4)
)
def test_abstracting_and_expanding_are_inverse(text: str, names: list[str]) -> None:
    strings = dict(enumerate(dict.fromkeys(names), start=1))
    slots = {name: index for index, name in strings.items()}
    assert expanded(abstracted(text, slots), strings) == text


def test_an_instruction_is_split_at_the_kinds_that_it_names() -> None:
    kinds = {"mug": 0, "side table": 1}
    assert list(split_instruction("put a hot mug on the side table.", kinds)) == [
        ("put a hot", "mug"),
        ("on the", "side table"),
    ]
