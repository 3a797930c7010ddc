"""A catalogue as large as the original's: how long the shop takes to open it, and what it holds in memory.

    nice -n 10 python benchmarks/catalogue.py --products 1180000 --folder /tmp/catalogue

The shop's own generator makes the files in parts, in the original's format; part n has seed + n. They are kept, and so
is the store. Each opening is a process of its own, so that the peak memory of one is not that of the other.
"""

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from dreamgym_envs.domains.webshop.generator import PRODUCTS, generate
from dreamgym_envs.domains.webshop.real import WebShopEngine

_FILES = {"products": "[]", "attributes": "{}", "instructions": "{}"}


def main() -> None:
    """Make the files if they are not there, open them twice, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, default=1_180_000, help="products (default: as many as the original)")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/catalogue"), help="where the files go")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another catalogue")
    arguments = parser.parse_args()
    folder = arguments.folder / f"{arguments.products}-{arguments.seed}"
    paths = [folder / f"{name}.json" for name in _FILES]
    if not (folder / "store").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _write(paths, arguments.products, arguments.seed)
    for opening in ("first opening", "second opening"):
        process = multiprocessing.get_context("spawn").Process(target=_measure, args=(opening, paths, folder / "store"))
        process.start()
        process.join()
    for name, files in (("files", paths), ("store", (folder / "store").rglob("*"))):
        print(f"{name}: {sum(path.stat().st_size for path in files) / 1e6:.0f} MB", flush=True)


def _write(paths: Sequence[Path], count: int, seed: int) -> None:
    """Write the files in parts. Only products of the first part have people's instructions: few do in the original."""
    files = [path.open("w", encoding="utf-8") for path in paths]
    for number in range(-(-count // PRODUCTS)):
        parts = generate(seed + number, min(PRODUCTS, count - number * PRODUCTS))
        for file, brackets, part in list(zip(files, _FILES.values(), parts, strict=True))[: 2 if number else 3]:
            file.write(("," if number else brackets[0]) + json.dumps(part)[1:-1])
    for file, brackets in zip(files, _FILES.values(), strict=True):
        file.write(brackets[1])
        file.close()


def _measure(opening: str, paths: Sequence[Path], store: Path) -> None:
    products, attributes, instructions = paths
    start = time.perf_counter()
    engine = WebShopEngine(products, attributes, instructions, store)
    opened, rng = time.perf_counter() - start, np.random.default_rng(0)
    searches: list[float] = []
    clicks: list[float] = []
    for _ in range(200):
        task = engine.reset(rng)
        start = time.perf_counter()
        state, _, _ = engine.step(f"search[{task.instruction}]")
        searches.append(1e3 * (time.perf_counter() - start))
        start = time.perf_counter()
        engine.step(f"click[{state.public['items'][0]['id']}]")
        clicks.append(1e3 * (time.perf_counter() - start))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{opening}: {opened:.1f} s, peak {memory:.0f} MB, {len(engine.task_ids)} goals", flush=True)
    print(f"  medians: search {median(searches):.1f} ms, open an item {median(clicks):.2f} ms", flush=True)


if __name__ == "__main__":
    main()
