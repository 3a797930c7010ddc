"""Recorded episodes of the original shop, in the chat format of AgentGym and ETO, read as trajectories.

A file has a JSON object a line: {"item_id": name, "conversations": [{"from": "human" or "gpt", "value": text}, ...]}.
After a prompt and its confirmation, "human" turns are pages in the original's text mode and "gpt" turns are answers
with an action behind "Action:".

What such a file does not have, a trajectory from it does not have either: it stops before the purchase unless the
page behind it was recorded, since that page alone has the reward; what the agent thought is left out, since it is no
reason why the shop answered as it did; and the goal's attributes and options are unknown.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import Step, Task, Trajectory
from dreamgym_envs.domains.webshop import text
from dreamgym_envs.domains.webshop.pages import read
from dreamgym_envs.trajectories.imported import Imported, Skipped

__all__ = ["ChatFormatError", "import_chats", "read_chats"]

PLAYER = "recorded"
"""Player of imported trajectories."""

_PREAMBLE = 2
"""Turns before the first page: what an action looks like, and "Ok."."""

_ACTION = re.compile(r"Action:\s*(\S.*)")


_Problem = tuple[str, str]
"""Reason and detail of a `Skipped`."""


class ChatFormatError(ValueError):
    """A file is not in the chat format."""


def import_chats(path: Path, schema: Schema) -> Imported:
    """Return the episodes of a file; see `read_chats`.

    Raises:
        FileNotFoundError: There is no such file.
        ChatFormatError: A line is not in the chat format; it names record and field.

    Example:
        >>> print(import_chats(path, WebShopDomain().schema).report())  # doctest: +SKIP
        read 600 episodes with 2438 steps
        without the page behind the last action: 600 episodes
    """
    with path.open("rb") as file:
        try:
            return read_chats(file, schema)
        except ChatFormatError as error:
            raise ChatFormatError(f"{path}: {error}") from error


def read_chats(lines: Iterable[str | bytes], schema: Schema) -> Imported:
    """Return the episodes that lines in the chat format hold; blank lines count but hold nothing.

    A page that cannot be read, or that no action of this shop leads to, cuts its episode there; an episode without a
    first page is skipped whole.

    Raises:
        ChatFormatError: A line is not in the chat format; it names record and field.
    """
    trajectories: list[Trajectory] = []
    skipped: list[Skipped] = []
    unanswered = 0
    seen: set[str] = set()
    for record, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        name, turns = _record(record, line)
        if name in seen:
            skipped.append(Skipped(record, name, 0, "an episode of this name was read before"))
            continue
        seen.add(name)
        trajectory, problem = _episode(name, turns, schema)
        if problem is not None:
            skipped.append(Skipped(record, name, len(trajectory.steps) + 1 if trajectory else 0, *problem))
        if trajectory is not None:
            trajectories.append(trajectory)
            unanswered += "unanswered" in trajectory.metadata
    return Imported(tuple(trajectories), tuple(skipped), unanswered)


def _record(number: int, line: str | bytes) -> tuple[str, list[str]]:
    """Return an episode's name and the texts of its turns, pages and answers in turn.

    Raises:
        ChatFormatError: The line holds something else.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ChatFormatError(f"record {number}: no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise _wrong(number, "the record", "an object with item_id and conversations", value)
    name, turns = value.get("item_id"), value.get("conversations")
    if not isinstance(name, str) or not name:
        raise _wrong(number, "item_id", "a name", name)
    if not isinstance(turns, list):
        raise _wrong(number, "conversations", "a list of turns", turns)
    texts = []
    for place, turn in enumerate(turns):
        where, speaker = f"conversations[{place}]", ("human", "gpt")[place % 2]
        if not isinstance(turn, Mapping):
            raise _wrong(number, where, "an object with from and value", turn)
        if turn.get("from") != speaker:
            raise _wrong(number, f"{where}.from", repr(speaker), turn.get("from"))
        if not isinstance(turn.get("value"), str):
            raise _wrong(number, f"{where}.value", "a text", turn.get("value"))
        texts.append(turn["value"])
    return name, texts[_PREAMBLE:]


def _wrong(number: int, field: str, expected: str, found: Any) -> ChatFormatError:
    return ChatFormatError(f"record {number}, {field}: expected {expected}, found {found!r:.60}")


def _episode(name: str, turns: Sequence[str], schema: Schema) -> tuple[Trajectory | None, _Problem | None]:
    """Return an episode as far as it can be read, None if no step can be, and why it goes no further."""
    if not turns:
        return None, ("no page", "")
    try:
        page = read(turns[0])
        state = text.initial_state(page)
    except ValueError as error:
        return None, ("the first page is no search page", str(error))
    task = Task(name, page.instruction, state)
    steps: list[Step] = []
    metadata: dict[str, Any] = {"format": "chat"}
    problem: _Problem | None = None
    for place in range(1, len(turns), 2):
        found = _ACTION.findall(turns[place])
        if not found:
            problem = ("an answer without an action", turns[place])
            break
        action = found[-1].strip()
        if place + 1 == len(turns):
            metadata["unanswered"] = action
            break
        try:
            page = read(turns[place + 1])
        except ValueError as error:
            problem = ("a page that cannot be read", str(error))
            break
        try:
            state = text.observe(state, action, page)
            schema.validate(state)
        except ValueError as error:
            problem = ("a page that is no answer to the action", str(error))
            break
        done = page.kind == "done"
        steps.append(Step(action, state, page.score if done else 0.0, done))
        if done:
            break
    if not steps:
        return None, problem or ("no page behind the first action", "")
    return Trajectory(task, tuple(steps), player=PLAYER, metadata=metadata), problem
