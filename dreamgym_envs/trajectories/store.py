"""Trajectories on disk: JSON lines, one episode a line, appended and never rewritten.

    {"task": {...}, "steps": [{"action": "go to desk 1", "delta": [["set", ["location"], ["desk 1"]], ...]}, ...],
     "player": "expert", "metadata": {"episode": 0}}

A step holds what changed, not the state: some 20 times less, and the same edits that a model learns to write. A step
whose delta does not lead to exactly its state (a keyed array in another order) holds the state instead, so that reading
gives back what was written. Files named `*.gz` are compressed, and every line is flushed on its own there too.

A crash can tear the last line, no other. Readers leave a torn line out with a warning, a writer cuts it off.
"""

import gzip
import json
import os
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from dreamgym_envs.core.delta import DeltaError, Edit, apply_delta, diff
from dreamgym_envs.core.records import from_document, to_document
from dreamgym_envs.core.schema import Schema, StateError
from dreamgym_envs.core.types import State, Step, Task, Trajectory, freeze, thaw

__all__ = [
    "TornLineWarning",
    "TrajectoryError",
    "TrajectoryWriter",
    "decode",
    "encode",
    "read_lines",
    "read_trajectories",
    "repair",
    "replace_lines",
]

_OPTIONAL = ("source", "player", "metadata")

_GZIP_BEGINS = b"\x1f\x8b"


class TrajectoryError(ValueError):
    """A line of a trajectory file that is no trajectory of the domain."""


class TornLineWarning(UserWarning):
    """The end of a trajectory file was lost in a crash."""


# --- one trajectory, one document ------------------------------------------------------------------------------------


def encode(trajectory: Trajectory, schema: Schema) -> dict[str, Any]:
    """Return a trajectory as a JSON document, its states as deltas."""
    steps = []
    before = trajectory.task.initial
    for step in trajectory.steps:
        steps.append(_encode_step(step, before, schema))
        before = step.state
    document: dict[str, Any] = {"task": to_document(trajectory.task), "steps": steps}
    if trajectory.source != "real":
        document["source"] = trajectory.source
    if trajectory.player:
        document["player"] = trajectory.player
    if trajectory.metadata:
        document["metadata"] = thaw(trajectory.metadata)
    return document


def _encode_step(step: Step, before: State, schema: Schema) -> dict[str, Any]:
    document: dict[str, Any] = {"action": step.action}
    edits = diff(schema, before, step.state)
    if apply_delta(schema, before, edits) == step.state:
        document["delta"] = [[edit.op, list(edit.path), thaw(edit.value)] for edit in edits]
    else:
        document["state"] = to_document(step.state)
    if step.reward:
        document["reward"] = step.reward
    if step.terminated:
        document["terminated"] = True
    if step.reasoning:
        document["reasoning"] = step.reasoning
    return document


def decode(document: Any, schema: Schema, *, validate: bool = False) -> Trajectory:
    """Return the trajectory of a document that `encode` made.

    Args:
        document: What `json.loads` gives for a line.
        schema: The schema of the domain.
        validate: Check every state. The first and the last one are always checked.

    Raises:
        TrajectoryError: The document is none, or its states break the schema.
    """
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        raise TrajectoryError('expected an object with "task" and "steps"')
    unknown = document.keys() - {"task", "steps", *_OPTIONAL}
    if unknown:
        raise TrajectoryError(f"unknown {', '.join(sorted(map(repr, unknown)))} beside the task and the steps")
    where = "the task"
    try:
        task = from_document(Task, document.get("task"))
        schema.validate(task.initial)
        steps: list[Step] = []
        state = task.initial
        for index, item in enumerate(document["steps"]):
            where = f"step {index}"
            steps.append(_decode_step(item, state, schema))
            state = steps[-1].state
            if validate or index == len(document["steps"]) - 1:
                schema.validate(state)
        where = "the trajectory"
        rest = {name: document[name] for name in _OPTIONAL if name in document}
        return _with_rest(task, tuple(steps), **rest)
    except (StateError, DeltaError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrajectoryError(f"{where}: {_reason(error)}") from error


def _with_rest(
    task: Task, steps: tuple[Step, ...], source: str = "real", player: str = "", metadata: Any = None
) -> Trajectory:
    if not isinstance(source, str) or not isinstance(player, str) or not isinstance(metadata, dict | None):
        raise ValueError('"source" and "player" are strings, "metadata" is an object')
    return Trajectory(task, steps, source, player, freeze(metadata or {}))


def _decode_step(document: Any, before: State, schema: Schema) -> Step:
    if "state" in document:
        state = from_document(State, document["state"])
    else:
        edits = [_edit(*item) for item in document["delta"]]
        state = apply_delta(schema, before, edits)
    rest = {name: document[name] for name in ("reasoning",) if name in document}
    reward, terminated = document.get("reward", 0.0), document.get("terminated", False)
    if (
        not isinstance(document["action"], str)
        or not isinstance(reward, int | float)
        or not isinstance(terminated, bool)
    ):
        raise ValueError('"action" is a string, "reward" a number, "terminated" true or false')
    return Step(document["action"], state, float(reward), terminated, **rest)


def _edit(op: Any, path: Any, value: Any) -> Edit:
    if (
        op not in ("set", "add", "remove")
        or not isinstance(path, list)
        or (op != "set" and not isinstance(value, list))
    ):
        raise ValueError(f"not an edit: {[op, path, value]!r:.80}")
    return Edit(op, tuple(path), freeze(value))


def _reason(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)


# --- reading ---------------------------------------------------------------------------------------------------------


def read_trajectories(path: str | Path, schema: Schema, *, validate: bool = False) -> Iterator[Trajectory]:
    """Yield the trajectories of a file, in order, without holding more than one.

    Args:
        path: A `.jsonl` or `.jsonl.gz` file.
        schema: The schema of the domain.
        validate: Check every state (about a millisecond each), as for files that others wrote. The first and the last
            state of an episode are always checked.

    Raises:
        FileNotFoundError: There is no such file.
        TrajectoryError: A line is no trajectory of the domain; says which and why.

    Example:
        >>> for trajectory in read_trajectories("alfworld.jsonl.gz", get_domain("alfworld").schema):
        ...     print(trajectory.task.instruction, len(trajectory.steps))
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield decode(json.loads(line), schema, validate=validate)
        except TrajectoryError as error:
            raise TrajectoryError(f"{path}, line {number}: {error}") from error
        except ValueError as error:
            raise TrajectoryError(f"{path}, line {number} is no JSON: {error}; expected one episode a line") from error


def read_lines(path: str | Path) -> Iterator[bytes]:
    r"""Yield the complete lines of a file without their b"\n"; warn of a torn one at its end."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no trajectories at {path}; record some with `dreamgym record`")
    if path.suffix == ".gz":
        _refuse_others(path)
    with _open(path) as file:
        try:
            for line in file:
                if not line.endswith(b"\n") and not _is_json(line):
                    raise EOFError
                if line.strip():
                    yield line.rstrip(b"\n")
        except (zlib.error, gzip.BadGzipFile) as error:
            raise _damaged(path, error) from error
        except EOFError:
            warnings.warn(f"{path} ends in the middle of a line, which is left out", TornLineWarning, stacklevel=3)


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _damaged(path: Path, error: Exception) -> TrajectoryError:
    """Return what is said of a compressed file in whose midst bytes have changed; a torn one ends too early."""
    return TrajectoryError(
        f"{path} is damaged ({error}) and stays as it is; put a sound copy in its place, or choose another file"
    )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


# --- writing ---------------------------------------------------------------------------------------------------------


class TrajectoryWriter:
    """Appends trajectories to a file; what `append` returned from is on disk, whatever happens to the process.

    Args:
        path: A `.jsonl` or `.jsonl.gz` file; made if absent, its torn last line cut off.
        schema: The schema of the domain.
        sync: Wait until the disk has every line, so that it outlives a power cut, not only the process.

    Attributes:
        lines: Lines in the file.
        repaired: Bytes cut off from a torn last line, 0 if there was none.

    Example:
        >>> with TrajectoryWriter("alfworld.jsonl", domain.schema) as writer:
        ...     writer.append(trajectory)
    """

    def __init__(self, path: str | Path, schema: Schema, *, sync: bool = False) -> None:
        self.path = Path(path)
        self.schema = schema
        self.sync = sync
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.repaired = repair(self.path) if self.path.exists() else 0
        self.lines = sum(1 for _ in read_lines(self.path)) if self.path.exists() else 0
        self._raw = self.path.open("ab")
        self._gzip = _compressor(self._raw) if self.path.suffix == ".gz" else None

    def append(self, trajectory: Trajectory) -> None:
        """Write one trajectory."""
        line = json.dumps(encode(trajectory, self.schema), separators=(",", ":")).encode() + b"\n"
        if self._gzip is not None:
            self._gzip.write(line)
            self._gzip.flush()
        else:
            self._raw.write(line)
        self._raw.flush()
        if self.sync:
            os.fsync(self._raw.fileno())
        self.lines += 1

    def close(self) -> None:
        """Close the file."""
        if self._gzip is not None:
            self._gzip.close()
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _compressor(raw: IO[bytes]) -> gzip.GzipFile:
    # No name and no time inside: the same trajectories give the same bytes.
    return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)


def repair(path: Path) -> int:
    """Cut a torn last line off a file and return how many bytes (uncompressed) went; end a complete one with a newline.

    A compressed file is torn unless its last line and its last gzip member are complete.

    Raises:
        TrajectoryError: Nobody wrote trajectories into this file, or it is damaged; it stays as it is.
    """
    _refuse_others(path)
    if path.suffix == ".gz":
        return _repair_gzip(path)
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        tail = _last_line(file, size)
        if not tail or tail.endswith(b"\n"):
            return 0
        if _is_json(tail):
            file.write(b"\n")
            return 0
        file.truncate(size - len(tail))
        return len(tail)


def _refuse_others(path: Path) -> None:
    """Raise unless a file, complete or torn, begins as trajectories do: what others wrote is not to be cut."""
    begins = _GZIP_BEGINS if path.suffix == ".gz" else b"{"
    with path.open("rb") as file:
        start = file.read(len(begins))
    if not begins.startswith(start):
        kind = "compressed with gzip" if path.suffix == ".gz" else "JSON lines"
        raise TrajectoryError(
            f"{path} holds no trajectories: it is not {kind}; choose another file, or remove this one"
        )


def _last_line(file: IO[bytes], size: int) -> bytes:
    """Return what follows the last newline but one, reading from the end."""
    block, start = b"", size
    while start > 0 and b"\n" not in block[:-1]:
        start = max(0, start - (1 << 16))
        file.seek(start)
        block = file.read(size - start)
    file.seek(size)
    return block[block.rfind(b"\n", 0, len(block) - 1) + 1 :] if block else b""


def _repair_gzip(path: Path) -> int:
    content = bytearray()
    try:
        with gzip.open(path, "rb") as file:
            for chunk in iter(lambda: file.read1(1 << 16), b""):
                content += chunk
        if not content or content.endswith(b"\n"):
            return 0
    except (zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, error) from error
    except EOFError:  # it is torn: what there is of it is sound
        pass
    kept = content.rfind(b"\n") + 1
    replace_lines(path, lambda: bytes(content[:kept]).split(b"\n")[:-1])
    return len(content) - kept


def replace_lines(path: Path, lines: Callable[[], Iterator[bytes] | list[bytes]]) -> None:
    """Write a file anew and put it in the place of the old one in one step."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as raw:
        if path.suffix == ".gz":
            with _compressor(raw) as file:
                file.writelines(line + b"\n" for line in lines())
        else:
            raw.writelines(line + b"\n" for line in lines())
        raw.flush()
        os.fsync(raw.fileno())
    os.replace(fresh, path)
