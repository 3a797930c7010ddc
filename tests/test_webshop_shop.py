"""WebShop's search and pages: what is found, what every click leads to, and what leads nowhere."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.domains.webshop import grammar
from dreamgym_envs.domains.webshop.catalogue import read_catalogue
from dreamgym_envs.domains.webshop.pages import PAGE_SIZE
from dreamgym_envs.domains.webshop.real import WebShopEngine
from dreamgym_envs.domains.webshop.search import HITS, document
from dreamgym_envs.domains.webshop.shop import Shop
from tests.webshop import MUG, SHIRT, goals, open_shop, record

# --- search -----------------------------------------------------------------------------------------------------------


def index_of(*titles: str, **fields):
    records = [
        record(
            f"B00000000{i}",
            name=title,
            full_description="",
            small_description=[""],
            customization_options=None,
            **fields,
        )
        for i, title in enumerate(titles)
    ]
    return read_catalogue(records).search_index


def test_what_has_more_of_the_words_and_is_shorter_comes_first():
    assert index_of("red mug with a long name", "red shirt", "blue mug", "red mug").search("red mug") == (3, 0, 1, 2)


def test_words_are_compared_by_their_stems_without_case_or_stop_words():
    index = index_of("Running Shoes", "the mug for you")
    assert index.search("SHOE run") == (0,)
    assert index.search("the for") == ()


def test_a_rare_word_weighs_more_than_a_common_one():
    assert index_of("shirt red", "shirt blue", "shirt green", "mug red").search("shirt green")[0] == 2


def test_of_equals_the_earlier_product_comes_first():
    assert index_of("red mug", "red mug", "red mug").search("mug") == (0, 1, 2)


@pytest.mark.parametrize("keywords", ["", " ", "!?", "zzzz", "the"])
def test_words_that_no_product_has_find_nothing(keywords):
    assert index_of("red mug").search(keywords) == ()


def test_no_more_than_fifty_are_found_and_they_are_the_best():
    index = index_of("red mug", *(["mug"] * 4))
    many = read_catalogue([record(f"B0000{i:05}", name="mug " * (1 + i % 2)) for i in range(200)]).search_index
    assert len(many.search("mug")) == HITS
    assert all(i % 2 == 1 for i in many.search("mug"))
    assert index.search("red")[0] == 0


def test_the_scores_are_lucenes_bm25():
    # idf * tf / (tf + k1 * (1 - b + b * length / mean length)) with k1 = 0.9, b = 0.4
    # and idf = ln(1 + (N - n + 0.5) / (n + 0.5))
    index = index_of("mug mug red", "mug blue green white grey pink", "shirt")
    lengths, counts = np.array([3, 6, 1]), np.array([2, 1, 0])
    weight = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = weight * counts / (counts + 0.9 * (1 - 0.4 + 0.4 * lengths / lengths.mean()))
    assert index.scores("mug") == pytest.approx(expected, rel=1e-5)


def test_a_product_is_found_by_title_description_first_bullet_point_and_options():
    (product,) = read_catalogue([record()])
    assert document(product) == (
        "fernhill men's slim fit dress shirt a shirt for the office. machine wash cold. "
        "color: black, navy | white, and size: small, x-large"
    )


TWO = index_of("red mug", "blue shirt")


@given(st.text(max_size=40))
def test_any_keywords_find_something_or_nothing_and_never_fail(keywords):
    hits = TWO.search(keywords)
    assert len(hits) == len(set(hits)) <= 2


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop():
    found, goal = open_shop()
    found.enter(goal)
    return found


def walk(shop: Shop, *actions: str):
    """Return what the last of some actions leads to."""
    outcome = None
    for action in actions:
        outcome = shop.act(action)
    assert outcome is not None
    return outcome.page


OPEN_SHIRT = ("search[fernhill shirt]", f"click[{SHIRT.lower()}]")


def test_an_episode_starts_on_the_search_page_with_the_instruction():
    shop, goal = open_shop()
    page = shop.enter(goal)
    assert (page.kind, page.instruction) == ("search", goal.instruction)


def test_a_search_shows_the_first_ten_hits(shop):
    page = walk(shop, "search[shirt]")
    assert (page.kind, page.number, page.total, len(page.listings)) == ("results", 1, 25, PAGE_SIZE)
    assert page.listings[0].price == "$24.5"


def test_results_go_on_for_as_many_pages_as_there_are_hits(shop):
    pages = [walk(shop, "search[shirt]"), walk(shop, "click[Next >]"), walk(shop, "click[next >]")]
    assert [page.number for page in pages] == [1, 2, 3]
    assert [len(page.listings) for page in pages] == [10, 10, 5]
    assert len({listing.asin for page in pages for listing in page.listings}) == 25
    assert walk(shop, "click[next >]") == pages[2]  # there is no fourth page, hence no button
    assert walk(shop, "click[< prev]") == pages[1]
    assert walk(shop, "click[< prev]") == pages[0]
    assert walk(shop, "click[< prev]") == pages[0]  # nor one before the first


def test_a_search_that_finds_nothing_shows_an_empty_page_of_results(shop):
    page = walk(shop, "search[zzzz]")
    assert (page.kind, page.number, page.total, page.listings) == ("results", 1, 0, ())


@pytest.mark.parametrize("action", ["search[]", "search", "click[search]", "click[]", "", "buy", "think[shirt]"])
def test_what_is_no_action_leaves_the_page_as_it_is(shop, action):
    before = walk(shop, "search[shirt]")
    outcome = shop.act(action)
    assert (outcome.page, outcome.reward, outcome.done) == (before, None, False)


@pytest.mark.parametrize(
    ("where", "element"),
    [
        ((), "back to search"),
        ((), "buy now"),
        ((), "next >"),
        ((), SHIRT),
        (("search[shirt]",), "buy now"),
        (("search[shirt]",), "description"),
        (("search[shirt]",), MUG),  # sold, but not on this page
        (("search[shirt]",), "black"),
        (OPEN_SHIRT, "next >"),
        (OPEN_SHIRT, "purple"),
        (OPEN_SHIRT, SHIRT),
        ((*OPEN_SHIRT, "click[features]"), "buy now"),
        ((*OPEN_SHIRT, "click[features]"), "black"),
        ((*OPEN_SHIRT, "click[features]"), "description"),
    ],
)
def test_an_element_that_the_page_does_not_have_leaves_it_as_it_is(where, element):
    shop, goal = open_shop()
    before = shop.enter(goal)
    for action in where:
        before = shop.act(action).page
    outcome = shop.act(f"click[{element}]")
    assert (outcome.page, outcome.done, shop.chosen) == (before, False, {})


def test_an_item_shows_title_price_rating_and_options(shop):
    page = walk(shop, *OPEN_SHIRT)
    assert (page.kind, page.title, page.price, page.rating) == (
        "item",
        "Fernhill Men's Slim Fit Dress Shirt",
        "$24.5",
        "N.A.",
    )
    assert page.options == (("color", ("black", "navy | white")), ("size", ("small", "x-large")))


@pytest.mark.parametrize(
    ("button", "lines"),
    [
        ("Description", ("A shirt for the office.",)),
        ("Features", ("Machine wash cold.", "Button closure.")),
        ("Reviews", ("No reviews found",)),
    ],
)
def test_a_sub_page_shows_its_text_and_leads_back_to_the_item(shop, button, lines):
    item = walk(shop, *OPEN_SHIRT, "click[black]")
    page = walk(shop, f"click[{button}]")
    assert (page.kind, page.lines) == ("detail", lines)
    assert walk(shop, "click[< prev]") == item
    assert shop.chosen == {"color": "black"}


def test_reviews_are_shown_with_title_stars_and_text():
    reviews = [{"title": "Good", "score": 5, "body": "Yes."}]
    instruction = {SHIRT: [{"instruction": "find", "instruction_attributes": ["a"]}]}
    products = read_catalogue([record(reviews=reviews)], {}, instruction)
    shop = Shop(products)
    shop.enter(goals(products)[0])
    assert walk(shop, *OPEN_SHIRT, "click[reviews]").lines == ('"Good"', "5", "Yes.")
    assert walk(shop, "click[< prev]").rating == "5.0"


def test_options_are_chosen_changed_and_dropped_on_the_way_back_to_the_results(shop):
    walk(shop, *OPEN_SHIRT, "click[black]", "click[Small]")
    assert shop.chosen == {"color": "black", "size": "small"}
    walk(shop, "click[navy | white]")
    assert shop.chosen == {"color": "navy | white", "size": "small"}
    walk(shop, "click[< prev]", OPEN_SHIRT[1])
    assert shop.chosen == {}


def test_a_value_that_two_options_share_counts_for_the_later_one():
    instruction = {SHIRT: [{"instruction": "find", "instruction_attributes": ["a"]}]}
    options = {"Top": [{"value": "red"}], "Bottom": [{"value": "red"}]}
    products = read_catalogue([record(customization_options=options)], {}, instruction)
    shop = Shop(products)
    shop.enter(goals(products)[0])
    walk(shop, *OPEN_SHIRT, "click[red]")
    assert shop.chosen == {"bottom": "red"}


def test_going_back_from_an_item_shows_the_page_of_results_that_was_left(shop):
    results = walk(shop, "search[shirt]", "click[next >]")
    assert walk(shop, f"click[{results.listings[3].asin}]", "click[< prev]") == results


@pytest.mark.parametrize("where", [("search[shirt]",), OPEN_SHIRT, (*OPEN_SHIRT, "click[features]")])
def test_back_to_search_starts_over(shop, where):
    assert walk(shop, *where, "click[Back to Search]").kind == "search"


@pytest.mark.parametrize("where", [("search[mug]",), OPEN_SHIRT, (*OPEN_SHIRT, "click[features]")])
def test_a_search_works_from_every_page_and_drops_what_was_chosen(shop, where):
    page = walk(shop, *where, "search[mug]")
    assert (page.kind, page.listings[0].asin, shop.chosen) == ("results", MUG, {})


def test_buying_ends_the_episode_with_the_reward(shop):
    walk(shop, *OPEN_SHIRT, "click[black]", "click[small]")
    outcome = shop.act("click[Buy Now]")
    assert outcome.done
    assert outcome.reward is not None and outcome.reward.total == 1.0
    assert (outcome.page.kind, outcome.page.score) == ("done", 1.0)


def test_the_reward_is_for_what_is_open_and_chosen_when_it_is_bought(shop):
    walk(shop, *OPEN_SHIRT, "click[black]", "click[x-large]")
    reward = shop.act("click[buy now]").reward
    assert reward is not None
    assert reward.options == (True, False)
    assert reward.total == pytest.approx(3 / 4)


def test_another_kind_of_product_earns_less(shop):
    walk(shop, "search[mug]", f"click[{MUG}]")
    reward = shop.act("click[buy now]").reward
    assert reward is not None
    assert (reward.type_factor, reward.total) == (0.0, 0.0)  # no noun in common


@pytest.mark.parametrize("entered", [False, True])
def test_no_episode_no_action(entered):
    shop, goal = open_shop()
    if entered:
        shop.enter(goal)
        walk(shop, *OPEN_SHIRT, "click[buy now]")
    with pytest.raises(RuntimeError, match="call enter first"):
        shop.act("search[shirt]")


def test_a_new_episode_knows_nothing_of_the_last(shop):
    walk(shop, *OPEN_SHIRT, "click[black]", "click[buy now]")
    _, goal = open_shop()
    assert shop.enter(goal).kind == "search"
    assert shop.chosen == {}


ANYTHING = [
    "search[shirt]",
    "click[next >]",
    "click[< prev]",
    OPEN_SHIRT[1],
    "click[black]",
    "click[features]",
    "click[back to search]",
    "search[]",
    "click[nothing]",
]
ONE_SHOP = open_shop()


@given(st.lists(st.sampled_from(ANYTHING), max_size=30))
def test_whatever_is_done_the_shop_stays_open_until_something_is_bought(actions):
    shop, goal = ONE_SHOP
    shop.enter(goal)
    assert not any(shop.act(action).done for action in actions)


# --- speed ------------------------------------------------------------------------------------------------------------


def test_the_shop_makes_at_least_a_thousand_steps_a_second():
    engine = WebShopEngine(split="test")
    rng = np.random.default_rng(0)
    steps = 0
    start = time.process_time()
    while steps < 3000:
        task = engine.reset(rng)
        state, done = task.initial, False
        for _ in range(15):
            offered = grammar.candidates(task, state)
            state, _, done = engine.step(offered[int(rng.integers(len(offered)))])
            steps += 1
            if done:
                break
    assert steps / (time.process_time() - start) > 1000  # 15,000 to 20,000 where nothing else runs
