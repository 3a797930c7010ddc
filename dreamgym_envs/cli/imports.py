"""`dreamgym import`: episodes that others have recorded, as trajectories of a domain's schema."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dreamgym_envs.cli.console import DomainName, Json, session

if TYPE_CHECKING:
    from dreamgym_envs.trajectories.imported import Imported


def import_(
    domain: DomainName,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files in a format that the domain reads.")],
    out: Annotated[Path, typer.Option(help="File of trajectories to write, .jsonl or .jsonl.gz.")],
    as_json: Json = False,
) -> None:
    """Read episodes in a format of others, and say what was read, what was left out and why.

    Example: dreamgym import webshop sharegpt_webshop.jsonl --out runs/amazon.jsonl.gz

    A file that cannot be read as a whole stops the import before anything is written.
    """
    with session(as_json) as output:
        from dreamgym_envs.domains import get_domain
        from dreamgym_envs.trajectories.store import TrajectoryWriter

        found = get_domain(domain)
        if out.exists():
            raise FileExistsError(f"{out} exists already; choose another --out, or delete it first")
        imported = {path: found.import_episodes(path) for path in files}
        with TrajectoryWriter(out, found.schema) as writer:
            for part in imported.values():
                for trajectory in part.trajectories:
                    writer.append(trajectory)
        result = {
            "domain": domain,
            "files": [{"file": str(path), **part.document()} for path, part in imported.items()],
            "out": str(out),
        }
        output.report(result, lambda console: console.print(_text(imported), markup=False))


def _text(imported: "dict[Path, Imported]") -> str:
    return "\n".join(f"{path}: {part.report()}" for path, part in imported.items())
