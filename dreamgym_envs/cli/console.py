"""What every command of `dreamgym` shares: where its words go, how it reports, how it fails.

People read tables on stdout; with --json machines read one JSON object there, and nothing else reaches it, not even
what a library in C prints. Progress and notes always go to stderr. An expected error is a short message and exit code
1, wrong usage exit code 2; DREAMGYM_TRACEBACK=1 shows where an error came from.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["DomainName", "EnvId", "Json", "Output", "notes", "progress_bar", "session", "share_table"]

notes = Console(stderr=True, highlight=False, soft_wrap=True)
"""For progress and remarks."""

_TRACEBACK = "DREAMGYM_TRACEBACK"

_EXPECTED = (ValueError, TypeError, OSError, ImportError)
"""What the package raises for what a user can get wrong, with messages written for users; see also `_is_expected`."""


def _domain_name(value: str) -> str:
    from dreamgym_envs.domains import DOMAINS

    if value not in DOMAINS:
        raise typer.BadParameter(f"no domain {value!r}; there are: {', '.join(sorted(DOMAINS))}")
    return value


def _env_id(value: str) -> str:
    from dreamgym_envs.registration import ENVIRONMENTS

    ids = [row.id for row in ENVIRONMENTS]
    if value not in ids:
        raise typer.BadParameter(f"no environment {value!r}; there are: {', '.join(ids)}")
    return value


DomainName = Annotated[
    str,
    typer.Argument(metavar="DOMAIN", callback=_domain_name, help="Name of a domain, such as alfworld or webshop."),
]
EnvId = Annotated[
    str, typer.Argument(metavar="ID", callback=_env_id, help="Id of an environment, such as DreamGym/ALFWorld-v0.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]


class Output:
    """What a command has to say at its end.

    Args:
        as_json: Whether a machine reads it.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._result: Mapping[str, Any] | None = None
        self._show: Callable[[Console], None] | None = None

    def report(self, result: Mapping[str, Any], show: Callable[[Console], None]) -> None:
        """Set the result: `result` is for machines, `show` prints it for people."""
        self._result, self._show = result, show

    def flush(self) -> None:
        """Print the result on stdout."""
        if self._result is None or self._show is None:
            return
        if self.as_json:
            sys.stdout.write(json.dumps(self._result) + "\n")
            sys.stdout.flush()
        else:
            self._show(Console(highlight=False))


@contextmanager
def session(as_json: bool) -> Iterator[Output]:
    """Run a command: stdout stays free for its result, expected errors become a message and exit code 1.

    Example:
        >>> with session(as_json) as output:
        ...     result = work()
        ...     output.report(result, lambda console: console.print(result["success"]))
    """
    output = Output(as_json)
    try:
        with _stdout_kept_free(as_json):
            yield output
    except KeyboardInterrupt:
        notes.print("\ninterrupted")
        raise typer.Exit(130) from None
    except Exception as error:
        if os.environ.get(_TRACEBACK) or not _is_expected(error):
            raise
        notes.print(f"error: {_message(error)}", style="red", markup=False)
        raise typer.Exit(1) from None
    output.flush()


def _is_expected(error: Exception) -> bool:
    # Errors that other packages raise as interface, named here without importing those packages for every command.
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    return isinstance(error, _EXPECTED) or bool(
        names & {"gymnasium.error.Error", "dreamgym_envs.trajectories.record.RecordingError"}
    )


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


@contextmanager
def _stdout_kept_free(wanted: bool) -> Iterator[None]:
    """Send to stderr what Python code, C code and child processes write to stdout meanwhile."""
    if not wanted:
        yield
        return
    python_stdout = sys.stdout
    python_stdout.flush()
    sys.stdout = sys.stderr
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout = python_stdout
        os.dup2(kept, 1)
        os.close(kept)


def progress_bar(unit: str = "") -> Progress:
    """Return a progress bar on stderr; tasks show their field "note" at the end of the line."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=notes,
    )


def share_table(title: str, rows: Mapping[str, Any]) -> Table:
    """Return a table of names and values; numbers between 0 and 1 as they are, long floats rounded."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value))
    return table
