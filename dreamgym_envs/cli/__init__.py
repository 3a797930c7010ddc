"""The `dreamgym` command: one module a command, which imports what it needs when it runs: --help is quick."""

import os

import typer

# NumPy's matrix products would otherwise start a thread a core in every process, beside the decoders' own. It reads this
# when it is imported, so it stands before all else.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dreamgym_envs.cli import fidelity, fit, record, throughput  # noqa: E402

__all__ = ["app"]

app = typer.Typer(
    name="dreamgym",
    help="Train agents inside learned experience models and put them into the real environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
for command in (record.record, fit.fit, fidelity.fidelity, throughput.throughput):
    app.command()(command)
