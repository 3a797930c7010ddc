"""The original's own server behind the domain's contract: episodes over HTTP, states as from the shop in this process.

The server is github.com/princeton-nlp/WebShop's `web_agent_site.app` (`./run_dev.sh`, port 3000). Its session
"fixed_<n>" has goal n; of its goals, the first 500 are the test goals. What the goal asks for is known there alone.
"""

import re
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import numpy as np

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Action
from dreamgym_envs.domains.webshop import text
from dreamgym_envs.domains.webshop.grammar import parse
from dreamgym_envs.domains.webshop.instructions import price_limit
from dreamgym_envs.domains.webshop.site import SitePage, read_html

__all__ = ["LONGEST_ANSWER", "TEST_GOALS", "RemoteWebShopEngine"]

TEST_GOALS = 500
"""Goals that the original's papers report results on."""

LONGEST_ANSWER = 4_000_000
"""Most bytes of a page."""

_START = "run ./run_dev.sh in the original's folder, open the address in a browser to see it, then try again"
# The site puts keywords into its addresses, where "/" ends one, and has commands of its own in "<" and ">". None of
# them counts in a search.
_UNSAFE = re.compile(r"[/<>]+")


class RemoteWebShopEngine:
    """A running server of the original, one episode at a time; an `Engine` of domains/base.

    A failure of the server ends the episode; the next `reset` starts over. No address outside the server is asked,
    whatever its pages say, and no proxy is used.

    Args:
        url: The server, such as "http://127.0.0.1:3000".
        count: How many goals: fixed_0, fixed_1 and so on.
        timeout: Most seconds for a page. The original reads its products at its first page: minutes for all of them.

    Raises:
        ValueError: `url` is no http(s) address, `count` or `timeout` is not positive.

    Example:
        >>> engine = RemoteWebShopEngine("http://127.0.0.1:3000")        # doctest: +SKIP
        >>> task = engine.reset(np.random.default_rng(0), "fixed_7")     # doctest: +SKIP
        >>> state, reward, terminated = engine.step("search[red shirt]") # doctest: +SKIP
    """

    def __init__(self, url: str, count: int = TEST_GOALS, timeout: float = 60.0) -> None:
        self._origin = _origin(url)
        if self._origin is None or urlsplit(url).username is not None:
            raise ValueError(f"url is {url!r:.200}; expected a server's address such as 'http://127.0.0.1:3000'")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"count is {count!r}; expected at least 1 goal")
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout!r}; expected seconds, more than 0")
        self.task_ids: Sequence[str] = tuple(f"fixed_{number}" for number in range(count))
        self._root = url.rstrip("/")
        self._timeout = timeout
        self._opener = _opener(self._origin)
        self._home = self._address = self._root
        self._state: State | None = None
        self._site: SitePage | None = None

    def reset(self, rng: np.random.Generator, task_id: str | None = None) -> Task:
        """Start an episode for the given goal, or for one drawn with `rng`.

        Raises:
            ValueError: There is no such goal.
            ConnectionError: The server does not answer, or not with its search page.
        """
        if task_id is None:
            task_id = self.task_ids[int(rng.integers(len(self.task_ids)))]
        if task_id not in self.task_ids:
            raise ValueError(f"no goal {task_id!r}; there are {len(self.task_ids)}, the first is {self.task_ids[0]!r}")
        self._state, self._home = None, f"{self._root}/{task_id}"
        site = self._get(self._home)
        try:
            state = text.initial_state(site.page)
        except ValueError as error:
            raise self._failure(self._home, str(error)) from error
        self._state, self._site = state, site
        instruction = site.page.instruction
        family = "without price" if price_limit(instruction) is None else "with price"
        return Task(id=task_id, instruction=instruction, initial=state, family=family)

    def step(self, action: str) -> tuple[State, float, bool]:
        """Take an action; return the next state, the reward of a purchase (else 0), and whether the episode is over.

        Raises:
            ConnectionError: The server failed; the episode is over, `reset` starts another.
            RuntimeError: No episode is running.
        """
        state, site = self._state, self._site
        if state is None or site is None:
            raise RuntimeError("no episode is running; call reset first")
        self._state = None  # stays so if the server fails
        command = parse(action)
        site = site if command is None else self._follow(command, site)
        try:
            state = text.observe(state, action, site.page)
        except ValueError as error:
            raise self._failure(self._address, str(error)) from error
        done = site.page.kind == "done"
        self._state, self._site = (None if done else state), site
        return state, site.page.score, done

    def close(self) -> None:
        """End the episode; the server knows nothing of it."""
        self._state = None

    def _follow(self, command: Action, site: SitePage) -> SitePage:
        """Return the page that an action leads to; the same if it has nothing of the kind to be clicked."""
        if command.verb == "search":
            keywords = " ".join(_UNSAFE.sub(" ", command.arguments[0]).split())
            return self._get(self._home, {"search_query": keywords})
        link = site.links.get(command.arguments[0] if command.verb == "click" else command.verb)
        return site if link is None else self._get(urljoin(self._address, link))

    def _get(self, address: str, form: Mapping[str, str] | None = None) -> SitePage:
        """Return the page at an address, with a form's fields sent there if there are any."""
        # What browsers do to a link, too: characters that no address may have are written as %xx.
        address = quote(address, safe="%/:?#[]@!$&'()*+,;=~")
        if _origin(address) != self._origin:
            raise self._failure(address, f"a link leads away from {self._root}")
        request = Request(address, urlencode(form).encode() if form is not None else None)
        limit = time.monotonic() + self._timeout
        body = bytearray()
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                self._address = response.url
                while part := response.read1(1 << 16):
                    body += part
                    if len(body) > LONGEST_ANSWER:
                        raise self._failure(address, f"the page is larger than {LONGEST_ANSWER} bytes")
                    if time.monotonic() > limit:
                        raise TimeoutError
                if response.length:
                    raise HTTPException(f"torn off {response.length} bytes before its end")
            return read_html(body.decode("utf-8", errors="replace"))
        except _ServerError:
            raise
        except HTTPError as error:
            error.close()
            problem = f"status {error.code}; has the server a goal of this number, and what does its log say?"
            raise self._failure(address, problem) from error
        except ValueError as error:
            raise self._failure(address, f"no page of WebShop: {error}; {_START}") from error
        except (OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, TimeoutError):
                problem = f"no page after {self._timeout:g} s; give it longer with timeout="
            else:
                shown = " ".join(str(reason).split()) or type(reason).__name__
                problem = f"no answer ({shown:.200}); {_START}"
            raise self._failure(address, problem) from error

    def _failure(self, address: str, problem: str) -> "_ServerError":
        return _ServerError(f"{address:.300}: {problem}")


class _ServerError(ConnectionError):
    """A failure that is already told in our words."""


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an address, None if it is no http(s) address."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def _opener(origin: Any) -> OpenerDirector:
    class Redirects(HTTPRedirectHandler):
        """Follows redirects within the server."""

        def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            if _origin(newurl) != origin:
                raise _ServerError(f"{req.full_url:.300}: it redirects to another server, {newurl:.200}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return build_opener(ProxyHandler({}), Redirects)
