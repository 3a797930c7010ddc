"""WebShop's files on disk: read once, in parts, opened again as the same catalogue."""

import gzip
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dreamgym_envs.domains.webshop import files
from dreamgym_envs.domains.webshop.catalogue import read_catalogue
from dreamgym_envs.domains.webshop.files import read_list, read_object
from dreamgym_envs.domains.webshop.generator import generate
from dreamgym_envs.domains.webshop.goals import SPLITS
from dreamgym_envs.domains.webshop.records import CatalogueError
from dreamgym_envs.domains.webshop.store import open_store

PRODUCTS, ATTRIBUTES, INSTRUCTIONS = generate(seed=1, count=240)


def write(path, data):
    text = json.dumps(data, ensure_ascii=False).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture(params=[".json", ".json.gz"])
def paths(request, tmp_path):
    data = {"items": PRODUCTS, "attributes": ATTRIBUTES, "human": INSTRUCTIONS}
    return [write(tmp_path / f"{name}{request.param}", content) for name, content in data.items()]


# --- the store --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [True, False])
def test_a_store_is_the_catalogue_that_its_files_describe(paths, people):
    files_ = paths if people else paths[:2]
    expected = read_catalogue(PRODUCTS, ATTRIBUTES, INSTRUCTIONS if people else None)
    for store in (open_store(*files_), open_store(*files_)):  # as it is made, and as it is opened again
        assert len(store) == len(expected)
        assert store.human == expected.human == people
        assert [store[i] for i in range(len(store))] == list(expected)
        assert store.find(PRODUCTS[5]["asin"]) == expected[5]
        for split in SPLITS:
            assert store.goal_ids(split) == expected.goal_ids(split)
            assert store.sold(split).tolist() == expected.sold(split).tolist()
        for query in ("memory foam dog bed", "gluten free", "zzzz", ""):
            sold = expected.sold("test")
            assert store.search_index.search(query, sold) == expected.search_index.search(query, sold)


def test_what_was_read_is_not_read_again_unless_a_file_changes(paths, tmp_path):
    store = tmp_path / "store"
    open_store(*paths, folder=store)
    made = os.stat(store / "products.db").st_mtime_ns
    open_store(*paths, folder=store)
    assert os.stat(store / "products.db").st_mtime_ns == made
    write(paths[0], PRODUCTS[:60])
    assert len(open_store(*paths, folder=store)) == 60
    assert len(open_store(*paths[:2], folder=store)) == 60


def test_a_file_that_cannot_be_read_leaves_no_store_and_spoils_none(paths, tmp_path):
    store = tmp_path / "store"
    open_store(*paths, folder=store)
    broken = write(tmp_path / "broken.json", [*PRODUCTS[:3], {"asin": "B000000000"}])
    with pytest.raises(CatalogueError, match=r"product 3 \(B000000000\), field 'name'"):
        open_store(broken, folder=store)
    assert len(open_store(*paths, folder=store)) == len(PRODUCTS)
    assert not list(tmp_path.glob("store.*"))


def test_a_damaged_store_is_made_again(paths, tmp_path):
    store = tmp_path / "store"
    open_store(*paths, folder=store)
    (store / "origin.json").write_text("{")
    assert len(open_store(*paths, folder=store)) == len(PRODUCTS)


def test_where_nothing_can_be_written_the_error_says_what_to_do(paths, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OSError, match="say with store= where the index may go"):
        open_store(*paths, folder=blocked / "store")


def test_a_folder_that_holds_something_else_is_left_alone(paths, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "holiday.jpg").write_text("")
    with pytest.raises(ValueError, match="is no store of the shop and not empty"):
        open_store(*paths, folder=folder)
    assert (folder / "holiday.jpg").exists()


def test_an_unknown_product_is_not_found(paths):
    store = open_store(*paths)
    with pytest.raises(KeyError):
        store.find("B000000000")
    with pytest.raises(IndexError):
        store[len(store)]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_file_is_reported(paths, missing):
    paths[missing].unlink()
    with pytest.raises(FileNotFoundError):
        open_store(*paths)


# --- lists in parts ---------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    data=st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), max_size=6),
    indent=st.sampled_from([None, 1]),
)
def test_a_list_is_read_the_same_however_it_falls_into_parts(tmp_path_factory, data, indent):
    path = tmp_path_factory.mktemp("list") / "items.json"
    path.write_text(json.dumps(data, indent=indent), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for size in (1, 16, 64, 1 << 20):
            patch.setattr(files, "CHUNK", size)
            # No string may be longer than a part, which in use is a million characters.
            if all(len(json.dumps(item)) <= size for item in data):
                assert list(read_list(path)) == data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "items.json: no JSON array: it ends too early"),
        (b"{}", "it starts with '{}'"),
        (b"[", "no JSON array"),
        (b'[{"a": 1}', "no JSON array"),
        (b'[{"a": 1} {"a": 2}]', "no JSON array: expected , or ]"),
        (b'[{"a": 1},]', "no JSON array"),
        (b'[{"a": }]', "no JSON array"),
        (b'[{"a": "\xff"}]', "no JSON array"),
    ],
)
def test_a_file_that_is_no_list_is_named(tmp_path, content, message):
    path = tmp_path / "items.json"
    path.write_bytes(content)
    with pytest.raises(CatalogueError, match=message.replace("[", r"\[")):
        list(read_list(path))


def test_an_error_far_from_the_end_of_a_part_is_found_without_reading_on(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK", 100)
    path = tmp_path / "items.json"
    path.write_text('[{"a": oops}, ' + "x" * 1_000_000)
    with pytest.raises(CatalogueError, match="no JSON array"):
        list(read_list(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("human.json", b"[]", r"expected an object by asin, found \[\]"),
        ("human.json", b"{", "human.json: no JSON"),
        ("human.json.gz", b"{}", "no JSON"),
    ],
)
def test_a_file_that_is_no_object_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CatalogueError, match=message):
        read_object(path)


def test_a_gzip_file_that_is_none_is_named(tmp_path):
    path = tmp_path / "items.json.gz"
    path.write_bytes(b"[]")
    with pytest.raises(CatalogueError, match="no JSON array"):
        list(read_list(path))
