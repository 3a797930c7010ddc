"""The `dreamgym` command: one module a command, which imports what it needs when it runs: --help is quick."""

import typer

from dreamgym_envs.cli import demo, doctor, evaluate, fidelity, fit, imports, play, record, tasks, throughput, train

__all__ = ["app"]

app = typer.Typer(
    name="dreamgym",
    help="Train agents inside learned experience models and put them into the real environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
for command in (
    demo.demo,
    doctor.doctor,
    play.play,
    record.record,
    tasks.tasks,
    fit.fit,
    fidelity.fidelity,
    throughput.throughput,
    train.train,
    evaluate.evaluate,
):
    app.command()(command)
app.command("import")(imports.import_)
