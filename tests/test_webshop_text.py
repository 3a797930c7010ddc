"""WebShop's texts, actions and states: pages read back, what the grammar takes, how a page becomes the next state."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.assets import asset
from dreamgym_envs.core.delta import apply_delta, diff
from dreamgym_envs.core.knowledge import revealed
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop import grammar, instructions, text
from dreamgym_envs.domains.webshop.pages import OPTION_NAMES, Listing, Page, read, render
from dreamgym_envs.domains.webshop.views import has_next, listed, place, results, results_name, results_row
from tests.webshop import INSTRUCTION, SHIRT, open_shop

SCHEMA = Schema.load(asset("schemas", "webshop.json"))
DATA = Path(__file__).parents[2] / "shared" / "data" / "webshop" / "sharegpt_webshop.jsonl"
ASIN = SHIRT.lower()

# --- pages as texts ---------------------------------------------------------------------------------------------------

RESULTS = (
    "Instruction: [SEP] find me a shirt [SEP] Back to Search [SEP] Page 2 (Total results: 50) [SEP] < Prev [SEP] "
    "Next > [SEP] B07T3VMGDG [SEP] Tuxedo Cat Tee [SEP] $23.99 [SEP] B07JVVDJ6L [SEP] T-Shirt [SEP] $20.66 to $29.2"
)
ITEM = (
    "Instruction: [SEP] find me a shirt [SEP] Back to Search [SEP] < Prev [SEP] fit type [SEP] men [SEP] women [SEP] "
    "color [SEP] black | white [SEP] red [SEP] Tuxedo Cat Tee [SEP] Price: $23.99 [SEP] Rating: N.A. [SEP] Description "
    "[SEP] Features [SEP] Reviews [SEP] Buy Now"
)


def test_the_search_page_is_read():
    assert read("WebShop [SEP] Instruction: [SEP] find me a shirt [SEP] Search") == Page("search", "find me a shirt")


def test_a_page_of_results_is_read():
    page = read(RESULTS)
    assert (page.kind, page.instruction, page.number, page.total) == ("results", "find me a shirt", 2, 50)
    assert page.listings == (
        Listing("B07T3VMGDG", "Tuxedo Cat Tee", "$23.99"),
        Listing("B07JVVDJ6L", "T-Shirt", "$20.66 to $29.2"),
    )


def test_an_items_page_is_read():
    page = read(ITEM)
    assert page.options == (("fit type", ("men", "women")), ("color", ("black | white", "red")))
    assert (page.title, page.price, page.rating) == ("Tuxedo Cat Tee", "$23.99", "N.A.")


def test_the_first_string_of_the_options_is_a_name_though_nobody_knows_it():
    page = read(ITEM.replace("fit type", "cut of the cloth"))
    assert page.options[0] == ("cut of the cloth", ("men", "women"))


def test_an_item_without_options_is_read():
    assert read(
        ITEM.replace("fit type [SEP] men [SEP] women [SEP] color [SEP] black | white [SEP] red [SEP] ", "")
    ) == (Page("item", "find me a shirt", title="Tuxedo Cat Tee", price="$23.99", rating="N.A."))


def test_a_sub_page_is_read():
    page = read("Instruction: [SEP] find it [SEP] Back to Search [SEP] < Prev [SEP] Soft. [SEP] Warm.")
    assert page == Page("detail", "find it", lines=("Soft.", "Warm."))


def test_the_last_page_is_read():
    page = read(
        "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your MTurk interface.) [SEP] "
        "Purchased [SEP] asin [SEP] B07T3VMGDG [SEP] Your score (min 0.0, max 1.0) [SEP] 0.75 [SEP] Reward Details"
    )
    assert page == Page("done", score=0.75)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "WebShop",
        "Nothing happens.",
        "Instruction: [SEP] find it",
        "Instruction: [SEP] find it [SEP] Buy",
        "Instruction: [SEP] find it [SEP] Back to Search",
        "Instruction: [SEP] find it [SEP] Back to Search [SEP] Home",
        RESULTS.removesuffix(" [SEP] $20.66 to $29.2"),
        RESULTS.replace("$23.99", "cheap"),
        ITEM.replace("Price: ", ""),
        ITEM.replace("Rating: ", ""),
        "Thank you for shopping with us! [SEP] Your code:",
        "Thank you for shopping with us! [SEP] Your score (min 0.0, max 1.0) [SEP] high",
        "Thank you for shopping with us! [SEP] Your score (min 0.0, max 1.0)",
    ],
)
def test_a_text_that_shows_no_page_is_refused(wrong):
    with pytest.raises(ValueError, match=r"no page of the shop|no score"):
        read(wrong)


PIECES = ITEM.split(" [SEP] ") + RESULTS.split(" [SEP] ")


@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=12).map(" [SEP] ".join))
def test_any_text_is_read_or_refused_and_never_fails_otherwise(anything):
    try:
        page = read(anything)
    except ValueError as error:
        assert str(error)
    else:
        assert page.kind in ("search", "results", "item", "detail", "done")


RESERVED = {"Search", "Back to Search", "< Prev", "Next >", "WebShop", "Buy Now", "Description", "Features", "Reviews"}
strings = (
    st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), min_size=1, max_size=30)
    .map(lambda value: " ".join(value.split()))
    .filter(lambda value: value and "[SEP]" not in value and value not in RESERVED | OPTION_NAMES)
)
prices = st.sampled_from(["$24.5", "$100.0", "$20.66 to $29.2"])
listings = st.builds(Listing, st.from_regex(r"B0[0-9A-Z]{8}", fullmatch=True), strings, prices)
options = st.dictionaries(st.sampled_from(sorted(OPTION_NAMES)), st.lists(strings, min_size=1, max_size=4).map(tuple))
pages = st.one_of(
    st.builds(Page, st.just("search"), strings),
    st.builds(
        Page,
        st.just("results"),
        strings,
        st.integers(1, 5),
        st.integers(0, 50),
        st.lists(listings, max_size=10).map(tuple),
    ),
    st.builds(
        lambda instruction, title, price, found: Page(
            "item", instruction, title=title, price=price, rating="N.A.", options=tuple(found.items())
        ),
        strings,
        strings,
        prices,
        options,
    ),
    st.builds(
        lambda instruction, lines: Page("detail", instruction, lines=tuple(lines)),
        strings,
        st.lists(strings, max_size=5),
    ),
    st.builds(lambda score: Page("done", score=score), st.floats(0, 1)),
)


@given(pages)
def test_a_page_is_what_its_text_reads_as(page):
    assert read(render(page)) == page


# --- actions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "parsed"),
    [
        ("search[Red Shirt]", Action("search", ("red shirt",))),
        ("search[ ]", Action("search", (" ",))),
        ("click[Back to Search]", Action("back")),
        ("click[Next >]", Action("next")),
        ("click[< Prev]", Action("prev")),
        ("click[Description]", Action("description")),
        ("click[features]", Action("features")),
        ("click[REVIEWS]", Action("reviews")),
        ("click[Buy Now]", Action("buy")),
        ("click[B07T3VMGDG]", Action("click", ("b07t3vmgdg",))),
        ("click[black | White]", Action("click", ("black | white",))),
        (" click[small] ", Action("click", ("small",))),
        ("click[small] I think", Action("click", ("small",))),
        ("search[a]b]", Action("search", ("a]b",))),
    ],
)
def test_actions_are_read_as_the_original_reads_them(action, parsed):
    assert grammar.parse(action) == parsed


@pytest.mark.parametrize(
    "action",
    ["", "search", "search[]", "click[]", "click[search]", "Search[shirt]", "buy[now]", "click(small)", "click[a [b]]",
     "search[red\nshirt]", "I will click[small]"],
)  # fmt: skip
def test_what_is_no_action_is_refused(action):
    assert grammar.parse(action) is None


@given(st.text(max_size=40))
def test_any_text_is_an_action_or_not_and_never_fails(anything):
    action = grammar.parse(anything)
    assert action is None or action.verb in {"search", "click", *grammar.BUTTONS.values()}


# --- instructions -----------------------------------------------------------------------------------------------------

AMAZON = (
    "Find me machine wash men's tuxedo shirts with cotton heather, needle sleeve, classic fit with color: black | "
    "athletic heather, and fit type: women, and size: medium, and price lower than 60.00 dollars"
)


@pytest.mark.parametrize(
    ("instruction", "kind", "pieces"),
    [
        (
            AMAZON,
            "machine wash men's tuxedo shirts",
            ("machine wash men's tuxedo shirts", "cotton heather", "needle sleeve", "classic fit"),
        ),
        (
            "i need a long lasting, alcohol free shampoo for men",
            "alcohol free shampoo",
            ("long lasting", "alcohol free shampoo", "men"),
        ),
        (
            "i am looking for a slim fit shirt that is machine washable. the size should be x-large, and price lower "
            "than 40.00 dollars",
            "slim fit shirt",
            ("slim fit shirt", "machine washable", "x-large"),
        ),
        ("mug", "mug", ("mug",)),
        ("", "", ()),
    ],
)
def test_an_instruction_is_cut_into_kind_and_requirements(instruction, kind, pieces):
    assert instructions.kind(instruction) == kind
    assert instructions.phrases(instruction) == pieces


@pytest.mark.parametrize(
    ("instruction", "limit"),
    [(AMAZON, 60.0), ("find me a mug, and price lower than 20.50 dollars.", 20.5), ("find me a mug", None), ("", None)],
)
def test_the_price_limit_is_read(instruction, limit):
    assert instructions.price_limit(instruction) == limit


def test_queries_are_the_kind_alone_with_each_requirement_and_the_whole_instruction_without_its_price():
    found = instructions.queries(AMAZON)
    assert found[0] == "machine wash men's tuxedo shirts"
    assert "needle sleeve machine wash men's tuxedo shirts" in found
    assert found[-1].startswith("find me machine wash") and "price" not in found[-1]
    assert len(found) == len(set(found)) <= instructions.MOST_QUERIES


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        ("Tuxedo Shirts", ("tuxedo shirts",)),
        ("Shirts", ()),
        ("Men's Tuxedo Shirts, Machine Wash", ("machine wash", "men's tuxedo shirts")),
        ("a needle  sleeve and CLASSIC FIT", ("needle sleeve", "classic fit")),
        ("needle", ()),
        ("", ()),
    ],
)
def test_evidence_is_what_a_text_has_of_the_instruction(shown, seen):
    assert instructions.evidence(AMAZON, shown) == seen


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_instruction_gives_few_queries_and_evidence_from_what_is_shown(instruction, shown):
    queries = instructions.queries(instruction)
    assert len(queries) <= instructions.MOST_QUERIES
    assert all(grammar.parse(f"search[{query}]") == Action("search", (query,)) for query in queries)
    for words in instructions.evidence(instruction, shown):
        assert words in " ".join(shown.lower().split())


# --- states -----------------------------------------------------------------------------------------------------------


def play(*actions: str) -> State:
    """Return the state after actions in the small shop; all on the way fit the schema and follow by deltas."""
    shop, goal = open_shop()
    state = text.initial_state(shop.enter(goal))
    SCHEMA.validate(state)
    for action in actions:
        following = text.observe(state, action, shop.act(action).page)
        SCHEMA.validate(following)
        assert apply_delta(SCHEMA, state, diff(SCHEMA, state, following)) == following
        state = following
    return state


def item(state: State, key: str = ASIN) -> dict:
    return next(row for row in state.public["items"] if row["id"] == key)


ONE_SHOP = open_shop()
SEARCH, BROAD, OPEN = "search[fernhill shirt]", "search[dress shirt]", f"click[{SHIRT}]"


def test_the_first_state_knows_nothing():
    state = play()
    assert (state.public["page"], state.public["items"], state.public["feedback"]) == ("search", (), text.START)


def test_an_episode_does_not_start_on_another_page():
    with pytest.raises(ValueError, match="starts on the search page"):
        text.initial_state(Page("results"))


def test_a_search_shows_the_first_page_of_its_results_and_remembers_it():
    state = play(BROAD)
    public = state.public
    assert (public["page"], public["query"], public["page_number"]) == ("results", "dress shirt", 1)
    (row,) = public["results"]
    assert (row["name"], row["total"], len(row["items"])) == ("page 1 of dress shirt", 25, 10)
    # Its items are new, so all that is known of them is what the page shows; titles are in lower case
    assert [found["id"] for found in public["items"]] == list(row["items"])
    assert item(state) == {
        "id": ASIN,
        "title": "fernhill men's slim fit dress shirt",
        "price": "$24.5",
        "status": "listed",
        "options": (),
        "attributes": (),
        "read": (),
    }


def test_pages_that_were_seen_stay_known():
    second = play("search[shirt]", "click[next >]")
    assert [row["name"] for row in second.public["results"]] == ["page 1 of shirt", "page 2 of shirt"]
    assert len(second.public["items"]) == 20
    # The way back shows the page that is known, and adds nothing
    first = play("search[shirt]", "click[next >]", "click[< prev]")
    assert first.public["page_number"] == 1
    assert (first.public["items"], first.public["results"]) == (second.public["items"], second.public["results"])
    assert [row["id"] for row in listed(first)] == list(second.public["results"][0]["items"])


def test_a_search_that_was_done_before_shows_what_it_showed():
    once, twice = play(BROAD, "search[mug]"), play(BROAD, "search[mug]", BROAD)
    assert (twice.public["items"], twice.public["results"]) == (once.public["items"], once.public["results"])
    assert results(twice) == results(play(BROAD))


def test_items_that_another_search_shows_again_are_not_added_again():
    before, after = play("search[shirt]"), play("search[shirt]", BROAD)
    assert len(after.public["results"]) == 2
    again = set(results(before)["items"]) & set(results(after)["items"])
    assert again
    assert len(after.public["items"]) == 20 - len(again)


def test_a_page_is_found_by_its_search_and_number():
    state = play("search[shirt]", "click[next >]")
    key = results(state)["items"][3]
    assert results_row(state, results_name("shirt", 2)) == results(state)
    assert results_row(state, results_name("shirt", 3)) is None
    assert (place(state, key), place(state, "b0000000m1")) == (2, 0)
    assert has_next(state) and not has_next(play("search[shirt]", "click[next >]", "click[next >]"))
    # Another search has pages of its own
    assert place(play("search[shirt]", "click[next >]", "search[mug]"), key) == 0


def test_opening_an_item_reveals_its_options_and_opening_it_again_nothing():
    before, after = play(SEARCH), play(SEARCH, OPEN)
    assert revealed(SCHEMA, before, after) == {("items", ASIN, "options")}
    assert item(after)["options"] == (
        {"name": "color", "values": ("black", "navy | white")},
        {"name": "size", "values": ("small", "x-large")},
    )
    assert after.public["open"] == (ASIN,)
    again = play(SEARCH, OPEN, "click[< prev]", OPEN)
    assert again == after


def test_a_chosen_option_is_in_the_state_though_the_text_does_not_show_it():
    state = play(SEARCH, OPEN, "click[black]", "click[small]", "click[navy | white]")
    assert state.public["chosen"] == (
        {"option": "color", "value": "navy | white"},
        {"option": "size", "value": "small"},
    )
    assert state.public["feedback"] == "You choose navy | white."


def test_what_the_pages_bear_out_of_the_instruction_is_noted():
    opened = play(SEARCH, OPEN)
    assert item(opened)["attributes"] == ("dress shirt",)
    read_on = play(SEARCH, OPEN, "click[features]")
    assert item(read_on)["attributes"] == ("dress shirt", "machine wash")
    assert item(read_on)["read"] == ("features",)
    assert read_on.public["text"] == "machine wash cold. button closure."


def test_what_customers_say_bears_out_nothing():
    assert item(play(SEARCH, OPEN, "click[reviews]"))["attributes"] == item(play(SEARCH, OPEN))["attributes"]


def test_leaving_a_sub_page_keeps_options_and_leaving_an_item_drops_them():
    kept = play(SEARCH, OPEN, "click[black]", "click[description]", "click[< prev]")
    assert (kept.public["page"], kept.public["text"], len(kept.public["chosen"])) == ("item", "", 1)
    dropped = play(SEARCH, OPEN, "click[black]", "click[< prev]")
    assert (dropped.public["page"], dropped.public["open"], dropped.public["chosen"]) == ("results", (), ())


def test_the_way_back_to_the_search_page_closes_the_item_and_forgets_nothing():
    before, after = play(BROAD, OPEN, "click[black]"), play(BROAD, OPEN, "click[black]", "click[back to search]")
    closed = {"page": "search", "query": "", "page_number": 0, "open": (), "chosen": ()}
    assert after.public == {**before.public, **closed, "feedback": "You are back at the search."}


def test_the_way_back_to_the_results_closes_the_item_and_forgets_nothing():
    before, after = play(BROAD, OPEN, "click[black]"), play(BROAD, OPEN, "click[black]", "click[< prev]")
    closed = {"page": "results", "open": (), "chosen": ()}
    assert after.public == {**before.public, **closed, "feedback": "You are back at the results."}


@pytest.mark.parametrize("page", [(), ("click[features]",)])
def test_a_search_from_an_item_closes_it(page):
    state = play(BROAD, OPEN, "click[black]", *page, "search[mug]")
    assert (state.public["open"], state.public["chosen"], state.public["text"]) == ((), (), "")
    assert item(state)["status"] == "opened"


def test_an_item_that_is_found_again_keeps_what_was_known_of_it():
    before = play(SEARCH, OPEN, "click[features]", "click[back to search]")
    after = play(SEARCH, OPEN, "click[features]", "click[back to search]", BROAD)
    assert item(after) == item(before)
    assert item(after)["read"] == ("features",)
    assert item(after)["options"]


def test_after_a_purchase_the_bought_item_and_its_options_are_still_there():
    state = play(SEARCH, OPEN, "click[black]", "click[buy now]")
    assert (state.public["page"], state.public["open"], len(state.public["chosen"])) == ("done", (ASIN,), 1)
    assert state.public["feedback"] == f"You buy {ASIN}."


@pytest.mark.parametrize(
    ("before", "action"),
    [
        ((), "click[buy now]"),
        ((), "click[back to search]"),
        ((), "fly"),
        ((SEARCH,), "click[description]"),
        ((SEARCH,), "click[nothing]"),
        (("search[mug]",), "click[next >]"),
        ((SEARCH, OPEN), "click[purple]"),
        ((SEARCH, OPEN), "click[next >]"),
        ((SEARCH, OPEN, "click[features]"), "click[buy now]"),
        ((SEARCH, OPEN, "click[features]"), "search[]"),
    ],
)
def test_after_what_is_impossible_only_the_feedback_differs(before, action):
    failed = play(*before, action)
    assert failed.public == {**play(*before).public, "feedback": grammar.FAILURE}


def test_a_search_for_blanks_finds_nothing():
    state = play("search[ ]")
    assert (state.public["query"], state.public["feedback"]) == ("", "Nothing is found.")
    assert state.public["results"] == ({"name": "page 1 of ", "total": 0, "items": ()},)


def test_of_two_queries_that_are_alike_once_they_are_cut_the_page_shown_last_is_remembered():
    # Given a query so long that what tells it from another is cut off
    long = "fly " * 200
    state = play(f"search[{long}]", f"search[{long} mug]")
    # Then the state has what the shop shows now, so that it can be clicked
    assert len(state.public["results"]) == 1
    assert results(state)["items"] == ("b0000000m1",)
    assert play(f"search[{long}]", f"search[{long} mug]", "click[b0000000m1]").public["open"] == ("b0000000m1",)


def test_title_and_price_stay_as_they_were_first_shown():
    page = Page("results", INSTRUCTION, 1, 1, (Listing(SHIRT, "Shirt", "$9.0"),))
    state = text.observe(play(), "search[a]", page)
    again = Page("results", INSTRUCTION, 1, 1, (Listing(SHIRT, "SHIRT!", "$8.0"),))
    state = text.observe(state, "search[b]", again)
    state = text.observe(state, OPEN, Page("item", INSTRUCTION, title="Dress Shirt", price="$7.0", rating="N.A."))
    assert (item(state)["title"], item(state)["price"], item(state)["attributes"]) == ("shirt", "$9.0", ())


ANYTHING = (
    "search[shirt]", BROAD, "search[mug]", "click[next >]", "click[< prev]", OPEN, "click[features]", "click[black]",
    "click[back to search]",
)  # fmt: skip


@given(st.lists(st.sampled_from(ANYTHING), max_size=20))
def test_whatever_is_done_what_was_shown_stays_and_the_same_search_shows_the_same(actions):
    shop, goal = ONE_SHOP
    state = text.initial_state(shop.enter(goal))
    shown: dict[str, tuple[str, ...]] = {}
    for action in actions:
        following = text.observe(state, action, shop.act(action).page)
        SCHEMA.validate(following)
        assert apply_delta(SCHEMA, state, diff(SCHEMA, state, following)) == following
        for name, fixed in (("items", ("id", "title", "price")), ("results", ("name", "total", "items"))):
            old, new = state.public[name], following.public[name]
            assert [[row[part] for part in fixed] for row in new[: len(old)]] == [
                [row[part] for part in fixed] for row in old
            ]
        state = following
        if state.public["page"] == "results":
            row = results(state)
            assert shown.setdefault(row["name"], row["items"]) == row["items"]
            assert len(listed(state)) == len(row["items"])


@pytest.mark.parametrize(
    ("action", "page"),
    [
        (SEARCH, Page("search")),
        ("click[nothing]", Page("done")),
        ("click[buy now]", Page("results")),
    ],
)
def test_a_page_that_is_no_answer_is_refused(action, page):
    with pytest.raises(ValueError, match="is shown"):
        text.observe(play(), action, page)


def test_a_long_query_and_a_long_text_are_cut_to_what_the_schema_allows():
    assert len(play(f"search[{'shirt ' * 200}]").public["query"]) <= 512
    state = play(SEARCH, OPEN)
    SCHEMA.validate(text.observe(state, "click[features]", Page("detail", INSTRUCTION, lines=("word " * 2000,))))


def test_the_texts_of_the_original_give_the_states_of_the_shop():
    shop, goal = open_shop()
    page = shop.enter(goal)
    ours, theirs = text.initial_state(page), text.initial_state(read(render(page)))
    for action in (BROAD, "click[next >]", "click[< prev]", OPEN, "click[black]", "click[features]",
                   "click[< prev]", "click[nothing]", "click[< prev]", SEARCH, OPEN, "click[buy now]"):  # fmt: skip
        page = shop.act(action).page
        ours, theirs = text.observe(ours, action, page), text.observe(theirs, action, read(render(page)))
        assert theirs == ours, action


@pytest.mark.skipif(not DATA.exists(), reason="recorded episodes are not here")
def test_recorded_episodes_of_the_original_are_read():
    episodes = 0
    for line in DATA.read_text(encoding="utf-8").splitlines()[:150]:
        turns = [turn["value"] for turn in json.loads(line)["conversations"][2:]]
        state = text.initial_state(read(turns[0]))
        for answer, shown in zip(turns[1::2], turns[2::2], strict=False):
            action = answer.partition("Action:")[2].strip()
            state = text.observe(state, action, read(shown))
            SCHEMA.validate(state)
        episodes += state.public["page"] == "item"
    assert episodes > 100  # they end before the purchase is answered


# --- candidates -------------------------------------------------------------------------------------------------------

TASK = Task("t", INSTRUCTION, State({}))


def offered(*actions: str) -> tuple[str, ...]:
    return grammar.candidates(TASK, play(*actions))


def test_on_the_search_page_queries_are_offered():
    assert offered() == tuple(f"search[{query}]" for query in instructions.queries(INSTRUCTION))


def test_among_results_items_and_buttons_are_offered():
    found = offered("search[shirt]", "click[next >]")
    assert len(found) == 13
    assert found[-3:] == ("click[next >]", "click[< prev]", "click[back to search]")
    assert "click[< prev]" not in offered("search[shirt]")
    assert offered("search[mug]") == ("click[b0000000m1]", "click[back to search]")


def test_of_an_item_what_was_read_and_what_is_chosen_is_not_offered_again():
    assert offered(SEARCH, OPEN) == (
        "click[buy now]",
        "click[description]",
        "click[features]",
        "click[reviews]",
        "click[< prev]",
        "click[back to search]",
        "click[black]",
        "click[navy | white]",
        "click[small]",
        "click[x-large]",
    )
    found = offered(SEARCH, OPEN, "click[features]", "click[< prev]", "click[black]")
    assert not {"click[features]", "click[black]"} & set(found)


def test_of_a_sub_page_the_ways_back_are_offered():
    assert offered(SEARCH, OPEN, "click[features]") == ("click[< prev]", "click[back to search]")


def test_of_too_many_values_those_that_the_instruction_has_words_of_come_first():
    state = play(SEARCH, OPEN)
    values = (*(f"shade {i}" for i in range(200)), "dress blue", "odd [value]")
    many = {**item(state), "options": ({"name": "color", "values": values},)}
    found = grammar.candidates(TASK, State({**state.public, "items": (many,)}))
    assert len(found) == grammar.MAX_CANDIDATES
    assert found[6] == "click[dress blue]"


@pytest.mark.parametrize(
    "before", [(), ("search[shirt]",), ("search[zzzz]",), (SEARCH, OPEN), (SEARCH, OPEN, "click[features]")]
)
def test_every_candidate_is_in_the_grammar_and_changes_the_page_or_the_options(before):
    found = offered(*before)
    assert len(found) == len(set(found)) > 0
    for action in found:
        assert grammar.parse(action) is not None
        assert play(*before, action).public["feedback"] != grammar.FAILURE
