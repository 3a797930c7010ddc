"""Prose: texts cut into groups of words, and what an instruction names; shops written and read back by the codec."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym_envs.core.delta import apply_delta
from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.domains.webshop.domain import WebShopDomain
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import Codec
from dreamgym_envs.experience.dataset import dataset
from dreamgym_envs.experience.grammar import Parser
from dreamgym_envs.experience.handles import fresh
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.prose import collocations, fillers, segments, units
from dreamgym_envs.experience.tables import fit_tables
from dreamgym_envs.experience.vocabulary import Vocabulary
from dreamgym_envs.trajectories.record import Plan, play_episode

GROUPS = {"spice blend": 1, "salt free": 2, "red": 3}


def joined(pieces: list[int | str]) -> str:
    """Return the text of segments: a group stands for its words and the space before them."""
    words = {token: text for text, token in GROUPS.items()}
    text = ""
    for piece in pieces:
        text += piece if isinstance(piece, str) else f" {words[piece]}" if text else words[piece]
    return text


@given(st.lists(st.sampled_from(["spice", "blend", "spice blend", "salt free", "red,", "red", "a", "", "(red", "."])))
def test_a_text_is_the_sum_of_its_segments(words: list[str]) -> None:
    text = " ".join(words)
    assert joined(segments(text, GROUPS)) == text


def test_the_longest_group_wins_and_of_equal_ones_that_of_the_first_table() -> None:
    assert segments("red spice blend", {"red": 7}, GROUPS) == [7, 1]
    assert segments("spice blends", GROUPS) == ["spice blends"]


def test_an_instruction_names_groups_and_words_that_are_not_idle() -> None:
    idle = frozenset({"i", "need", "a", "for", "free"})
    found = list(units("I need a spice blend, salt free for dad", GROUPS, idle))
    assert found == [
        ("i need a", False),
        ("spice blend", True),
        (",", False),
        ("salt free", True),
        ("for", False),
        ("dad", True),
    ]


def test_idle_are_the_words_of_most_instructions_but_numbers() -> None:
    texts = [f"find a {thing} under 50" for thing in ("mug", "lamp", "shirt", "desk")]
    assert fillers(texts, share=0.5) == {"find", "a", "under"}


def test_words_that_come_together_are_a_group() -> None:
    texts = [f"{brand} spice blend for {use}" for brand in ("acme", "nova", "orbit") for use in ("work", "home", "tea")]
    found = collocations(texts, 5, joints=frozenset({"for"}))
    assert "spice blend" in found
    assert not {"acme spice", "for work"} & set(found)


def test_a_handle_follows_its_pattern_is_free_and_the_same_for_the_same_seed() -> None:
    first = fresh("b0????????", (), [1], None)
    assert len(first) == 10
    assert first.startswith("b0")
    assert fresh("b0????????", (), [1], None) == first
    assert fresh("b0????????", {first}, [1], None) != first


# --- a shop's transitions ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def domain() -> WebShopDomain:
    return WebShopDomain()


@pytest.fixture(scope="module")
def pairs(domain: WebShopDomain) -> list[tuple[Query, Prediction]]:
    engine = domain.engine(split="train")
    plan = Plan(players={"expert": 2, "noisy": 2, "random": 1}, seed=5, max_steps=50, options={"split": "train"})
    return dataset(domain, [play_episode(domain, engine, plan, index) for index in range(60)], start_relabels=0)


@pytest.fixture(scope="module")
def codec(domain: WebShopDomain, pairs: list[tuple[Query, Prediction]]) -> Codec:
    tables, texts = fit_tables(domain, pairs)
    return Codec(domain, tables, Vocabulary.train(texts, tables.symbols(domain.schema.root)))


def renamed(state: State) -> JSON:
    """Return a public state in which each item's id is the place of the item: a new id is anybody's guess."""
    places = {item["id"]: place for place, item in enumerate(state.public["items"])}

    def visit(value: JSON) -> JSON:
        if isinstance(value, str):
            return str(places.get(value, value))
        if isinstance(value, tuple):
            return tuple(map(visit, value))
        return {name: visit(item) for name, item in value.items()} if isinstance(value, dict) else value

    return visit(dict(state.public))


def test_a_shops_transitions_are_written_and_read_back(
    domain: WebShopDomain, codec: Codec, pairs: list[tuple[Query, Prediction]]
) -> None:
    # Given real transitions of a shop, when their answers are written and read under the grammar
    tables = GrammarTables(codec)
    left_out = 0
    for query, target in pairs:
        try:
            start, ids = codec.encode_example(query, target)
        except ValueError:
            left_out += 1
            continue
        parse = Parser(tables, codec.encode(query), query.state, reasons=query.action is not None).parse()
        choice = next(parse)
        try:
            for token in ids[start:]:
                if token not in choice.ids:
                    left_out += 1
                    break
                choice = parse.send(token)
        except StopIteration as stop:
            # Then nothing is lost but the names of what is new
            answer = stop.value
            assert (answer.reasoning, answer.reward) == (target.reasoning, target.reward)
            before = apply_delta(domain.schema, query.state, answer.delta)
            assert renamed(before) == renamed(apply_delta(domain.schema, query.state, target.delta))
    # An item that comes again after 20 others is not in focus; nothing else is left out.
    assert left_out < len(pairs) / 100


def any_answer(codec: Codec, query: Query, seed: int) -> Prediction:
    """Return an answer whose tokens are drawn from what the grammar allows, seldom the end."""
    rng = np.random.default_rng(seed)
    tables = GrammarTables(codec)
    parse = Parser(tables, codec.encode(query), query.state, reasons=query.action is not None, rng=rng).parse()
    choice = next(parse)
    for _ in range(5000):
        others = [token for token in choice.ids if token not in tables.outcome_of]
        ids = others if others and rng.random() < 0.9 else choice.ids
        try:
            choice = parse.send(int(ids[rng.integers(len(ids))]))
        except StopIteration as stop:
            answer: Prediction = stop.value
            return answer
    raise AssertionError("no end after 5,000 tokens")


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), index=st.integers(0, 10**6))
def test_random_answers_of_a_shop_are_valid_states(
    seed: int, index: int, domain: WebShopDomain, codec: Codec, pairs: list[tuple[Query, Prediction]]
) -> None:
    # Given any query, when tokens are drawn from what the grammar allows, seldom the end
    query, _ = pairs[index % len(pairs)]
    prediction = any_answer(codec, query, seed)
    # Then the state is valid: prices parse, ids are unique, results are items
    state = apply_delta(domain.schema, query.state, prediction.delta)
    domain.schema.validate(state)
    ids_ = [item["id"] for item in state.public["items"]]
    assert len(ids_) == len(set(ids_))
    assert all(set(page["items"]) <= set(ids_) for page in state.public["results"])


@pytest.mark.parametrize("seed", range(5))
def test_what_opens_holds_what_was_promised(
    seed: int, domain: WebShopDomain, codec: Codec, pairs: list[tuple[Query, Prediction]]
) -> None:
    # Given the clicks on items to which options were promised, when their pages are invented in any way
    promises = ((query, entry) for query, _ in pairs for entry in query.state.private.get("hidden", ()))
    held = 0
    for query, entry in promises:
        if query.action != f"click[{entry['id']}]":
            continue
        state = apply_delta(domain.schema, query.state, any_answer(codec, query, seed).delta)
        item = next(item for item in state.public["items"] if item["id"] == entry["id"])
        offered = {option["name"]: option["values"] for option in item["options"]}
        # Then each page that says its options offers each promised value under its name
        for option in entry["options"] if offered else ():
            held += 1
            assert set(option["values"]) <= set(offered[option["name"]])
    assert held > 0


@pytest.mark.parametrize("seed", range(3))
def test_what_is_owed_is_written(
    seed: int, domain: WebShopDomain, codec: Codec, pairs: list[tuple[Query, Prediction]]
) -> None:
    # Given the reading of pages that owe a promised attribute, whatever else they are invented to say
    paid = 0
    for query, _ in pairs:
        action = None if query.action is None else domain.parse(query.action)
        owed = domain.owed(query.task, query.state, action) if action is not None else {}
        state = apply_delta(domain.schema, query.state, any_answer(codec, query, seed).delta) if owed else query.state
        for (_, key, _), words in owed.items():
            # Then the item has it
            item = next(item for item in state.public["items"] if item["id"] == key)
            assert set(words) <= set(item["attributes"])
            paid += 1
    assert paid > 0
