"""WebShop's products: reading the original's files, goals and their price limits, and the generated catalogue."""

import time

import pytest

from dreamgym_envs.core.text import CHARSET
from dreamgym_envs.domains.webshop.catalogue import read_catalogue
from dreamgym_envs.domains.webshop.generator import generate
from dreamgym_envs.domains.webshop.goals import NO_LIMIT, SPLITS, goal_ids, goals_of, split_of
from dreamgym_envs.domains.webshop.products import NO_ATTRIBUTES
from dreamgym_envs.domains.webshop.records import DEFAULT_PRICE, CatalogueError
from dreamgym_envs.domains.webshop.reward import reward
from tests.webshop import INSTRUCTION, SHIRT, catalogue, goals, record


def only(**fields):
    """Return the one product of a catalogue of one record."""
    (product,) = read_catalogue([record(**fields)])
    return product


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_is_brought_into_the_originals_form():
    product = only()
    assert product.query == "men's dress shirts"
    assert product.options == {"color": ("black", "navy | white"), "size": ("small", "x-large")}
    assert product.bullets == ("Machine wash cold.", "Button closure.")
    assert product.attributes == NO_ATTRIBUTES
    assert product.rating == "N.A."


@pytest.mark.parametrize(
    ("pricing", "prices", "tag"),
    [
        ("$24.50", (24.5,), "$24.5"),
        ("$20.66 to $29.20", (20.66, 29.2), "$20.66 to $29.2"),
        ("$1,299.00", (1299.0,), "$1299.0"),
        ("", (DEFAULT_PRICE,), "$100.0"),
        (None, (DEFAULT_PRICE,), "$100.0"),
        ("$1 - $2 - $3", (1.0, 2.0), "$1.0 to $2.0"),
    ],
)
def test_prices(pricing, prices, tag):
    product = only(pricing=pricing)
    assert product.pricing == prices
    assert product.price_tag == tag
    assert prices[0] <= product.price <= prices[-1]


def test_the_price_of_a_range_is_the_same_in_every_run_and_not_the_same_for_all():
    drawn = [only(asin=f"B00000000{i}", pricing="$10 to $20").price for i in range(5)]
    assert drawn == [only(asin=f"B00000000{i}", pricing="$10 to $20").price for i in range(5)]
    assert len(set(drawn)) == 5


def test_records_without_an_id_with_a_long_one_and_repeated_ones_are_passed_over():
    found = read_catalogue([record("nan"), record("B00000000012"), record(), record(name="Another")])
    assert [product.title for product in found] == ["Fernhill Men's Slim Fit Dress Shirt"]


def test_a_single_bullet_point_an_absent_option_and_an_absent_description_are_understood():
    product = only(small_description="One.", customization_options={"Color": None}, full_description=None)
    assert (product.bullets, product.options, product.description) == (("One.",), {}, "")


def test_characters_that_no_observation_may_hold_are_left_out():
    product = only(
        name="Warm \U0001f525 socks\u200b\x07 caf\u00e9", customization_options={"C": [{"value": "\u2764red"}]}
    )
    assert product.title == "Warm socks caf\u00e9"
    assert product.options == {"c": ("red",)}


def test_what_is_longer_than_a_state_may_hold_is_cut():
    product = only(name="n" * 900, customization_options={"o" * 900: [{"value": "v" * 900}]})
    assert (len(product.title), [(len(name), len(v)) for name, (v,) in product.options.items()]) == (500, [(100, 300)])


def test_reviews_make_the_rating():
    reviews = [{"title": "Good", "score": 5, "body": "Yes."}, {"title": "Fine", "score": 4}]
    assert only(reviews=reviews).rating == "4.5"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"asin": 7}, r"product 0, field 'asin': expected a string, found 7"),
        ({"name": None}, r"product 0 \(B000000002\), field 'name': expected a string, found None"),
        ({"query": 3}, r"'query'"),
        ({"category": []}, r"'category'"),
        ({"product_category": None}, r"'product_category'"),
        ({"pricing": "cheap"}, r"field 'pricing': expected a price such as '\$79.93'"),
        ({"pricing": "$"}, r"field 'pricing'"),
        ({"pricing": 12}, r"field 'pricing'"),
        ({"small_description": None}, r"field 'small_description': expected a list of strings"),
        ({"small_description": [1]}, r"'small_description'"),
        ({"customization_options": [1]}, r"field 'customization_options': expected an object of lists"),
        ({"customization_options": {"Color": ["red"]}}, r"'customization_options'"),
        ({"customization_options": {"Color": [{"image": ""}]}}, r"'customization_options'"),
        ({"reviews": [{"score": 3}]}, r"field 'reviews'"),
        ({"reviews": ["good"]}, r"field 'reviews'"),
    ],
)
def test_a_malformed_record_is_named_with_its_field(fields, where):
    with pytest.raises(CatalogueError, match=where):
        only(**fields)


def test_a_missing_field_is_named():
    data = record()
    del data["query"]
    with pytest.raises(CatalogueError, match=r"field 'query': expected a string, found nothing"):
        read_catalogue([data])


@pytest.mark.parametrize(
    ("attributes", "instructions", "where"),
    [
        ({SHIRT: []}, {}, r"attributes of product 0 \(B000000002\): expected an object"),
        ({SHIRT: {"attributes": 3}}, {}, r"attributes of product 0 .*'attributes'"),
        ({SHIRT: {"instruction": "find", "instruction_attributes": None}}, {}, r"'instruction_attributes'"),
        ({}, {SHIRT: "find"}, r"instructions of product 0 .*: expected a list"),
        ({}, {SHIRT: [{"instruction": "find"}]}, r"instruction 0 of product 0 .*'instruction_attributes'"),
        ({}, {SHIRT: [{"instruction_attributes": ["a"]}]}, r"'instruction': expected a string"),
    ],
)
def test_malformed_attributes_and_instructions_are_named(attributes, instructions, where):
    with pytest.raises(CatalogueError, match=where):
        read_catalogue([record()], attributes, instructions)


# --- goals ------------------------------------------------------------------------------------------------------------


def test_a_human_goal_has_the_instruction_without_its_full_stop_and_a_price_limit():
    (goal,) = goals(catalogue())
    assert goal.instruction == f"{INSTRUCTION}, and price lower than {goal.price_upper:.2f} dollars"
    assert (goal.attributes, goal.options, goal.option_names) == (("machine wash",), ("black", "small"), ())
    assert goal.kind == "attributes+options+price"


def test_the_limit_is_never_the_first_of_the_next_four_multiples_of_ten():
    limits = set()
    for i in range(60):
        asin = f"B0000000{i:02}"
        instruction = {asin: [{"instruction": "find", "instruction_attributes": ["a"]}]}
        (goal,) = goals(read_catalogue([record(asin, pricing="$24.50")], {}, instruction))
        limits.add(goal.price_upper)
    assert limits == {40.0, 50.0, 60.0}  # the larger of two of 30, 40, 50, 60


@pytest.mark.parametrize(("pricing", "limited"), [("$979.99", True), ("$980.00", False), ("$2000.00", False)])
def test_of_980_dollars_or_more_there_is_no_limit(pricing, limited):
    instruction = {SHIRT: [{"instruction": "find it", "instruction_attributes": ["a"]}]}
    (goal,) = goals(read_catalogue([record(pricing=pricing)], {}, instruction))
    assert (goal.price_upper < NO_LIMIT) == limited
    assert ("price lower than" in goal.instruction) == limited
    assert ("price" in goal.kind) == limited


def test_a_human_instruction_without_attributes_is_no_goal():
    instruction = {SHIRT: [{"instruction": "find it", "instruction_attributes": []}]}
    assert goals(read_catalogue([record()], {}, instruction)) == []


def test_without_human_instructions_there_is_a_goal_for_each_choice_of_options():
    attributes = {SHIRT: {"attributes": ["a"], "instruction": "Find me a shirts", "instruction_attributes": ["a"]}}
    found = goals(read_catalogue([record()], attributes))
    assert [goal.options for goal in found] == [
        ("black", "small"),
        ("black", "x-large"),
        ("navy | white", "small"),
        ("navy | white", "x-large"),
    ]
    assert found[0].instruction.startswith("Find me a shirts with color: black, and size: small, and price lower than")
    assert found[0].option_names == ("color", "size")
    assert len({goal.id for goal in found}) == 4


@pytest.mark.parametrize("human", [True, False])
def test_the_ids_of_a_products_goals_are_known_without_the_goals(generated, human):
    for product in generated[:100]:
        assert goal_ids(product, human) == [goal.id for goal in goals_of(product, human)]


# --- the generated catalogue ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generated():
    return read_catalogue(*generate())


def test_the_generated_catalogue_is_large_and_varied(generated):
    assert len(generated) == 3000
    assert len({product.category for product in generated}) >= 5
    assert len({product.query for product in generated}) == 60
    assert len({product.title for product in generated}) > 2900
    assert {len(product.pricing) for product in generated} == {1, 2}
    assert any(product.reviews for product in generated) and any(not product.reviews for product in generated)
    assert sum(bool(product.options) for product in generated) > 2500


def test_the_same_seed_gives_the_same_catalogue_and_another_seed_other_products():
    assert generate(seed=3, count=60) == generate(seed=3, count=60)
    assert {p["asin"] for p in generate(seed=3, count=60)[0]}.isdisjoint(p["asin"] for p in generate(seed=4)[0])


def test_every_goal_has_a_perfect_purchase(generated):
    for goal in goals(generated):
        chosen = {
            name: value for name, values in goal.product.options.items() for value in values if value in goal.options
        }
        assert reward(goal, goal.product, chosen).total == 1.0, goal


def test_goals_of_all_kinds_are_there(generated):
    kinds = {goal.kind for goal in goals(generated)}
    assert kinds == {"attributes", "attributes+price", "attributes+options", "attributes+options+price"}


def test_every_attribute_can_be_read_on_the_products_pages(generated):
    for product in generated:
        shown = " ".join((product.title, product.description, *product.bullets)).lower()
        assert all(attribute in shown for attribute in product.attributes)


def test_generated_texts_fit_the_observation_space(generated):
    assert all(
        set(text) <= set(CHARSET)
        for p in generated
        for text in (p.title, p.description, *p.bullets, p.product_category)
    )


def test_products_are_held_out_one_in_ten_for_each_split_and_by_id_alone(generated):
    shares = {split: sum(split_of(p.asin) == split for p in generated) / len(generated) for split in SPLITS}
    assert shares["train"] == pytest.approx(0.8, abs=0.03)
    assert shares["valid"] == pytest.approx(0.1, abs=0.03)
    assert shares["test"] == pytest.approx(0.1, abs=0.03)
    assert split_of("B07DKGJR74") == "test"  # as in every version: recorded data depends on it


def test_it_is_generated_and_read_in_seconds():
    start = time.process_time()
    read_catalogue(*generate())
    assert time.process_time() - start < 8.0
