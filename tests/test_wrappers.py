"""Wrappers: indices for actions, arrays for text, one environment and many."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import State
from dreamgym_envs.domains.base import Action
from dreamgym_envs.envs.real import RealEnv
from dreamgym_envs.wrappers.candidates import NO_CANDIDATE, CandidateActions, VectorCandidateActions
from dreamgym_envs.wrappers.features import FeatureEncoder
from dreamgym_envs.wrappers.infos import domain_of, info_of
from dreamgym_envs.wrappers.matching import Request
from dreamgym_envs.wrappers.text import TextArrays, VectorTextArrays
from tests.toy import Boxes, task, thing

DOMAIN = Boxes()


def boxes() -> gym.Env[Any, Any]:
    return RealEnv(DOMAIN, max_episode_steps=6)


def vector(n: int = 3) -> SyncVectorEnv:
    return SyncVectorEnv([boxes] * n, autoreset_mode=AutoresetMode.SAME_STEP)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --- CandidateActions ------------------------------------------------------------------------------------------------


def test_an_index_is_the_candidate_at_that_place() -> None:
    env = CandidateActions(boxes())
    _, info = env.reset(seed=0)
    assert env.action_space == gym.spaces.Discrete(DOMAIN.max_candidates)
    _, _, _, _, after = env.step(1)
    assert after["state"]["feedback"] == f"You {info['candidate_actions'][1].replace('look', 'look into')}."


def test_masks_say_which_indices_have_a_candidate() -> None:
    env = CandidateActions(boxes(), k=5)
    env.reset(seed=0)
    assert env.action_masks().tolist() == [True, True, True, False, False]


def test_an_index_without_a_candidate_is_answered_like_any_invalid_action() -> None:
    env = CandidateActions(boxes(), k=5)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(4)
    assert DOMAIN.parse(NO_CANDIDATE) is None
    assert (reward, terminated, info["invalid_action"]) == (0.0, False, True)


def test_too_many_candidates_are_cut_at_the_end_with_one_warning() -> None:
    env = CandidateActions(boxes(), k=2)
    with pytest.warns(UserWarning, match="offers 3 candidate actions, more than k=2"):
        _, info = env.reset(seed=0)
    assert env.candidates == info["candidate_actions"][:2]
    env.step(0)  # the fixture makes a second warning an error


def test_k_must_be_positive() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        CandidateActions(boxes(), k=0)


def test_the_vector_twin_does_what_single_wrappers_do() -> None:
    envs = VectorCandidateActions(vector(), k=8)
    singles = [CandidateActions(boxes(), k=8) for _ in range(3)]
    envs.reset(seed=10)
    for i, single in enumerate(singles):
        single.reset(seed=10 + i)
    rng = np.random.default_rng(0)
    for _ in range(5):
        masks = envs.action_masks()
        assert masks.shape == (3, 8)
        assert (masks == [single.action_masks() for single in singles]).all()
        actions = [int(rng.choice(np.flatnonzero(mask))) for mask in masks]
        _, rewards, terminations, _, _ = envs.step(actions)
        outcomes = [single.step(action) for single, action in zip(singles, actions, strict=True)]
        assert rewards.tolist() == [outcome[1] for outcome in outcomes]
        if terminations.any():
            break


def test_a_partial_reset_keeps_the_candidates_of_the_others() -> None:
    envs = VectorCandidateActions(SyncVectorEnv([boxes] * 2, autoreset_mode=AutoresetMode.DISABLED), k=8)
    envs.reset(seed=0)
    envs.step([0, 1])
    before = envs.candidates[1]
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.candidates[1] == before
    assert len(envs.candidates[0]) == 3


# --- features --------------------------------------------------------------------------------------------------------


def state(
    *rows: tuple[str, str, tuple[Any, ...]], at: tuple[str, ...] = (), holding: tuple[Any, ...] = ()
) -> dict[str, Any]:
    boxes = tuple({"name": name, "status": status, "contents": contents} for name, status, contents in rows)
    return {"at": at, "holding": holding, "boxes": boxes, "feedback": ""}


def encoder(**sizes: int) -> FeatureEncoder:
    return FeatureEncoder(DOMAIN, **{"candidates": 8, **sizes})


SEEN = state(("box 1", "seen", (thing("ball 1", "wet"), thing("pin 1"))), ("box 2", "unseen", ()), at=("box 1",))


def test_a_candidate_is_told_by_what_the_state_says_about_its_arguments() -> None:
    tokens = encoder().explain("take the ball", SEEN, "look box 1")
    assert {"look", "look.0.boxes", "look.0.boxes.status=seen", "look.0.at", "0~box"} <= set(tokens)
    assert "look.0.boxes.status=unseen" in encoder().explain("take the ball", SEEN, "look box 2")


def test_names_that_the_instruction_mentions_are_marked_wherever_they_are() -> None:
    wanted = encoder().explain("take the ball", SEEN, "take ball 1")
    other = encoder().explain("take the ball", SEEN, "take pin 1")
    assert "take.0.m0" in wanted
    assert not any(token.startswith("take.0.m") for token in other)
    # and the box that holds it knows, with what is known of it
    box = encoder().explain("take the ball", SEEN, "look box 1")
    assert {"look.0.boxes.contents.m0", "look.0.boxes.contents.m0.flags=wet"} <= set(box)


def test_marks_count_content_words_from_the_end_of_the_instruction() -> None:
    tokens = encoder().explain("find two ball and put them in box.", SEEN, "take ball 1")
    assert "take.0.m1" in tokens
    assert "take.0.^m0" in tokens  # it lies in a box, which is the last word


def test_verb_and_last_argument_are_crossed_with_the_instruction() -> None:
    assert "take~ball*hot" in encoder().explain("put a hot ball in box", SEEN, "take ball 1")


def test_numbers_in_names_do_not_matter() -> None:
    one = encoder().explain("take the ball", state(("box 1", "unseen", ())), "look box 1")
    two = encoder().explain("take the ball", state(("box 2", "unseen", ())), "look box 2")
    assert one == two


def test_hidden_contents_are_not_read() -> None:
    hidden = state(("box 1", "unseen", (thing("ball 1"),)))
    empty = state(("box 1", "unseen", ()))
    for action in ("look box 1", "take ball 1"):
        assert encoder().explain("take the ball", hidden, action) == encoder().explain("take the ball", empty, action)
    assert encoder().explain_context("take the ball", hidden) == encoder().explain_context("take the ball", empty)


def test_the_context_tells_instruction_small_arrays_and_counts() -> None:
    tokens = encoder().explain_context("take the ball", {**SEEN, "holding": (thing("cube 1", "hot"),)})
    assert {"i~ball", "holding~cube", "holding.flags=hot", "boxes.status=seen#1", "boxes.contents.m0#1"} <= set(tokens)
    assert "holding=none" in encoder().explain_context("take the ball", SEEN)


def test_equal_inputs_give_equal_arrays_whatever_was_encoded_before() -> None:
    # Given an encoder full of other states, and a new one
    used = encoder()
    for n in range(1, 30):
        used.encode("take the pin", state((f"box {n}", "seen", (thing(f"pin {n}"),))), (f"look box {n}",), slot=n % 3)
    fresh = encoder()
    arguments = ("take the ball", SEEN, DOMAIN.candidates(task(0, "ball"), State(SEEN)))
    # Then both say the same, twice
    for _ in range(2):
        for key, array in fresh.encode(*arguments).items():
            assert (array == used.encode(*arguments)[key]).all()


def test_a_changed_record_is_read_anew_though_its_name_is_known() -> None:
    used = encoder()
    for status in ("unseen", "seen", "unseen"):
        now = state(("box 1", status, ()))
        for key, array in encoder().encode("take the ball", now, ("look box 1",)).items():
            assert (array == used.encode("take the ball", now, ("look box 1",))[key]).all()


def test_arrays_have_fixed_shape_and_padding_is_zero() -> None:
    arrays = encoder(candidate_tokens=4, context_tokens=5).encode("take the ball", SEEN, ("look box 1", "look box 2"))
    assert arrays["candidates"].shape == (8, 4)
    assert arrays["context"].shape == (5,)
    assert (arrays["candidates"][:2] > 0).all()
    assert not arrays["candidates"][2:].any()


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dreamgym_envs.wrappers.features._POOL", 8)
    small = encoder()
    for n in range(200):
        now = state((f"box {n}", "unseen", ()))
        arrays = small.encode(f"take the thing{chr(97 + n % 26)}", now, (f"look box {n}",))
        assert (
            arrays["candidates"]
            == encoder().encode(f"take the thing{chr(97 + n % 26)}", now, (f"look box {n}",))["candidates"]
        ).all()
        assert small._used < 32


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(max_size=12), max_size=10), st.text(max_size=30))
def test_any_text_can_be_encoded(actions: list[str], instruction: str) -> None:
    arrays = encoder().encode(instruction, SEEN, actions)
    assert (arrays["candidates"][:, 0] > 0).sum() == min(len(actions), 8)


def test_a_vocabulary_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="buckets must be in"):
        encoder(buckets=1 << 17)


# --- features where texts are ever new -------------------------------------------------------------------------------


class Kiosk(Boxes):
    """Sells things that have titles; a thing that is open shows its colours, of which one may be chosen."""

    schema = Schema(
        {
            "type": "object",
            "required": ["things", "shelves", "open", "chosen"],
            "properties": {
                "things": {
                    "type": "array",
                    "x-key": "id",
                    "x-invented": True,
                    "items": {
                        "type": "object",
                        "required": ["id", "title", "price", "status", "options"],
                        "properties": {
                            "id": {"type": "string", "x-unique": "thing", "x-handle": "t???"},
                            "title": {"type": "string"},
                            "price": {"type": "string"},
                            "status": {"enum": ["shut", "open"]},
                            "options": {
                                "type": "array",
                                "x-key": "name",
                                "x-known": {"field": "status", "values": ["open"]},
                                "items": {
                                    "type": "object",
                                    "required": ["name", "values"],
                                    "properties": {
                                        "name": {"type": "string"},
                                        "values": {"type": "array", "items": {"type": "string"}},
                                    },
                                },
                            },
                        },
                    },
                },
                "shelves": {
                    "type": "array",
                    "x-key": "name",
                    "items": {
                        "type": "object",
                        "required": ["name", "things"],
                        "properties": {
                            "name": {"type": "string"},
                            "things": {"type": "array", "items": {"type": "string", "x-ref": "things"}},
                        },
                    },
                },
                "open": {"type": "array", "items": {"type": "string", "x-ref": "things"}},
                "chosen": {
                    "type": "array",
                    "x-key": "option",
                    "items": {
                        "type": "object",
                        "required": ["option", "value"],
                        "properties": {"option": {"type": "string"}, "value": {"type": "string"}},
                    },
                },
            },
        }
    )

    def parse(self, action: str) -> Action | None:
        verb, _, argument = action.partition(" ")
        return Action(verb, (argument,) if argument else ())


def kiosk(open_: tuple[str, ...] = (), chosen: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    colours = ({"name": "colour", "values": ("dark blue", "red")},)
    return {
        "things": (
            {"id": "t001", "title": "Steel Mugs", "price": "$8 to $12", "status": "open", "options": colours},
            {"id": "t002", "title": "Glass Bowl", "price": "$30", "status": "shut", "options": ()},
        ),
        "shelves": ({"name": "shelf of mugs", "things": ("t001", "t002")},),
        "open": open_,
        "chosen": tuple({"option": option, "value": value} for option, value in chosen),
    }


WISH = "i need a steel mug in dark blue, and price lower than 20.00 dollars"


def explain(action: str, state: dict[str, Any], instruction: str = WISH) -> set[str]:
    return set(FeatureEncoder(Kiosk(), candidates=8).explain(instruction, state, action))


def test_new_texts_are_told_by_how_they_match_and_not_by_their_words() -> None:
    mug, bowl = explain("see t001", kiosk()), explain("see t002", kiosk())
    assert {"see.0.things.left=0", "see.0.things.price<", "see.0.things.best"} <= mug
    assert {"see.0.things.left=4", "see.0.things.price>"} <= bowl and "see.0.things.best" not in bowl
    assert not any("~" in token for token in mug | bowl)
    assert not any("~" in token for token in FeatureEncoder(Kiosk(), candidates=8).explain_context(WISH, kiosk()))


def test_what_a_reference_says_of_a_name_is_told_beside_what_its_record_says() -> None:
    assert {"see.0.things.status=shut", "see.0.shelves.things", "see.0.shelves.things#1"} <= explain(
        "see t002", kiosk()
    )


def test_an_argument_that_the_instruction_says_brings_what_is_missing() -> None:
    # Given the open mug, whose title has two of the four words that are asked for
    blue, red = (explain(f"choose {colour}", kiosk(("t001",))) for colour in ("dark blue", "red"))
    assert {"choose.0.said2", "choose.0.gain=2"} <= blue
    assert "choose.0.gain=0" in red and not any("said" in token for token in red)
    # When it is chosen, nothing is left to gain
    after = explain("choose dark blue", kiosk(("t001",), (("colour", "dark blue"),)))
    assert "choose.0.gain=0" in after


def test_an_action_without_arguments_is_told_by_what_is_open() -> None:
    before = explain("buy", kiosk(("t001",)))
    after = explain("buy", kiosk(("t001",), (("colour", "dark blue"),)))
    assert {"buy.open>things.status=open", "buy.open>things.left=0", "buy.open>things.best"} <= before & after
    assert {"buy.open>more=2", "buy.left=2"} <= before and {"buy.open>more=0", "buy.left=0"} <= after
    assert "buy.things.status=shut.least=4" in before
    assert not any("open>" in token for token in explain("buy", kiosk()))


def test_an_argument_that_the_state_does_not_know_is_told_by_what_it_leaves_out_and_whether_it_was_seen() -> None:
    assert {"find.0.left=3", "find.0.shown"} <= explain("find mugs", kiosk())
    assert {"find.0.left=2", "find.0.new"} <= explain("find blue mugs", kiosk())


def test_numbers_are_told_by_the_limit_and_other_texts_are_not() -> None:
    request = Request.read("a pack of 6 mugs below 20 dollars", {"a", "of"})
    signs = [request.compared(text) for text in ("$20", "20.5", "$1,024.00", "$10 - $40", "6 mugs", "")]
    assert signs == ["<", ">", ">", ">", "", ""]
    assert Request.read("a mug", {"a"}).compared("$20") == ""
    assert request.words == {"pack", "6", "mug", "below", "dollar"}


# --- TextArrays ------------------------------------------------------------------------------------------------------


def test_observations_are_in_the_space_and_describe_the_candidates() -> None:
    env = TextArrays(CandidateActions(boxes(), k=8), buckets=512)
    observation, info = env.reset(seed=0)
    for _ in range(3):
        assert env.observation_space.contains(observation)
        assert (observation["candidates"][:, 0] > 0).sum() == len(info["candidate_actions"])
        observation, _, _, _, info = env.step(0)


def test_without_candidates_below_there_is_nothing_to_describe() -> None:
    with pytest.raises(TypeError, match=r"TextArrays\(CandidateActions\(env\)\)"):
        TextArrays(boxes())
    with pytest.raises(TypeError, match=r"VectorTextArrays\(VectorCandidateActions\(env\)\)"):
        VectorTextArrays(vector())


def test_the_vector_twin_observes_what_single_wrappers_observe() -> None:
    envs = VectorTextArrays(VectorCandidateActions(vector(), k=8))
    singles = [TextArrays(CandidateActions(boxes(), k=8)) for _ in range(3)]
    observations, _ = envs.reset(seed=10)
    firsts = [single.reset(seed=10 + i)[0] for i, single in enumerate(singles)]
    for key in observations:
        assert (observations[key] == np.stack([first[key] for first in firsts])).all()
    assert envs.observation_space.contains(observations)


def test_the_last_observation_of_an_ended_episode_is_encoded_too() -> None:
    envs = VectorTextArrays(VectorCandidateActions(vector(2), k=8))
    envs.reset(seed=0)
    for _ in range(6):
        observations, _, _, truncations, infos = envs.step([7, 7])  # no such candidate: nothing happens
    assert truncations.all()
    final = infos["final_obs"][0]
    assert envs.single_observation_space.contains(final)
    expected = envs.encoder.explain_context(
        infos["final_info"]["instruction"][0], info_of(infos["final_info"], 0)["state"]
    )
    assert (final["context"] > 0).sum() == len(expected)
    assert not (final["context"] == observations["context"][0]).all()


def test_observations_that_were_given_out_do_not_change() -> None:
    envs = VectorTextArrays(VectorCandidateActions(vector(2), k=8))
    first, _ = envs.reset(seed=0)
    kept = {key: value.copy() for key, value in first.items()}
    envs.step([0, 1])
    assert all((first[key] == kept[key]).all() for key in first)


# --- specs and infos -------------------------------------------------------------------------------------------------


def test_a_spec_with_the_wrappers_rebuilds_the_environment() -> None:
    gym.register("Toy/Boxes-v0", lambda **kwargs: RealEnv(DOMAIN, **kwargs), max_episode_steps=6)
    try:
        env = TextArrays(CandidateActions(gym.make("Toy/Boxes-v0"), k=8), buckets=512)
        assert env.spec is not None
        names = [wrapper.name for wrapper in env.spec.additional_wrappers]
        assert names == ["CandidateActions", "TextArrays"]
        assert json.dumps([wrapper.kwargs for wrapper in env.spec.additional_wrappers])
        twin = gym.make(env.spec)
        assert twin.observation_space == env.observation_space
        assert twin.action_space == env.action_space
    finally:
        del gym.registry["Toy/Boxes-v0"]


def test_info_of_undoes_what_a_vector_environment_gathers() -> None:
    given_infos = [{"a": 1, "b": {"c": (1, 2), "d": "x"}}, {"a": 2, "b": {"c": (), "d": "y"}}, {}]
    envs = vector(3)
    batch: dict[str, Any] = {}
    for i, info in enumerate(given_infos):
        batch = envs._add_info(batch, info, i)
    assert [info_of(batch, i) for i in range(3)] == given_infos
    assert type(info_of(batch, 0)["a"]) is int


def test_the_domain_is_found_below_wrappers() -> None:
    assert domain_of(TextArrays(CandidateActions(boxes()))) is DOMAIN
    assert domain_of(VectorCandidateActions(vector())) is DOMAIN
    with pytest.raises(TypeError, match="has no domain"):
        domain_of(gym.make("CartPole-v1"))
