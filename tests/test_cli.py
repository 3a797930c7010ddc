"""The `dreamgym` command: one JSON object for machines, short errors for people, an example in every help.

The commands run on the toy domain of boxes, from recording to a fitted checkpoint and what is measured with it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from dreamgym_envs import domains
from dreamgym_envs.cli import app
from dreamgym_envs.cli.environments import settings
from dreamgym_envs.cli.record import mixture
from dreamgym_envs.domains import get_domain
from dreamgym_envs.registration import ENVIRONMENTS, Registration
from dreamgym_envs.trajectories.store import read_trajectories
from tests.test_fidelity import PlayedBoxes
from tests.test_webshop_imports import OPEN, SEARCH, chat

DREAM, REAL = "Test/CliBoxes-v0", "Test/CliBoxesReal-v0"
for env_id, entry_points in {
    DREAM: ("dreamgym_envs.envs.dream:DreamEnv", "dreamgym_envs.envs.vector:DreamVectorEnv"),
    REAL: ("dreamgym_envs.envs.real:RealEnv", None),
}.items():
    gym.register(
        env_id,
        entry_point=entry_points[0],
        vector_entry_point=entry_points[1],
        max_episode_steps=6,
        kwargs={"domain": "boxes"},
    )
COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback is not None]


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def run_json(*arguments: str, stdin: str = "") -> dict[str, Any]:
    """Run with --json and return the one object that stdout holds."""
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    [line] = result.stdout.splitlines()
    document: dict[str, Any] = json.loads(line)
    return document


@pytest.fixture(scope="module", autouse=True)
def boxes() -> Iterator[None]:
    """Given the boxes as a domain with environments, as if they were installed."""
    rows = (*ENVIRONMENTS, Registration(DREAM, "boxes", "dream", 6), Registration(REAL, "boxes", "real", 6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(domains.DOMAINS, "boxes", "PlayedBoxes")
        patch.setitem(sys.modules, "dreamgym_envs.domains.boxes.domain", sys.modules[PlayedBoxes.__module__])
        patch.setattr("dreamgym_envs.registration.ENVIRONMENTS", rows)
        patch.setattr("dreamgym_envs.evaluation.throughput.ENVIRONMENTS", rows)
        yield
    domains.get_domain.cache_clear()


@pytest.fixture(scope="module")
def episodes(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Given a recording."""
    path = tmp_path_factory.mktemp("data") / "boxes.jsonl.gz"
    found = run_json("record", "boxes", "--out", str(path), "--episodes", "80", "--mix", "expert=1,random=2")
    assert found["episodes"] == 80 and found["transitions"] > 80 and found["by_player"].keys() == {"expert", "random"}
    return path


@pytest.fixture(scope="module")
def checkpoint(episodes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Given a checkpoint, hardly trained."""
    path = tmp_path_factory.mktemp("model")
    size = ["--hidden", "32", "--layers", "1", "--steps", "30", "--tokens", "1024", "--threads", "1"]
    found = run_json("fit", "boxes", "--data", str(episodes), "--out", str(path), *size)
    assert found["domain"] == "boxes" and found["steps"] == 30 and found["out"] == str(path)
    assert (path / "model.safetensors").is_file() and "dreamgym" in (path / "README.md").read_text()
    return path


# --- what every command has in common --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example_and_json(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Example: dreamgym {name}" in " ".join(result.stdout.split())
    assert "--json" in result.stdout


def test_the_commands_are_those_of_the_readme() -> None:
    assert set(COMMANDS) >= {"doctor", "play", "record", "fit", "fidelity", "throughput", "train", "evaluate"}
    assert all(name in run("--help").stdout for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["record", "alfwurld", "--out", "x"], "no domain 'alfwurld'"),
        (["fidelity", "alfwurld"], "no domain 'alfwurld'"),
        (["play", "DreamGym/Nothing-v0"], "no environment 'DreamGym/Nothing-v0'"),
        (["record", "boxes"], "--out"),
        (["record", "boxes", "--out", "x", "--mix", "expert=lots"], "expert=lots"),
        (["record", "boxes", "--out", "x", "--episodes", "0"], "--episodes"),
        (["record", "boxes", "--out", "x", "--option", "split"], "name=value"),
        (["evaluate", REAL, "--model", "m"], "belong to a dream"),
        (["train", DREAM, "--out", "x", "--scratch", "--warm-start", "y"], "choose one"),
        (["nothing"], "nothing"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_is_wrong(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fidelity", "boxes", "--model", "nowhere"], "nowhere holds no experience model"),
        (["fit", "boxes", "--data", "nowhere.jsonl", "--out", "x"], "no trajectories at nowhere.jsonl"),
        (["train", DREAM, "--data", "nowhere.jsonl", "--out", "x"], "no trajectories at nowhere.jsonl"),
        (["train", DREAM, "--algo", "dqn", "--out", "x"], "no algorithm 'dqn'; there are: maskable_ppo, ppo"),
        (["evaluate", REAL, "--agent", "nowhere", "--processes", "1"], "no agent 'nowhere'"),
        (["import", "boxes", "chats.jsonl", "--out", "x.jsonl"], "boxes reads no episodes in formats of others"),
        (["import", "webshop", "nowhere.jsonl", "--out", "x.jsonl"], "nowhere.jsonl"),
        (["play", REAL, "--task", "none"], "no task 'none'"),
        (["record", "boxes", "--out", "x.jsonl", "--mix", "nobody=1"], "nobody"),
    ],
)
def test_a_failure_is_exit_code_1_and_one_short_message(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for flags in ([], ["--json"]):
        result = run(*arguments, *flags)
        assert result.exit_code == 1 and not result.stdout
        assert "error: " in result.stderr and message in result.stderr
        assert "Traceback" not in result.stderr
        (tmp_path / "x.jsonl").unlink(missing_ok=True)


def test_the_traceback_of_an_error_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DREAMGYM_TRACEBACK", "1")
    result = run("fidelity", "boxes", "--model", "nowhere")
    assert type(result.exception).__name__ == "CheckpointError"


def test_nothing_else_reaches_stdout_not_even_from_c() -> None:
    # Given a command during which Python, a child process and the C level all write to stdout
    code = """
import os, subprocess
from dreamgym_envs.cli.console import session
with session(True) as output:
    print("from Python")
    os.write(1, b"from C\\n")
    subprocess.run(["echo", "from a child"])
    output.report({"answer": 42}, print)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"answer": 42} and done.stdout.count("\n") == 1
    assert all(words in done.stderr for words in ("from Python", "from C", "from a child"))


def test_help_is_quick() -> None:
    # Torch and transformers take seconds to import; --help must not.
    code = "import sys, dreamgym_envs.cli; sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- one by one ------------------------------------------------------------------------------------------------------


def test_mixtures_and_settings_are_read() -> None:
    assert mixture("expert=3, noisy=0.5,random") == {"expert": 3, "noisy": 0.5, "random": 1}
    assert settings(["split=valid", "count=3", "fast=true"]) == {"split": "valid", "count": 3, "fast": True}
    for wrong in ("", "a=b", "a=-1", "a=0", "a=nan", "a=inf"):
        with pytest.raises(typer.BadParameter):
            mixture(wrong)


def test_record_refuses_to_overwrite_and_resumes(episodes: Path) -> None:
    again = ["record", "boxes", "--out", str(episodes), "--episodes", "82", "--mix", "expert=1,random=2"]
    refused = run(*again)
    assert refused.exit_code == 1 and "--resume" in refused.stderr
    found = run_json(*again, "--resume")
    assert (found["resumed"], found["episodes"]) == (80, 82)


def test_doctor_names_what_is_missing_and_what_to_do() -> None:
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == (0 if document["ok"] else 1)
    checks = {check["name"]: check for check in document["checks"]}
    assert checks["torch"]["ok"] and checks["python"]["ok"]
    assert not checks["boxes: checkpoint"]["ok"] and "dreamgym fit boxes" in checks["boxes: checkpoint"]["fix"]
    assert checks["boxes: tasks"]["ok"]
    assert all(check["fix"] for check in document["checks"] if not check["ok"])


def test_a_person_plays_by_number_or_in_words() -> None:
    found = run_json("play", REAL, "--seed", "1", stdin="99\n?\n0\nlook box 2\nfly\nq\n")
    assert found == {"env": REAL, "task_id": found["task_id"], "steps": 3, "return": 0.0, "success": False}
    shown = run("play", REAL, stdin="0\nfly\n").stderr
    assert "look box 1" in shown and "'fly' is not in the grammar" in shown and "You look into box 1." in shown


def test_a_game_ends_at_its_goal_or_at_the_end_of_input() -> None:
    script = "".join(f"look box {i}\ntake ball 1\ntake cube 1\n" for i in (1, 2, 3))
    found = run_json("play", REAL, stdin=script)
    assert found["steps"] <= 6
    assert run_json("play", REAL, stdin="")["steps"] == 0
    assert run_json("play", REAL, "--steps", "2", stdin=script)["steps"] == 2


def test_fidelity_has_the_keys_that_others_rely_on(episodes: Path, checkpoint: Path) -> None:
    found = run_json("fidelity", "boxes", "--model", str(checkpoint), "--data", str(episodes), "--episodes", "20")
    assert found.keys() >= {
        "domain",
        "data",
        "n",
        "deterministic_exact",
        "success_recall",
        "success_precision",
        "false_success_per_1000",
        "reward_mae",
        "enum_accuracy",
        "invalid",
        "contradictions_per_100",
        "expert_success_dream",
        "expert_success_real",
    }
    assert found["domain"] == "boxes" and found["episodes"] == 20 and found["invalid"] == 0
    table = run(
        "fidelity", "boxes", "--model", str(checkpoint), "--data", str(episodes), "--limit", "30", "--mistakes", "1"
    )
    assert table.exit_code == 0 and "30 single steps" in table.stdout and "expert" in table.stdout
    assert "reasoning:" in table.stdout  # it was hardly trained


def test_fidelity_records_for_itself(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ["--episodes", "6", "--mix", "expert=1", "--processes", "1"]
    found = run_json("fidelity", "boxes", "--model", str(checkpoint), *small)
    assert found["data"] == "generated" and found["expert_episodes"] == 6
    wrong = run("fidelity", "boxes", "--model", str(checkpoint), "--data", "elsewhere")
    assert wrong.exit_code == 1 and "expected generated or a file" in wrong.stderr


def test_throughput_has_rows_and_ratios(checkpoint: Path) -> None:
    quick = ["--seconds", "0.05", "--rounds", "2", "--num-envs", "1", "--num-envs", "4"]
    found = run_json("throughput", "boxes", "--model", str(checkpoint), *quick)
    rows = found["rows"]
    assert all(row.keys() >= {"env", "num_envs", "cache", "steps_per_second"} for row in rows)
    assert {(row["env"], row["num_envs"]) for row in rows} == {(REAL, 1), (DREAM, 1), (DREAM, 4)}
    assert all(row["steps_per_second"] > 0 for row in rows)
    assert [row["num_envs"] for row in rows if row["backend"] == "generate"] == [1, 4]
    assert [row["cache"] for row in rows].count(True) == 1
    assert found["dream_over_real"].keys() == found["predict_over_generate"].keys() == {"1", "4"}
    assert found["cache_gain"] > 0 and found["numpy_over_real"] > 0
    alone = run("throughput", "boxes", "--model", str(checkpoint), *quick, "--no-real", "--no-generate")
    assert alone.exit_code == 0 and DREAM in alone.stdout and REAL not in alone.stdout


def test_an_agent_is_trained_in_the_dream_and_evaluated_for_real(
    episodes: Path, checkpoint: Path, tmp_path: Path
) -> None:
    agent = str(tmp_path / "agent")
    small = ["--steps", "64", "--num-envs", "4", "--data", str(episodes), "--limit", "20", "--out", agent]
    trained = run_json("train", DREAM, "--model", str(checkpoint), *small)
    assert trained.keys() >= {"env", "algo", "steps", "seconds", "out"}
    assert trained["env"] == DREAM and trained["steps"] >= 64 and trained["out"] == agent
    for player in (agent, str(Path(agent) / "warm-start")):
        found = run_json("evaluate", REAL, "--agent", player, "--episodes", "6", "--processes", "1")
        assert found.keys() >= {"env", "agent", "episodes", "success", "ci95", "mean_return", "mean_length"}
        low, high = found["ci95"]
        assert found["episodes"] == 6 and low <= found["success"] <= high
        assert all(part.keys() == {"episodes", "success", "mean_return"} for part in found["by_family"].values())
    table = run("evaluate", REAL, "--agent", "random", "--episodes", "4", "--processes", "1")
    assert table.exit_code == 0 and "mean return" in table.stdout and "mean length" in table.stdout


def test_tasks_come_from_episodes_or_from_the_real_environment(episodes: Path, tmp_path: Path) -> None:
    played, drawn = tmp_path / "played.jsonl.gz", tmp_path / "drawn.jsonl.gz"
    assert run_json("tasks", "boxes", "--data", str(episodes), "--out", str(played))["tasks"] == 4
    assert run_json("tasks", "boxes", "--real", "1", "--split", "train", "--out", str(drawn))["tasks"] == 1
    both = run("tasks", "boxes", "--real", "1", "--data", str(episodes), "--out", str(drawn))
    assert both.exit_code == 2 and "choose one" in both.stderr


def test_episodes_of_others_become_trajectories_with_a_report(tmp_path: Path) -> None:
    # Given two files in a format of others, of which one has an episode that leads nowhere
    chats, out = tmp_path / "chats.jsonl", tmp_path / "episodes.jsonl.gz"
    chats.write_text("".join(json.dumps(record) + "\n" for record in (chat(SEARCH, OPEN), chat(name="webshop_2"))))
    # When they are imported
    report = run_json("import", "webshop", str(chats), "--out", str(out))
    # Then what was read can be read again, and what was not is told
    (file,) = report["files"]
    assert (file["episodes"], file["steps"], file["unanswered"]) == (1, 2, 0)
    assert [(skip["whole"], skip["first"]["episode"]) for skip in file["skipped"]] == [(1, "webshop_2")]
    (episode,) = read_trajectories(out, get_domain("webshop").schema)
    assert [step.action for step in episode.steps] == [SEARCH, OPEN]
    # And nothing is overwritten, nor written at all if a file is wrong
    again = run("import", "webshop", str(chats), "--out", str(out))
    assert (again.exit_code, "exists already" in again.stderr) == (1, True)
    chats.write_text(chats.read_text() + "{\n")
    wrong = run("import", "webshop", str(chats), "--out", str(tmp_path / "x.jsonl"))
    assert "record 3: no JSON" in wrong.stderr
    assert not (tmp_path / "x.jsonl").exists()


def test_what_was_interrupted_before_its_first_checkpoint_starts_from_a_clone_again(
    episodes: Path, checkpoint: Path, tmp_path: Path
) -> None:
    small = ["--steps", "64", "--num-envs", "4", "--data", str(episodes), "--limit", "20", "--out", str(tmp_path)]
    run_json("train", DREAM, "--model", str(checkpoint), *small, "--resume")
    assert (tmp_path / "warm-start" / "agent.json").is_file()
    again = run("train", DREAM, "--model", str(checkpoint), *small)
    assert again.exit_code == 1 and "go on with --resume" in again.stderr and "cloning" not in again.stderr


def test_it_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dreamgym_envs.cli", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert done.returncode == 0 and "fidelity" in done.stdout
