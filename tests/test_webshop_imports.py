"""Recorded episodes in chat format: what is read, what is cut or skipped, and what is said about it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.assets import asset
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.domains.webshop.imports import ChatFormatError, import_chats, read_chats
from dreamgym_envs.domains.webshop.pages import render
from tests.webshop import SHIRT, open_shop

SCHEMA = Schema.load(asset("schemas", "webshop.json"))
DATA = Path(__file__).parents[2] / "shared" / "data" / "webshop" / "sharegpt_webshop.jsonl"
SEARCH, OPEN, BUY = "search[dress shirt]", f"click[{SHIRT}]", "click[Buy Now]"


def chat(*actions: str, answered: bool = True, name: str = "webshop_1") -> dict[str, Any]:
    """Return an episode in the small shop as a record; without `answered` the last page is missing."""
    shop, goal = open_shop()
    texts = ["You are web shopping. Action:\nclick[value]", "Ok.", render(shop.enter(goal))]
    for action in actions:
        texts += [f"Thought:\nI think so.\n\nAction:\n{action} ", render(shop.act(action).page)]
    turns = [{"from": ("human", "gpt")[i % 2], "loss": None, "value": value} for i, value in enumerate(texts)]
    return {"item_id": name, "conversations": turns if answered else turns[:-1]}


def lines(*records: Any) -> list[str]:
    return [json.dumps(record) for record in records]


def test_an_episode_is_read_up_to_the_last_page_that_was_recorded() -> None:
    # Given an episode that ends, as those of the format do, with a purchase and no page behind it
    found = read_chats(lines(chat(SEARCH, OPEN, "click[black]", BUY, answered=False)), SCHEMA)
    # Then its steps are those with a page, and the purchase stands in the metadata: nobody knows its reward
    (episode,) = found.trajectories
    assert [step.action for step in episode.steps] == [SEARCH, OPEN, "click[black]"]
    assert episode.steps[-1].state.public["chosen"] == ({"option": "color", "value": "black"},)
    assert episode.metadata["unanswered"] == BUY
    assert (episode.task.id, episode.source, episode.player) == ("webshop_1", "real", "recorded")
    assert episode.task.instruction.startswith("i need a men's dress shirt")
    assert not any(step.terminated or step.reward for step in episode.steps)
    assert (found.steps, found.unanswered, found.skipped) == (3, 1, ())


def test_where_the_last_page_was_recorded_its_score_is_the_reward() -> None:
    found = read_chats(lines(chat(SEARCH, OPEN, "click[black]", "click[small]", BUY)), SCHEMA)
    (episode,) = found.trajectories
    assert (episode.steps[-1].reward, episode.steps[-1].terminated, episode.success) == (1.0, True, True)
    assert "unanswered" not in episode.metadata
    assert found.unanswered == 0


def test_an_action_that_failed_stays_in_the_episode() -> None:
    found = read_chats(lines(chat(SEARCH, "click[nothing of this]", OPEN)), SCHEMA)
    (episode,) = found.trajectories
    assert [step.state.public["feedback"] for step in episode.steps][1] == "Nothing happens."


def spoilt(place: int, value: str, name: str = "webshop_1") -> dict[str, Any]:
    record = chat(SEARCH, OPEN, BUY, name=name)
    record["conversations"][place]["value"] = value
    return record


@pytest.mark.parametrize(
    ("record", "step", "reason"),
    [
        ({"item_id": "a", "conversations": []}, 0, "no page"),
        (spoilt(2, "Welcome"), 0, "the first page is no search page"),
        (spoilt(2, chat(SEARCH)["conversations"][4]["value"]), 0, "the first page is no search page"),
        (chat(SEARCH, answered=False), 0, "no page behind the first action"),
        (spoilt(3, "I do not know."), 0, "an answer without an action"),
        (spoilt(5, "Thought: none"), 2, "an answer without an action"),
        (spoilt(6, "Error 500"), 2, "a page that cannot be read"),
        (spoilt(6, chat()["conversations"][2]["value"]), 2, "a page that is no answer to the action"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_cut_or_skipped_with_its_reason(record: Any, step: int, reason: str) -> None:
    found = read_chats(lines(record, chat(SEARCH, name="other")), SCHEMA)
    # Given one such episode and a good one, then the good one is read
    assert found.trajectories[-1].task.id == "other"
    # And the other ends before the step that the report names
    (skipped,) = found.skipped
    assert (skipped.record, skipped.episode, skipped.step) == (1, record["item_id"], step)
    assert skipped.reason == reason
    assert len(found.trajectories) == (2 if step else 1)
    assert all(len(episode.steps) == step - 1 for episode in found.trajectories[:-1])
    whole = int(step == 0)
    assert f"{reason}: {whole} episodes skipped, {1 - whole} cut there, the first in record 1" in found.report()
    (document,) = found.document()["skipped"]
    assert (document["reason"], document["episodes"], document["whole"]) == (reason, 1, whole)
    assert document["first"]["episode"] == record["item_id"]


def test_an_episode_that_comes_twice_is_read_once() -> None:
    found = read_chats(lines(chat(SEARCH), chat(SEARCH)), SCHEMA)
    assert len(found.trajectories) == 1
    assert found.report().splitlines() == [
        "read 1 episodes with 1 steps",
        "an episode of this name was read before: 1 episodes skipped, 0 cut there, the first in record 2 (webshop_1)",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "record 2: no JSON"),
        ("[]", "record 2, the record: expected an object with item_id and conversations, found []"),
        ('{"conversations": []}', "record 2, item_id: expected a name, found None"),
        ('{"item_id": "a"}', "record 2, conversations: expected a list of turns, found None"),
        ('{"item_id": "a", "conversations": [1]}', r"record 2, conversations[0]: expected an object"),
        ('{"item_id": "a", "conversations": [{"from": "gpt"}]}', "conversations[0].from: expected 'human'"),
        ('{"item_id": "a", "conversations": [{"from": "human"}]}', "conversations[0].value: expected a text"),
        (b"\xff\xfe", "record 2: no JSON"),
    ],
)  # fmt: skip
def test_a_line_in_another_format_is_an_error_that_names_record_and_field(line: str | bytes, message: str) -> None:
    with pytest.raises(ChatFormatError) as caught:
        read_chats([*lines(chat(SEARCH)), line], SCHEMA)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 250


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text("\n\nnull\n")
    with pytest.raises(ChatFormatError, match=r"chats.jsonl: record 3, the record"):
        import_chats(path, SCHEMA)
    with pytest.raises(FileNotFoundError):
        import_chats(tmp_path / "none.jsonl", SCHEMA)


@given(st.lists(st.text(), max_size=6))
def test_whatever_the_turns_say_every_state_is_one_of_the_schema(texts: list[str]) -> None:
    record = chat(SEARCH)
    record["conversations"] += [{"from": ("gpt", "human")[i % 2], "value": text} for i, text in enumerate(texts)]
    (episode,) = read_chats(lines(record), SCHEMA).trajectories
    for step in episode.steps:
        SCHEMA.validate(step.state)


@pytest.mark.skipif(not DATA.exists(), reason="recorded episodes on Amazon products (../shared/data) are not here")
def test_the_recorded_episodes_on_amazon_products_are_all_read() -> None:
    found = import_chats(DATA, SCHEMA)
    assert (len(found.trajectories), found.steps, found.skipped) == (600, 2438, ())
    # They all end with a purchase whose reward was not recorded
    assert found.unanswered == 600
    assert {episode.metadata["unanswered"].lower() for episode in found.trajectories} == {"click[buy now]"}
    assert all(step.state.public["feedback"] != "Nothing happens." for e in found.trajectories for step in e.steps)
