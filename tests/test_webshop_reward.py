"""WebShop's reward: every rule with a worked example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.domains.webshop.catalogue import read_catalogue
from dreamgym_envs.domains.webshop.colours import COLOURS, normalise
from dreamgym_envs.domains.webshop.goals import NO_LIMIT, Goal
from dreamgym_envs.domains.webshop.nouns import nouns
from dreamgym_envs.domains.webshop.products import Product
from dreamgym_envs.domains.webshop.reward import (
    Reward,
    attribute_met,
    option_met,
    reward,
    similar,
    title_score,
    type_factor,
)
from tests.webshop import SHIRT, goals, record


def product(**fields) -> Product:
    (found,) = read_catalogue([record(customization_options={}, **fields)])
    return found


def kind(title: str, query: str = "q", path: str = "a \u203a b \u203a c") -> Product:
    return product(name=title, query=query, product_category=path)


def goal(wanted: Product, attributes=("machine wash",), options=(), names=(), limit=40.0) -> Goal:
    return Goal("g", wanted, "find it", tuple(attributes), tuple(options), tuple(names), limit)


# --- the sum ----------------------------------------------------------------------------------------------------------


def test_everything_right_is_one():
    shirt = product()
    assert reward(goal(shirt, options=("black", "small")), shirt, {"color": "black", "size": "small"}).total == 1.0


@pytest.mark.parametrize(
    ("attributes", "options", "chosen", "limit", "expected"),
    [
        (("machine wash", "gold plated"), (), {}, 40.0, 2 / 3),  # one of two attributes, and the price
        (("machine wash",), ("black", "small"), {"color": "black"}, 40.0, 3 / 4),  # one of two options
        (("machine wash",), ("black", "small"), {}, 40.0, 2 / 4),  # no option chosen
        (("machine wash",), (), {}, 20.0, 1 / 2),  # 24.50 is above the limit
        (("machine wash",), (), {}, 24.5, 2 / 2),  # the limit itself is within
        (("machine wash",), (), {}, NO_LIMIT, 2 / 2),  # without a limit the price is always right
        (("gold plated",), ("red",), {"color": "black"}, 20.0, 0.0),
        (("gold plated",), (), {}, 40.0, 1 / 2),  # the price alone
    ],
)
def test_the_reward_is_what_is_met_of_attributes_options_and_price(attributes, options, chosen, limit, expected):
    shirt = product()
    assert reward(goal(shirt, attributes, options, limit=limit), shirt, chosen).total == pytest.approx(expected)


def test_the_sum_is_multiplied_by_the_type_factor():
    assert Reward(0.5, (True,), (True, False), True).total == pytest.approx(0.5 * 3 / 4)
    assert Reward(0.0, (True,), (), True).total == 0.0


def test_the_parts_are_told_in_the_goals_order():
    shirt = product()
    parts = reward(goal(shirt, ("gold plated", "machine wash"), ("small", "black")), shirt, {"color": "black"})
    assert parts == Reward(1.0, (False, True), (False, True), True)


def test_the_price_of_a_range_is_the_one_that_is_paid():
    ranged = product(pricing="$10 to $20")
    for limit, met in ((ranged.price, True), (ranged.price - 0.01, False)):
        assert reward(goal(ranged, limit=limit), ranged, {}).price is met


@given(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_the_reward_lies_in_the_unit_interval_and_is_one_only_if_all_is_met(attributes, options, price, factor):
    total = Reward(factor, (True,) * attributes + (False,), (True,) * options, price).total
    assert 0.0 <= total < 1.0


# --- type -------------------------------------------------------------------------------------------------------------

TEN = "Alpha Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliet"
ELEVEN = f"{TEN} Kilo"


@pytest.mark.parametrize(
    ("wanted", "bought", "factor"),
    [
        (kind(TEN), kind(TEN), 1.0),
        # nothing in common: nothing, whatever query and departments say
        (kind("Red Shirt"), kind("Blue Mug"), 0.0),
        # 1 of 11 nouns is below 0.1, same query and departments or not
        (kind(ELEVEN), kind("Alpha"), 0.1),
        (kind(ELEVEN, "x"), kind("Alpha", "y", "d"), 0.1),
        # 1 of 10 nouns: 0.1 is not below 0.1, so query and departments decide
        (kind(TEN), kind("Alpha"), 1.0),
        (kind(TEN, "x"), kind("Alpha", "y", "d \u203a e \u203a f"), 0.5),
        (kind(TEN, "x"), kind("Alpha", "x", "d \u203a e \u203a f"), 1.0),
        # two departments in common, in any order; one twice is one
        (kind(TEN, "x"), kind("Alpha", "y", "b \u203a c \u203a a"), 1.0),
        (kind(TEN, "x"), kind("Alpha", "y", "a \u203a d \u203a b"), 1.0),
        (kind(TEN, "x"), kind("Alpha", "y", "a \u203a a \u203a d"), 0.5),
        # 2 of 10 nouns is not above 0.2, 3 of 10 is
        (kind(TEN, "x"), kind("Alpha Bravo", "y", "d"), 0.5),
        (kind(TEN, "x"), kind("Alpha Bravo Charlie", "y", "d"), 1.0),
        # a title without nouns scores 0.2
        (kind("for 30", "x"), kind("Mug", "y", "d"), 0.5),
        (kind("for 30", "x"), kind("Mug", "x", "d"), 1.0),
    ],
)
def test_the_type_factor(wanted, bought, factor):
    assert type_factor(wanted, bought) == factor


def test_queries_are_compared_without_case_and_blanks():
    assert type_factor(kind(TEN, "Dress Shirts "), kind("Alpha", "dress shirts", "d")) == 1.0


BRST = "BRST AC Power Cord Outlet Socket Cable Plug Lead for Panasonic SC-HT830V DVD/VCR Combo Home Theater System"


@pytest.mark.parametrize(
    ("wanted", "bought", "score"),
    [
        (
            "adidas Unisex-Adult D.o.n. Issue 2 Basketball Shoe",
            "adidas Unisex-Adult D.o.n. Issue 2 Indoor Court Shoe",
            0.85,
        ),
        (
            "Saireed UL Listed 2 Prong Power Cord for JBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar Home Theater "
            "System Subwoofer",
            BRST,
            0.31,
        ),
        (
            "Saireed UL Listed 2 Prong Power Cord for JBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar",
            BRST,
            0.17,
        ),
        (
            "Rusticware 921ORB Kitchen and Bath Cabinet Knob",
            "Minkissy 2pcs Stainless Steel Eyebrow Tweezers Blackhead Acne Remover Portable Makeup Tweezers (Silver)",
            0.0,
        ),
    ],
)
def test_title_scores_are_those_that_the_originals_tests_expect(wanted, bought, score):
    assert title_score(wanted, bought) == pytest.approx(score, abs=0.01)


def test_a_repeated_noun_counts_each_time_in_the_wanted_title_and_once_in_common():
    assert title_score("Bar Bar Knob Lamp", "Bar") == 1 / 4


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Men's Long Sleeve T-Shirt", ("men", "long", "sleeve", "t", "shirt")),
        ("a soft, washable shirt in red", ("shirt",)),
        ("padded bed with cable", ("bed", "cable")),
        ("Pack of 12, 4K 30-Count 10g", ("pack", "count", "g")),
        ("DVD/VCR Combo (Silver)", ("dvd", "vcr", "combo", "silver")),
        ("", ()),
    ],
)
def test_nouns_of_a_title(title, expected):
    assert nouns(title) == expected


@given(st.text(max_size=80))
def test_any_title_has_its_nouns_and_all_of_them_in_itself(title):
    assert all(noun and noun in title.lower() for noun in nouns(title))
    assert title_score(title, title) <= 1.0


# --- attributes -------------------------------------------------------------------------------------------------------


def with_attributes(*attributes: str, **fields) -> Product:
    (found,) = read_catalogue([record(**fields)], {SHIRT: {"attributes": list(attributes)}})
    return found


@pytest.mark.parametrize(
    ("own", "attribute", "met"),
    [
        (("tea tree",), "tea tree", True),
        (("essential oil",), "essential oils", True),  # nearly the same words
        (("oil, essential",), "essential oil", True),  # in any order
        (("tea bag",), "tea tree", False),
        (("long lasting battery",), "long lasting", True),  # all words among more
        ((), "slim fit", True),  # in the title, whatever its case
        ((), "button closure", True),  # in a bullet point
        ((), "the office", True),  # in the description
        ((), "wash cold. button", True),  # bullet points are read as one text
        ((), "closure button", False),  # texts are compared word for word
    ],
)
def test_an_attribute_is_met_by_the_products_own_or_by_its_texts(own, attribute, met):
    assert attribute_met(with_attributes(*own), attribute) is met


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("essential oils", "essential oil", True),
        ("X-Large!", "x large", True),
        ("caf\u00e9", "caf", True),  # what is not ASCII is left out
        ("", "", False),
        ("\u00e9", "anything", False),
        ("abcdefgh", "abcdefgx", True),  # 87.5 rounds to 88
        ("abcdefg", "abcdefx", True),  # 85.7 rounds to 86, which is above 85
        ("abcdef", "abcdex", False),  # 83.3
    ],
)
def test_similarity_is_token_set_ratio_above_85(one, other, same):
    assert similar(one, other) is same
    assert similar(other, one) is same


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "wanted", "met"),
    [
        (("black",), "black", True),
        (("navy | white",), "navy", True),  # both are "navy"
        (("navy blazer",), "navy", True),
        (("bright red",), "dark red", False),  # "red" here, but "dark" comes first in the list there
        (("standard",), "tan", True),  # a surprise of the original: "standard" contains "tan"
        (("cool powder snow",), "powder snow", True),
        (("x-large",), "large", True),  # the words of one are among the other's
        (("small",), "large", False),
        (("pack of 12", "grey"), "grey", True),
        ((), "grey", False),
    ],
)
def test_an_option_is_met_by_any_of_the_chosen_values_after_colours_are_normalised(chosen, wanted, met):
    assert option_met(chosen, wanted) is met


@pytest.mark.parametrize(
    ("chosen", "name", "value", "met"),
    [
        ("black", "color", "black", True),
        ("small", "size", "small", True),
        ("size", "size", "small", True),  # the name counts as well
        ("r.brown2060", "color", "r.brown2060", False),  # the chosen one becomes "brown", the wanted one does not
        ("navy blazer", "color", "navy blazer", True),  # "navy" is a word of the wanted one
    ],
)
def test_where_the_goal_names_its_options_name_and_value_are_compared_together(chosen, name, value, met):
    assert option_met((chosen,), value, name) is met
    named = goal(product(), options=(value,), names=(name,))
    assert reward(named, product(), {name: chosen}).options == (met,)


def test_goals_of_the_attribute_file_name_their_options():
    attributes = {SHIRT: {"attributes": ["a"], "instruction": "Find me a shirt", "instruction_attributes": ["a"]}}
    (shirt,) = shelf = read_catalogue([record()], attributes)
    for wanted in goals(shelf):
        assert reward(wanted, shirt, dict(zip(wanted.option_names, wanted.options, strict=True))).total == 1.0


def test_the_first_colour_of_the_list_wins_wherever_it_stands():
    assert normalise("violet lavender") == "lavender"
    assert normalise("123alabaster") == "alabaster"
    assert normalise("x-large") == "x-large"
    assert normalise("") == ""
    assert len(COLOURS) == len(set(COLOURS)) == 102


@given(st.text(max_size=30))
def test_normalising_twice_changes_nothing(value):
    assert normalise(normalise(value)) == normalise(value)
