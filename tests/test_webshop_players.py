"""WebShop's scripted shoppers: what they read off the public state, and what they earn in the real shop."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from dreamgym_envs.core.types import State, Step, Task, Trajectory
from dreamgym_envs.domains.webshop import grammar, text
from dreamgym_envs.domains.webshop.needs import asked_values, fit, prices
from dreamgym_envs.domains.webshop.players import PLAYERS, player
from dreamgym_envs.domains.webshop.real import WebShopEngine
from dreamgym_envs.domains.webshop.views import open_item
from tests.webshop import INSTRUCTION, SHIRT, open_shop

SEARCH, OPEN = "search[dress shirt]", f"click[{SHIRT.lower()}]"
COLOR = {"name": "color", "values": ("black", "white", "black | white")}
SIZE = {"name": "size", "values": ("small", "x-small", "large")}


def shop_state(*actions: str) -> State:
    """Return the state of the small shop after actions."""
    shop, goal = open_shop()
    state = text.initial_state(shop.enter(goal))
    for action in actions:
        state = text.observe(state, action, shop.act(action).page)
    return state


def shirt(*actions: str):
    """Return the shirt as the state has it after it was opened."""
    item = open_item(shop_state(SEARCH, OPEN, *actions))
    assert item is not None
    return item


# --- needs: an instruction held against what was seen -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "values"),
    [
        ("Find me shirts with color: black | white, and size: x-small", {"color": "black | white", "size": "x-small"}),
        ("a shirt, in black color, size small, and price lower than 9.00 dollars", {"color": "black", "size": "small"}),
        ("a large print shirt. the size should be small", {"size": "small"}),
        ("a shirt for men", {}),
    ],
)  # fmt: skip
def test_asked_is_the_longest_value_nearest_to_its_options_name(instruction, values):
    assert asked_values(instruction, (COLOR, SIZE)) == values


def test_a_number_in_the_price_limit_is_no_value():
    widths = ({"name": "width", "values": ("40", "50")},)
    assert asked_values("a shirt, and price lower than 40.00 dollars", widths) == {}


def test_an_item_fits_once_its_pages_have_borne_out_every_piece():
    # Given a shirt that is to be machine washable, which its features page alone says
    before, after = fit(INSTRUCTION, shirt()), fit(INSTRUCTION, shirt("click[features]"))
    assert before.values == after.values == {"color": "black", "size": "small"}
    assert (before.missing, before.complete) == (("machine wash",), False)
    assert (after.missing, after.complete, after.score) == ((), True, 1.0)
    assert before.score < 1.0


def test_an_option_without_the_asked_value_is_lacking():
    found = fit("a dress shirt, in color purple, with sleeve: long", shirt())
    assert set(found.lacking) == {"color", "sleeve"}
    assert not found.complete


def test_a_price_over_the_limit_does_not_fit_and_of_a_range_the_middle_counts():
    assert fit(f"{INSTRUCTION}, and price lower than 30.00 dollars", shirt()).price
    assert not fit(f"{INSTRUCTION}, and price lower than 20.00 dollars", shirt()).price
    ranged = {**shirt(), "price": "$10 to $1,000.5"}
    assert prices(ranged["price"]) == (10.0, 1000.5)
    assert not fit(f"{INSTRUCTION}, and price lower than 400.00 dollars", ranged).price


# --- players ----------------------------------------------------------------------------------------------------------


def small_episode(kind: str, seed: int = 0) -> tuple[list[str], float]:
    """Play the small shop; return the actions and the reward, 0 without a purchase in 50 steps."""
    shop, goal = open_shop()
    state = text.initial_state(shop.enter(goal))
    acting = player(kind)
    acting.reset(Task("t", goal.instruction, state), np.random.default_rng(seed))
    actions: list[str] = []
    while len(actions) < 50:
        actions.append(acting.act(state))
        outcome = shop.act(actions[-1])
        state = text.observe(state, actions[-1], outcome.page)
        if outcome.reward is not None:
            return actions, outcome.reward.total
    return actions, 0.0


def test_the_expert_searches_reads_what_is_missing_chooses_and_buys():
    actions, reward = small_episode("expert")
    assert actions[0].startswith("search[")
    assert actions[1:] == [OPEN, "click[features]", "click[< prev]", "click[black]", "click[small]", "click[buy now]"]
    assert reward == 1.0


def test_the_expert_does_something_else_after_a_failure():
    # Given a shop that does not answer: a dream can be wrong
    acting = player("expert")
    state = shop_state()
    acting.reset(Task("t", INSTRUCTION, state), np.random.default_rng(0))
    stuck = State({**state.public, "feedback": grammar.FAILURE})
    assert len({acting.act(stuck) for _ in range(40)}) > 1


@pytest.mark.parametrize("kind", PLAYERS)
def test_a_player_is_repeatable_and_stays_in_the_grammar(kind):
    actions, _ = small_episode(kind, seed=3)
    assert small_episode(kind, seed=3)[0] == actions
    assert all(grammar.parse(action) is not None for action in actions)


@pytest.mark.parametrize("kind", PLAYERS)
def test_what_the_private_part_says_changes_nothing(kind):
    state = shop_state(SEARCH, OPEN)
    told = State(state.public, {"hidden": ()})
    acts = []
    for shown in (state, told):
        acting = player(kind)
        acting.reset(Task("t", INSTRUCTION, shop_state()), np.random.default_rng(5))
        acts.append([acting.act(shown) for _ in range(3)])
    assert acts[0] == acts[1]


def test_an_unknown_player_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match="no player 'clerk'; there are: expert, noisy, random, nearmiss"):
        player("clerk")


# --- in the real shop -------------------------------------------------------------------------------------------------


@cache
def episodes(kind: str, count: int) -> tuple[Trajectory, ...]:
    """Play goals of the test split; an episode ends after 50 steps."""
    engine = WebShopEngine(split="test")
    rng = np.random.default_rng(1)
    return tuple(
        episode(engine, kind, engine.task_ids[goal], seed)
        for seed, goal in enumerate(rng.permutation(len(engine.task_ids))[:count])
    )


def episode(engine: WebShopEngine, kind: str, goal: str, seed: int) -> Trajectory:
    rng = np.random.default_rng(seed)
    task = engine.reset(rng, goal)
    acting, state, steps = player(kind), task.initial, []
    acting.reset(task, rng)
    while len(steps) < 50 and not (steps and steps[-1].terminated):
        action = acting.act(state)
        state, reward, terminated = engine.step(action)
        steps.append(Step(action, state, reward, terminated))
    return Trajectory(task, tuple(steps), player=kind)


def rewards(kind: str, count: int) -> list[float]:
    return [episode.steps[-1].reward for episode in episodes(kind, count)]


def test_the_expert_earns_most_of_what_there_is_in_held_out_goals():
    # Measured over 200 goals: mean reward 0.964, success 0.870
    earned = rewards("expert", 100)
    assert np.mean(earned) > 0.93
    assert np.mean([reward == 1.0 for reward in earned]) > 0.8
    assert all(episode.steps[-1].terminated for episode in episodes("expert", 100))


def test_noise_costs_and_chance_costs_more():
    assert np.mean(rewards("expert", 60)) > np.mean(rewards("noisy", 60)) > np.mean(rewards("random", 60))


def test_near_misses_end_with_purchases_of_many_rewards():
    earned = Counter(round(reward, 2) for reward in rewards("nearmiss", 100))
    bought = sum(episode.steps[-1].terminated for episode in episodes("nearmiss", 100))
    assert bought > 90
    assert len(earned) >= 7
    # Most are no success, and most of those are worth something
    assert earned[1.0] < 60
    assert sum(count for reward, count in earned.items() if 0.0 < reward < 1.0) > 40
