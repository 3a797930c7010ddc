"""The trajectory store and the recorder: nothing acknowledged is lost, and a file says only what was played."""

import gzip
import json
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dreamgym_envs.core.types import State, Step, Task, Trajectory
from dreamgym_envs.domains.base import Engine
from dreamgym_envs.trajectories import record as recording
from dreamgym_envs.trajectories.record import Plan, RecordingError, play_episode, record
from dreamgym_envs.trajectories.store import (
    TornLineWarning,
    TrajectoryError,
    TrajectoryWriter,
    decode,
    encode,
    read_trajectories,
)
from dreamgym_envs.trajectories.tasks import write_tasks
from tests.toy import Boxes, BoxesEngine, episodes, thing

SCHEMA = Boxes.schema
SUFFIXES = pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])


class RandomPlayer:
    """Tries what is there, what is not there and what is no action at all."""

    def __init__(self, domain: Boxes) -> None:
        self.domain = domain

    def reset(self, task: Task, rng: np.random.Generator) -> None:
        self.task, self.rng = task, rng

    def act(self, state: State) -> str:
        options = (*self.domain.candidates(self.task, state), "take pin 1", "jump")
        return options[int(self.rng.integers(len(options)))]


class PlayedBoxes(Boxes):
    """Boxes with somebody to play them."""

    def player(self, kind: str) -> Any:
        return RandomPlayer(self)


class BrokenBoxes(PlayedBoxes):
    """Boxes whose engine fails at its first step."""

    def engine(self, **options: Any) -> Engine:
        engine = BoxesEngine(self)
        engine.step = lambda action: 1 / 0  # type: ignore[assignment, return-value]
        return engine


def plan(**changes: Any) -> Plan:
    return Plan(**{"players": {"random": 1, "other": 2}, "seed": 3, "max_steps": 6, **changes})


def write(path: Path, trajectories: list[Trajectory]) -> None:
    with TrajectoryWriter(path, SCHEMA) as writer:
        for trajectory in trajectories:
            writer.append(trajectory)


# --- the store -------------------------------------------------------------------------------------------------------


@SUFFIXES
def test_what_is_read_is_what_was_written(tmp_path: Path, suffix: str) -> None:
    written = episodes(20)
    write(tmp_path / f"a.{suffix}", written)
    assert list(read_trajectories(tmp_path / f"a.{suffix}", SCHEMA, validate=True)) == written


def test_steps_are_stored_as_what_changes(tmp_path: Path) -> None:
    [trajectory] = episodes(1)
    document = encode(trajectory, SCHEMA)
    assert all("delta" in step for step in document["steps"])
    assert len(json.dumps(document["steps"][0])) < len(json.dumps(document["task"]["initial"])) * 2


objects = st.lists(st.sampled_from(["ball 1", "ball 2", "cube 1", "pin 1"]), unique=True).map(
    lambda names: tuple(thing(name) for name in names)
)
states = st.builds(
    lambda contents, seen, hidden, feedback: State(
        {
            "at": (),
            "holding": (),
            "boxes": tuple(
                {"name": f"box {i}", "status": "seen" if known else "unseen", "contents": inside}
                for i, (inside, known) in enumerate(zip(contents, seen, strict=True))
            ),
            "feedback": feedback,
        },
        {} if hidden is None else {"hidden": hidden},
    ),
    st.tuples(objects, objects),
    st.tuples(st.booleans(), st.booleans()),
    st.one_of(st.none(), st.just(()), st.just(({"name": "ball 9", "place": "box 1"},))),
    st.text(max_size=20),
)


@given(st.lists(states, min_size=1, max_size=4), st.floats(allow_nan=False), st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_sequence_of_states_survives_in_its_exact_order(found: list[State], reward: float, words: str) -> None:
    start, *rest = found
    steps = tuple(Step(words, state, reward, False, words) for state in rest)
    trajectory = Trajectory(Task("t", "take the ball", start), steps, "dream", words, {"n": (1, 2)})
    assert decode(json.loads(json.dumps(encode(trajectory, SCHEMA))), SCHEMA, validate=True) == trajectory


@SUFFIXES
def test_a_crash_at_any_byte_costs_the_last_line_at_most(tmp_path: Path, suffix: str) -> None:
    # Given a file of three episodes, and the size that it had after each append
    written, path, sizes = episodes(3), tmp_path / f"a.{suffix}", [0]
    with TrajectoryWriter(path, SCHEMA) as writer:
        for trajectory in written:
            writer.append(trajectory)
            sizes.append(path.stat().st_size)
    content = path.read_bytes()
    for cut in range(0, len(content), 41 if suffix == "jsonl" else 7):
        # When it is cut anywhere
        path.write_bytes(content[:cut])
        acknowledged = sum(size <= cut for size in sizes[1:])
        # Then a reader gets every episode whose append had returned
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornLineWarning)
            readable = list(read_trajectories(path, SCHEMA))
        assert readable == written[: len(readable)] and len(readable) >= acknowledged
        # and a writer goes on from there
        with TrajectoryWriter(path, SCHEMA) as writer:
            assert writer.lines == len(readable)
            writer.append(written[2])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert list(read_trajectories(path, SCHEMA)) == [*readable, written[2]]


def test_a_torn_line_is_reported_by_reader_and_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, episodes(2))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(TornLineWarning, match="ends in the middle"):
        assert len(list(read_trajectories(path, SCHEMA))) == 1
    with TrajectoryWriter(path, SCHEMA) as writer:
        assert writer.repaired > 0 and writer.lines == 1


def test_a_last_line_without_newline_is_kept_if_it_is_complete(tmp_path: Path) -> None:
    written, path = episodes(2), tmp_path / "a.jsonl"
    write(path, written)
    path.write_bytes(path.read_bytes()[:-1])
    assert list(read_trajectories(path, SCHEMA)) == written
    write(path, written)
    assert list(read_trajectories(path, SCHEMA)) == written * 2


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda d: "nonsense", "line 2: expected an object"),
        (lambda d: {**d, "steps": 3}, "line 2: expected an object"),
        (lambda d: {**d, "colour": 1}, "unknown 'colour'"),
        (lambda d: {**d, "task": {"id": "a"}}, "the task: a Task needs 'instruction'"),
        (lambda d: {**d, "task": {**d["task"], "initial": {"public": {}}}}, "the task: .*required"),
        (lambda d: {**d, "steps": [{"action": "look"}]}, "step 0: no 'delta'"),
        (lambda d: {**d, "steps": [{"action": 3, "delta": []}]}, "step 0: .*string"),
        (
            lambda d: {**d, "steps": [{"action": "a", "delta": [["set", ["colour"], 1]]}]},
            "step 0: no property 'colour'",
        ),
        (lambda d: {**d, "steps": [{"action": "a", "delta": [["set", ["at"], 1]]}]}, "step 0: at: "),
        (lambda d: {**d, "steps": [{"action": "a", "delta": [["chop", ["at"], 1]]}]}, "step 0: not an edit"),
        (lambda d: {**d, "steps": [7]}, "step 0: "),
        (lambda d: {**d, "player": 1}, "the trajectory: .*strings"),
    ],
)
def test_a_malformed_line_is_an_error_with_its_number_and_reason(tmp_path: Path, damage: Any, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    good, other = (encode(trajectory, SCHEMA) for trajectory in episodes(2))
    path.write_text("".join(json.dumps(d) + "\n" for d in (good, damage(other), good)))
    with pytest.raises(TrajectoryError, match=f"line 2: .*{reason}|{reason}"):
        list(read_trajectories(path, SCHEMA))


def test_a_line_that_is_no_json_is_an_error_unless_it_is_the_torn_last_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = json.dumps(encode(episodes(1)[0], SCHEMA))
    path.write_text(f'{line}\n{{"task": \n{line}\n')
    with pytest.raises(TrajectoryError, match="line 2"):
        list(read_trajectories(path, SCHEMA))


def test_states_in_the_middle_are_checked_on_demand(tmp_path: Path) -> None:
    [trajectory] = [t for t in episodes(30) if len(t.steps) > 2][:1]
    document = encode(trajectory, SCHEMA)
    document["steps"][0]["delta"].append(["set", ["feedback"], 7])
    document["steps"][1]["delta"].append(["set", ["feedback"], "ok"])
    decode(document, SCHEMA)
    with pytest.raises(TrajectoryError, match="step 0: feedback"):
        decode(document, SCHEMA, validate=True)


def test_a_missing_file_tells_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="dreamgym record"):
        list(read_trajectories(tmp_path / "none.jsonl", SCHEMA))


def test_compressed_files_depend_on_nothing_but_their_content(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl.gz", episodes(5))
    write(tmp_path / "b.jsonl.gz", episodes(5))
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).count(b"\n") == 5


# --- the recorder ----------------------------------------------------------------------------------------------------


def test_an_episode_is_what_the_engine_says(tmp_path: Path) -> None:
    domain = PlayedBoxes()
    trajectory = play_episode(domain, domain.engine(), plan(), 0)
    for transition in trajectory.transitions():
        if transition.action == "jump":  # not in the grammar: rejected, at no reward
            assert transition.next_state == domain.rejection(transition.state) and transition.reward == 0
        DomainFacts.check(transition.next_state)
    kept = {"players": {"other": 2.0, "random": 1.0}, "max_steps": 6, "repeats": 1, "options": {}}
    assert trajectory.metadata == {"episode": 0, "seed": 3, "plan": kept}


class DomainFacts:
    """What holds in every state of the boxes."""

    @staticmethod
    def check(state: State) -> None:
        SCHEMA.validate(state)
        names = [o["name"] for box in state.public["boxes"] for o in box["contents"]]
        assert len(names) == len(set(names))


def test_actions_outside_the_grammar_never_reach_the_engine() -> None:
    domain = PlayedBoxes()
    engine = BoxesEngine(domain)
    reached: list[str] = []
    step = engine.step
    engine.step = lambda action: (reached.append(action), step(action))[1]  # type: ignore[method-assign]
    played = [play_episode(domain, engine, plan(), index) for index in range(20)]
    actions = [s.action for trajectory in played for s in trajectory.steps]
    assert "jump" in actions and "jump" not in reached
    assert [action for action in actions if action != "jump"] == reached


def test_players_come_in_the_shares_of_the_mixture(tmp_path: Path) -> None:
    report = record(PlayedBoxes(), tmp_path / "a.jsonl", 300, plan(players={"one": 1, "two": 2, "none": 0}))
    assert 60 < report.by_player["one"] < 140 and report.by_player.keys() == {"one", "two"}
    assert report.episodes == 300 and report.transitions > 300 and report.successes > 0


@SUFFIXES
def test_the_file_does_not_depend_on_the_number_of_processes(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    record(PlayedBoxes(), one, 12, plan(repeats=3))
    record(PlayedBoxes(), two, 12, plan(repeats=3), processes=2)
    played = list(read_trajectories(one, SCHEMA))
    assert played == list(read_trajectories(two, SCHEMA))
    assert [trajectory.metadata["episode"] for trajectory in played] == list(range(12))


def test_episodes_in_a_row_can_share_a_task(tmp_path: Path) -> None:
    record(PlayedBoxes(), tmp_path / "a.jsonl", 12, plan(repeats=3))
    tasks = [trajectory.task.id for trajectory in read_trajectories(tmp_path / "a.jsonl", SCHEMA)]
    assert all(len(set(tasks[i : i + 3])) == 1 for i in range(0, 12, 3))
    assert len(set(tasks)) > 1


@SUFFIXES
def test_an_interrupted_recording_resumes_to_the_same_file(tmp_path: Path, suffix: str) -> None:
    # Given a whole recording, and one that was interrupted in its eighth episode and left half a line
    whole, part = tmp_path / f"whole.{suffix}", tmp_path / f"part.{suffix}"
    record(PlayedBoxes(), whole, 12, plan())

    def interrupt(report: recording.Recording) -> None:
        if report.episodes == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(PlayedBoxes(), part, 12, plan(), progress=interrupt)
    if suffix == "jsonl":
        part.write_bytes(part.read_bytes() + b'{"task": {"id"')
    # When it is resumed, then nothing is lost and nothing is played twice
    report = record(PlayedBoxes(), part, 12, plan(), resume=True)
    assert report.resumed == 7 and report.episodes == 12 and sum(report.by_player.values()) == 5
    assert list(read_trajectories(part, SCHEMA)) == list(read_trajectories(whole, SCHEMA))


def test_episodes_that_came_in_late_are_put_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = recording._played

    def shuffled(*args: Any) -> Iterator[Trajectory]:
        yield from reversed(list(real(*args)))

    record(PlayedBoxes(), tmp_path / "a.jsonl", 5, plan())
    monkeypatch.setattr(recording, "_played", shuffled)
    record(PlayedBoxes(), tmp_path / "b.jsonl", 5, plan())
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_an_existing_file_is_not_touched_without_resume(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(PlayedBoxes(), path, 2, plan())
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="--resume"):
        record(PlayedBoxes(), path, 5, plan())
    with pytest.raises(RecordingError, match="--seed 3"):
        record(PlayedBoxes(), path, 5, plan(seed=4), resume=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"players": {"expert": 2.0, "noisy": 1.0}}, 'players {.*}, not {"expert": 2.0, "noisy": 1.0}'),
        ({"max_steps": 7}, r"max_steps \d+, not 7"),
        ({"repeats": 2}, "repeats 1, not 2"),
        ({"options": {"split": "valid"}}, 'options {.*}, not {"split": "valid"}'),
    ],
)
def test_a_recording_goes_on_by_its_own_plan_alone(tmp_path: Path, changes: Any, told: str) -> None:
    path = tmp_path / "a.jsonl"
    record(PlayedBoxes(), path, 2, plan())
    before = path.read_bytes()
    with pytest.raises(RecordingError, match=f"{told}; go on with the same"):
        record(PlayedBoxes(), path, 4, plan(**changes), resume=True)
    assert path.read_bytes() == before


def test_a_recording_that_keeps_its_seed_alone_goes_on(tmp_path: Path) -> None:
    # Given a file of an earlier version, whose episodes do not tell the rest of their plan
    path = tmp_path / "a.jsonl"
    record(PlayedBoxes(), path, 2, plan())
    documents = [json.loads(line) for line in path.read_text().splitlines()]
    for document in documents:
        del document["metadata"]["plan"]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    assert record(PlayedBoxes(), path, 4, plan(), resume=True).resumed == 2


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_a_damaged_file_is_not_cut_as_a_torn_one_is(tmp_path: Path, place: float) -> None:
    # Given a compressed recording in whose midst bytes have changed
    path = tmp_path / "a.jsonl.gz"
    record(PlayedBoxes(), path, 6, plan())
    content = bytearray(path.read_bytes())
    middle = int(len(content) * place)
    content[middle : middle + 8] = bytes(255 - byte for byte in content[middle : middle + 8])
    path.write_bytes(content)
    # Then neither reading nor going on takes it for a shorter one, and it stays as it is
    with pytest.raises(TrajectoryError, match=r"is damaged|line \d is no JSON"):
        list(read_trajectories(path, SCHEMA))
    with pytest.raises(TrajectoryError, match=r"is damaged .* stays as it is"):
        record(PlayedBoxes(), path, 8, plan(), resume=True)
    assert path.read_bytes() == content


def test_only_a_recording_is_resumed(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", episodes(1))
    with pytest.raises(RecordingError, match=r"line 1 is no recorded episode"):
        record(PlayedBoxes(), tmp_path / "a.jsonl", 5, plan(), resume=True)


@pytest.mark.parametrize(("name", "kind"), [("notes.txt", "JSON lines"), ("notes.jsonl.gz", "compressed with gzip")])
def test_what_others_wrote_is_not_cut(tmp_path: Path, name: str, kind: str) -> None:
    # Given a file that is no recording and ends, as a torn one does, without a newline
    path = tmp_path / name
    path.write_text("keep me\nlast line of my notes")
    # When it is named by mistake
    with pytest.raises(TrajectoryError, match=f"it is not {kind}; choose another file"):
        record(PlayedBoxes(), path, 2, plan(), resume=True)
    # Then it is as it was
    assert path.read_text() == "keep me\nlast line of my notes"


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_recording_that_never_began_leaves_no_file_in_the_way(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordingError, match="episode 0 failed"):
        record(BrokenBoxes(), tmp_path / name, 2, plan())
    assert not any(tmp_path.iterdir())
    record(PlayedBoxes(), tmp_path / name, 2, plan())


def test_no_episodes_give_no_tasks_and_leave_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl.gz"
    assert write_tasks(path, (episode.task for episode in episodes(2))) > 0
    before = path.read_bytes()
    with pytest.raises(ValueError, match="no tasks to write"):
        write_tasks(path, [])
    assert path.read_bytes() == before


class DyingBoxes(PlayedBoxes):
    """Boxes whose engine takes its process along, unless that is the test's."""

    def engine(self, **options: Any) -> Engine:
        engine = BoxesEngine(self)
        if multiprocessing.parent_process() is not None:
            engine.step = lambda action: os._exit(9)  # type: ignore[assignment, return-value]
        return engine


def test_a_process_that_dies_is_an_error_not_a_wait(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"died \(exit code 9.*--resume"):
        record(DyingBoxes(), tmp_path / "a.jsonl", 3, plan(), processes=2)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failing_engine_is_named_with_its_episode(tmp_path: Path, processes: int) -> None:
    with pytest.raises(RecordingError, match=r"episode \d failed: ZeroDivisionError"):
        record(BrokenBoxes(), tmp_path / "a.jsonl", 3, plan(), processes=processes)


@pytest.mark.parametrize("players", [{}, {"a": 0}, {"a": -1, "b": 2}, {"a": float("nan")}, {"a": float("inf")}])
def test_a_mixture_has_a_share_above_zero(players: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="mixture"):
        plan(players=players)
