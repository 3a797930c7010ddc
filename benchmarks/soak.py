"""Does a long dream grow? Resident memory while a vector environment takes many steps of random play.

    python -m benchmarks.soak                     # 200,000 steps of 64 ALFWorld dreams, cache on
    python -m benchmarks.soak --steps 20000 --envs 16 --cache 0

The first tenth fills caches that are bounded; what counts is the growth after it.
"""

import argparse
import json
from pathlib import Path

import gymnasium as gym

import dreamgym_envs  # noqa: F401  registers the environments
from dreamgym_envs.evaluation.throughput import VectorRunner

PAGE = 4096


def resident() -> float:
    """Return this process's resident memory in MB (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def soak(env_id: str, steps: int, envs: int, cache: int) -> list[tuple[int, float]]:
    """Return (steps taken, resident MB), ten times."""
    runner = VectorRunner(gym.make_vec(env_id, num_envs=envs, model_options={"cache": cache}), seed=0)
    taken, found = 0, []
    for tenth in range(1, 11):
        while taken < steps * tenth / 10:
            taken += runner()
        found.append((taken, round(resident(), 1)))
        print(f"{taken:>9,} steps {found[-1][1]:8.1f} MB", flush=True)
    runner.envs.close()
    return found


def main() -> None:
    """Run the soak and print what it found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="DreamGym/ALFWorld-v0")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--cache", type=int, default=10_000)
    chosen = parser.parse_args()
    found = soak(chosen.env, chosen.steps, chosen.envs, chosen.cache)
    growth = found[-1][1] - found[0][1]
    print(json.dumps({"steps": found[-1][0], "resident_mb": found[-1][1], "growth_mb": round(growth, 1)}))


if __name__ == "__main__":
    main()
