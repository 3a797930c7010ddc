"""`dreamgym doctor`: what is there, what is missing, and the next command for each thing that is."""

import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from dreamgym_envs.cli.console import Json, session

if TYPE_CHECKING:
    from rich.console import Console

    from dreamgym_envs.domains.base import Domain

_DISTRIBUTION = "dreamgym-envs"
_SHOWN = ("gymnasium", "numpy", "torch", "transformers", "stable-baselines3", "sb3-contrib")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What.
        ok: Whether it is as it should be.
        needed: Whether the package is of little use without it.
        detail: What was found.
        fix: What to do, if it is not ok.
    """

    name: str
    ok: bool
    needed: bool
    detail: str
    fix: str = ""


def doctor(as_json: Json = False) -> None:
    """Look at versions, extras, cores, decoders, checkpoints and data; say what to do about what is missing.

    Example: dreamgym doctor

    Exit code 0 as long as nothing that is needed is missing; extras and official data are not.
    """
    with session(as_json) as output:
        checks = list(_checks())
        ok = all(check.ok or not check.needed for check in checks)
        result = {"ok": ok, "checks": [asdict(check) for check in checks]}
        output.report(result, lambda console: _show(console, checks))
    if not ok:
        import typer

        raise typer.Exit(1)


def _checks() -> Iterator[Check]:
    from dreamgym_envs.domains import DOMAINS, get_domain

    yield Check("python", True, True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("cores", True, False, f"{os.cpu_count()}")
    for name in (_DISTRIBUTION, *_SHOWN):
        yield _installed(name)
    for extra in importlib.metadata.metadata(_DISTRIBUTION).get_all("Provides-Extra") or ():
        yield _extra(extra)
    yield _decoder("numba", "pip install 'dreamgym-envs[fast]'")
    for name in DOMAINS:
        domain = get_domain(name)
        yield _tried(f"{name}: checkpoint", partial(_checkpoint, domain), needed=True)
        yield _tried(f"{name}: tasks", partial(_tasks, domain), needed=True)
        yield _tried(f"{name}: trajectories", partial(_trajectories, domain), needed=False)
        for data in domain.held_out:
            yield _tried(
                f"{name}: real environment, {data}",
                partial(_engine, domain, data),
                needed=False,
            )


def _installed(distribution: str) -> Check:
    try:
        return Check(distribution, True, True, importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return Check(distribution, False, True, "not installed", f"pip install {distribution}")


def _extra(extra: str) -> Check:
    """Look for every distribution that an extra asks for."""
    missing = []
    for line in importlib.metadata.requires(_DISTRIBUTION) or ():
        requirement, _, marker = line.partition(";")
        if f'extra == "{extra}"' not in marker.replace("'", '"'):
            continue
        name = requirement.split("=")[0].split(">")[0].split("<")[0].split("[")[0].strip()
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(
            f"extra {extra}", False, False, f"lacks {', '.join(missing)}", f"pip install '{_DISTRIBUTION}[{extra}]'"
        )
    return Check(f"extra {extra}", True, False, "installed")


def _decoder(backend: str, fix: str) -> Check:
    """Compare a decoder's logits with NumPy's on a small random model."""
    name = f"decoder {backend}"
    try:
        import numpy as np
        from transformers import LlamaConfig, LlamaForCausalLM

        from dreamgym_envs.experience.decoders import load_decoder

        shape = LlamaConfig(
            vocab_size=96,
            max_position_embeddings=64,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
        model = LlamaForCausalLM(shape)
        tokens = np.arange(1, 25, dtype=np.int32)
        rows, places = np.zeros_like(tokens), np.arange(len(tokens), dtype=np.int32)
        found = []
        for which in ("numpy", backend):
            decoder = load_decoder(model, backend=which)
            if decoder.backend != which:
                return Check(name, False, False, f"not available; {decoder.backend} is used", fix)
            opened = decoder.session()
            opened.reset(1)
            found.append(opened.forward(tokens, rows, places, places))
        difference = float(np.abs(found[0] - found[1]).max())
        return Check(name, difference < 1e-3, False, f"agrees with numpy to {difference:.0e}", fix)
    except (ImportError, ValueError) as error:  # which says what to do
        return Check(name, False, False, "not available", str(error))


def _tried(name: str, look: Callable[[], str], needed: bool) -> Check:
    """Look at something whose errors say what is wrong and what to do."""
    try:
        return Check(name, True, needed, look())
    except (ImportError, OSError, ValueError) as error:
        return Check(name, False, needed, "not there", str(error))


def _checkpoint(domain: "Domain") -> str:
    from dreamgym_envs.experience import embedded_checkpoint, load_model

    model = load_model("embedded", domain)
    backend = getattr(getattr(model, "decoder", None), "backend", "")
    return f"{embedded_checkpoint(domain.name)}, decoded by {backend}"


def _tasks(domain: "Domain") -> str:
    return f"{len(domain.tasks('train'))} to dream of"


def _trajectories(domain: "Domain") -> str:
    from dreamgym_envs.trajectories import shipped_trajectories

    path = shipped_trajectories(domain.name)
    if not path.is_file():
        raise FileNotFoundError(f"dreamgym record {domain.name} --out {path}")
    return f"{path.stat().st_size / 1e6:.1f} MB"


def _engine(domain: "Domain", data: str) -> str:
    engine = domain.engine(**domain.held_out[data])
    count = len(engine.task_ids)
    engine.close()
    return f"{count} tasks" if count else "runs"


def _show(console: "Console", checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("--", style="red" if check.needed else "yellow")
        table.add_row(mark, check.name, Text(check.detail if check.ok else f"{check.detail}. {check.fix}"))
    console.print(table)
