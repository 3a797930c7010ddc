"""Imports run downhill only, as DESIGN.md ("Layout") draws them.

Read from the source, so an import inside a function counts as much as one at the top of a module.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dreamgym_envs.domains import DOMAINS

ROOT = Path(__file__).parents[1]
PACKAGE = "dreamgym_envs"
INSTALLED_AS = {"wrappers": f"{PACKAGE}.wrappers", "assets": f"{PACKAGE}.assets"}

LAYERS = (
    ("core", "assets"),
    ("domains.base", "experience", "replay", "curriculum", "trajectories"),
    ("domains",),  # the domains themselves, and the table of them
    ("envs", "registration", ""),  # "": the package itself, whose import registers
    ("wrappers",),
    ("evaluation", "agents"),
    ("cli", "integrations"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules() -> Iterator[tuple[str, Path]]:
    """Yield every module of the distribution with its file."""
    for folder in (PACKAGE, *INSTALLED_AS):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join((INSTALLED_AS.get(parts[0], parts[0]), *parts[1:]))
            yield name.removesuffix(".__init__"), path


MODULES = dict(modules())


def imports(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """Yield every module of the package that a module imports, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
            # `from package import module` imports the module, `from module import name` does not.
            found = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names]
        else:
            continue
        for target in found:
            if target == PACKAGE or target.startswith(f"{PACKAGE}."):
                yield target, node.lineno


def layer(name: str) -> str:
    """Return the part of the package, named as in `LAYERS`, that a module belongs to."""
    inner = name.removeprefix(PACKAGE).removeprefix(".")
    if inner == "domains.base":
        return inner
    return inner.split(".")[0]


def domain(name: str) -> str | None:
    """Return the domain in whose folder a module lies."""
    parts = name.split(".")
    in_folder = len(parts) > 2 and parts[1] == "domains" and (ROOT / PACKAGE / "domains" / parts[2]).is_dir()
    return parts[2] if in_folder else None


def test_every_part_of_the_package_has_its_layer() -> None:
    assert {layer(name) for name in MODULES} <= LEVEL.keys()


@pytest.mark.parametrize("name", MODULES)
def test_imports_run_downhill(name: str) -> None:
    uphill = [
        f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        for target, line in imports(name, MODULES[name])
        if LEVEL[layer(target)] > LEVEL[layer(name)]
    ]
    assert not uphill, "\n".join(uphill)


@pytest.mark.parametrize("name", [name for name in MODULES if domain(name)])
def test_a_domain_knows_no_other_domain(name: str) -> None:
    foreign = [
        f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        for target, line in imports(name, MODULES[name])
        if domain(target) not in (None, domain(name))
    ]
    assert not foreign, "\n".join(foreign)


@pytest.mark.parametrize("name", [name for name in MODULES if not domain(name)])
def test_nothing_outside_its_folder_imports_a_domain(name: str) -> None:
    named = [f"{target} (line {line})" for target, line in imports(name, MODULES[name]) if domain(target)]
    assert not named, f"{name} imports {', '.join(named)}; use get_domain(name)"


@pytest.mark.parametrize("name", [name for name in MODULES if not domain(name)])
def test_nothing_outside_its_folder_asks_which_domain_it_is(name: str) -> None:
    compared = [
        f"{MODULES[name].relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant) and side.value in DOMAINS
    ]
    assert not compared, f"{', '.join(compared)}: let the domain answer through a method of its own"


def test_the_reader_of_imports_sees_all_forms(tmp_path: Path) -> None:
    source = "\n".join(
        [
            "import dreamgym_envs.core.types as types, json",
            "from dreamgym_envs.envs import dream, DreamEnv",
            "def late():",
            "    from . import schema",
            "    from ..domains.base import Domain",
        ]
    )
    path = tmp_path / "delta.py"
    path.write_text(source)
    found = [target for target, _ in imports(f"{PACKAGE}.core.delta", path)]
    assert sorted(found) == sorted(
        f"{PACKAGE}.{name}" for name in ("core.types", "envs.dream", "envs", "core.schema", "domains.base")
    )
