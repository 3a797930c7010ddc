"""The original's server as an engine: the same episodes as in this process, and what goes wrong with servers."""

import socket
import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote

import numpy as np
import pytest

from dreamgym_envs.assets import asset
from dreamgym_envs.core.schema import Schema
from dreamgym_envs.domains.webshop import grammar, remote, text
from dreamgym_envs.domains.webshop.catalogue import read_catalogue
from dreamgym_envs.domains.webshop.domain import WebShopDomain
from dreamgym_envs.domains.webshop.generator import generate
from dreamgym_envs.domains.webshop.remote import RemoteWebShopEngine
from dreamgym_envs.domains.webshop.shop import Shop
from dreamgym_envs.domains.webshop.site import read_html
from tests.webshop import goals

SCHEMA = Schema.load(asset("schemas", "webshop.json"))
CATALOGUE = read_catalogue(*generate(seed=3, count=240))
GOALS = goals(CATALOGUE)[:40]
WORDINGS = {
    "first": ("&lt; Back to Results", "&lt; Back to Item Page", "Page {0} ({1}-{2}) of {3} total results"),
    "later": ("&lt; Prev", "&lt; Prev", "Page {0} (Total results: {3})"),
}


class Site(BaseHTTPRequestHandler):
    """The original's pages around a shop of this process; addresses say which action they stand for."""

    shops: dict[str, Shop] = {}  # noqa: RUF012
    wording = "first"
    fault = ""
    searched: list[str] = []  # noqa: RUF012

    def do_GET(self):
        if self.fault:
            self.fail()
            return
        session, _, action = self.path.lstrip("/").partition("/do/")
        if action:
            self.page(session, self.shops[session].act(unquote(action)).page)
        else:
            self.shops[session] = Shop(CATALOGUE, "test")
            self.page(session, self.shops[session].enter(GOALS[int(session.removeprefix("fixed_"))]))

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode(), keep_blank_values=True)
        if self.fault:
            self.fail()
            return
        self.searched.append(form["search_query"][0])
        self.answer(302, Location=f"{self.path}/do/{quote('search[' + form['search_query'][0] + ']', safe='')}")

    def fail(self):
        if self.fault == "elsewhere":
            self.answer(302, Location="http://127.0.0.2:1/fixed_0")
        elif self.fault == "status":
            self.answer(500, "<h1>Internal Server Error</h1>")
        elif self.fault == "torn":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.close_connection = True
        elif self.fault == "no HTTP":
            self.wfile.write(b"SSH-2.0\r\n")
        elif self.fault == "silent":
            threading.Event().wait(1)
        else:
            self.answer(200, {"large": "x" * 10_000, "other": "<html><h1>It works!</h1></html>"}[self.fault])

    def answer(self, status, body="", **headers):
        data = body.encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def page(self, session, page):
        to_results, to_item, results = WORDINGS[self.wording]

        def button(label, action, kind="btn"):
            address = f"/{session}/do/{quote(action, safe='')}" if action else f"/{session}"
            return f'<form method="post" action="{address}"><button class="{kind}">{label}</button></form>'

        def link(value):
            return escape(f"/{session}/do/{quote(f'click[{value}]', safe='')}")

        parts = [f'<div id="instruction-text"><h4 style="x">Instruction: {escape(page.instruction)}</h4>']
        parts += ["<h4>Current Query: ['x']</h4></div>", button("Back to Search", "")]
        if page.kind == "search":
            parts = ["<h2>WebShop</h2>", f"<h4>Instruction: <br>{escape(page.instruction)}</h4>"]
            parts += [f'<form method="post" action="/{session}"><input name="search_query" required/>']
            parts += ['<button class="btn"><i class="icon"></i>Search</button></form>']
        elif page.kind == "results":
            first = page.number * 10 - 9
            parts += [f"<h1>Results</h1><p>{results.format(page.number, first, page.number * 10, page.total)}</p>"]
            parts += [button("&lt; Prev", "click[< prev]")] * (page.number > 1)
            parts += [button("Next &gt;", "click[next >]")] * page.has_next()
            parts += ['<!-- <h4 class="product-asin"><a class="product-link" href="/old">B0OLD</a></h5> -->']
            for item in page.listings:
                parts += [f'<h4 class="mt-0 product-asin"><a class="product-link" href="{link(item.asin)}">{item.asin}']
                parts += [f'</a></h4><h4 class="product-title">{escape(item.title)}</h5>']
                parts += [f'<div class="d-flex"><h5 class="my-2 product-price">{item.price}</h6></div>']
        elif page.kind == "item":
            parts += [button(to_results, "click[< prev]"), '<img src="x">']
            for name, values in page.options:
                parts += [f"<h4>{escape(name)}</h4>"]
                for value in values:
                    parts += [f'<input type="radio" name="{escape(name)}" value="{escape(value)}"']
                    parts += [f' data-url="{link(value)}"><label>{escape(value)}</label>']
            parts += [f"<h2>{escape(page.title)}</h2><h4>Price: {page.price}</h4><h4>Rating: {page.rating}</h4>"]
            parts += [button(name, f"click[{name}]") for name in ("Description", "Features", "Reviews", "Attributes")]
            parts += [button("Buy Now", "click[buy now]", "btn btn-lg purchase"), "<script>let a = '<h2>';</script>"]
        elif page.kind == "detail":
            parts += [button(to_item, "click[< prev]"), "<ul>"]
            parts += [f'<li><p class="product-info"> {escape(line)}</p></li>' for line in page.lines]
        else:
            parts = ["<h1>Thank you for shopping with us!</h1><h3>Your code: </h3><p><pre>x</pre> (Paste it.)</p>"]
            parts += [f'<h3 id="reward">Your score (min 0.0, max 1.0)<pre>{page.score}</pre></h3>']
        self.answer(200, f"<!DOCTYPE html><html><head><title>x</title></head><body>{' '.join(parts)}</body></html>")

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    class Own(Site):
        shops: dict[str, Shop] = {}  # noqa: RUF012
        searched: list[str] = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    Own.url = f"http://127.0.0.1:{server.server_port}"
    yield Own
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("wording", list(WORDINGS))
def test_an_episode_over_http_is_the_episode_in_this_process(site, wording):
    site.wording = wording
    engine, shop = RemoteWebShopEngine(site.url, count=len(GOALS)), Shop(CATALOGUE, "test")
    rng = np.random.default_rng(0)
    kinds, rewards = set(), []
    for number in range(20):
        task = engine.reset(rng, f"fixed_{number}")
        assert task.instruction == GOALS[number].instruction
        assert task.initial == text.initial_state(shop.enter(GOALS[number]))
        state = task.initial
        for _ in range(25):
            offered = (*grammar.candidates(task, state), "click[nothing of the kind]", "jump")
            action = offered[int(rng.integers(len(offered)))]
            outcome = shop.act(action)
            expected = text.observe(state, action, outcome.page)
            state, reward, terminated = engine.step(action)
            assert state == expected
            SCHEMA.validate(state)
            assert reward == (outcome.reward.total if outcome.reward is not None else 0.0)
            assert terminated == outcome.done
            kinds.add(state.public["page"])
            if terminated:
                rewards.append(reward)
                break
    assert kinds == {"search", "results", "item", "description", "features", "reviews", "done"}
    assert any(rewards)


def test_tasks_are_the_servers_goals_by_number_and_tell_no_more_than_it_shows(site):
    engine = RemoteWebShopEngine(f"{site.url}/", count=3)
    assert engine.task_ids == ("fixed_0", "fixed_1", "fixed_2")
    assert len(RemoteWebShopEngine(site.url).task_ids) == 500
    task = engine.reset(np.random.default_rng(0))
    assert task.id in engine.task_ids and task.metadata == {}
    assert task.family == "with price"
    with pytest.raises(ValueError, match="no goal 'fixed_3'; there are 3"):
        engine.reset(np.random.default_rng(0), "fixed_3")


def test_the_domain_opens_a_server_by_its_address(site):
    engine = WebShopDomain().engine(url=site.url, count=2)
    assert isinstance(engine, RemoteWebShopEngine) and len(engine.task_ids) == 2


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"url": "http://127.0.0.1:3000", "split": "test"}, "url, count, timeout"),
        ({"color": 1}, "products, attributes,"),
    ],
)
def test_an_unknown_option_is_answered_with_those_there_are(options, known):
    with pytest.raises(ValueError, match=rf"no option '(split|color)'; it has {known}"):
        WebShopDomain().engine(**options)


def test_keywords_reach_the_server_without_what_its_addresses_cannot_hold(site):
    engine = RemoteWebShopEngine(site.url, count=1)
    engine.reset(np.random.default_rng(0))
    engine.step("search[<c> Red/blue shirt?]")
    assert site.searched == ["c red blue shirt?"]


FAULTS = {
    "status": "status 500",
    "torn": "no answer .*torn off",
    "no HTTP": "no answer .*run ./run_dev.sh",
    "silent": r"no page after 0.2 s; give it longer with timeout=",
    "large": "larger than 5000 bytes",
    "other": "no page of WebShop: it shows no instruction",
    "elsewhere": "redirects to another server, http://127.0.0.2:1/fixed_0",
}


@pytest.mark.parametrize(("fault", "message"), FAULTS.items())
def test_a_failure_is_told_with_its_address_and_the_next_episode_starts_over(site, fault, message, monkeypatch):
    monkeypatch.setattr(remote, "LONGEST_ANSWER", 5000)
    engine, rng = RemoteWebShopEngine(site.url, count=1, timeout=0.2), np.random.default_rng(0)
    # Given an episode, when the server fails in its midst
    engine.reset(rng)
    site.fault = fault
    with pytest.raises(ConnectionError, match=message) as failure:
        engine.step("search[shirt]")
    assert str(failure.value).startswith(site.url)
    # then the episode is over,
    with pytest.raises(RuntimeError, match="call reset first"):
        engine.step("search[shirt]")
    with pytest.raises(ConnectionError, match=message):
        engine.reset(rng)
    # and the next one is as good as any.
    site.fault = ""
    engine.reset(rng)
    engine.step("jump")


def test_a_server_that_is_not_there_is_named_with_what_to_run():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionError, match=rf"{url}/fixed_0: no answer \(.*refused.*\); run ./run_dev.sh"):
        RemoteWebShopEngine(url, count=1).reset(np.random.default_rng(0))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a/b", "127.0.0.1:3000", "http://", "http://a:b@c", "http://a:x", 3]
)
def test_only_addresses_of_web_servers_are_taken(url):
    with pytest.raises(ValueError, match="expected a server's address such as"):
        RemoteWebShopEngine(url)


@pytest.mark.parametrize("options", [{"count": 0}, {"count": "3"}, {"timeout": 0}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        RemoteWebShopEngine("http://127.0.0.1:3000", **options)


@pytest.mark.parametrize("link", ["http://127.0.0.2:1/x", "file:///etc/passwd", "//127.0.0.2:1/x"])
def test_links_to_elsewhere_are_not_followed(site, link, monkeypatch):
    monkeypatch.setattr(remote, "quote", lambda address, safe: link if "do" in address else address)
    engine = RemoteWebShopEngine(site.url, count=1)
    engine.reset(np.random.default_rng(0))
    state, _, _ = engine.step("search[shirt]")
    with pytest.raises(ConnectionError, match="leads away from"):
        engine.step(f"click[{state.public['items'][0]['id']}]")


@pytest.mark.parametrize("score", ["", "nan", "2.0", "much"])
def test_a_last_page_without_a_score_is_no_page(score):
    with pytest.raises(ValueError, match="no score between 0 and 1"):
        read_html(f"<h1>Thank you for shopping with us!</h1><h3>Your score (min 0.0, max 1.0)<pre>{score}</pre></h3>")
