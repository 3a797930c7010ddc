"""ALFWorld's scripted players, in small households that answer like the engine."""

import numpy as np
import pytest

from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains import get_domain
from dreamgym_envs.domains.alfworld import grammar, text
from dreamgym_envs.domains.alfworld.goal import goal_of, satisfied
from dreamgym_envs.domains.alfworld.likely import likelihood
from dreamgym_envs.domains.alfworld.players import PLAYERS, Noisy, player
from tests.household import NOTHING, Household

KITCHEN = {
    "cabinet 1": [],
    "cabinet 2": ["plate 1", "mug 2"],
    "countertop 1": ["knife 1", "apple 1", "mug 1"],
    "drawer 1": ["spoon 1"],
    "fridge 1": ["apple 2", "bowl 1"],
    "microwave 1": [],
    "shelf 1": ["houseplant 1"],
    "shelf 2": ["desklamp 1"],
    "sinkbasin 1": ["fork 1"],
}
CLOSED = {"cabinet 1", "cabinet 2", "drawer 1", "fridge 1", "microwave 1"}
TASKS = (
    "put a apple in drawer.",
    "put a clean mug in shelf.",
    "heat some apple and put it in sinkbasin.",
    "cool some mug and put it in cabinet.",
    "put two apple in cabinet.",
    "find two mug and put them in shelf.",
    "look at bowl under the desklamp.",
)


def kitchen(instruction: str = TASKS[0], **changes) -> Household:
    contents = {place: list(things) for place, things in KITCHEN.items()}
    return Household(instruction, contents, set(CLOSED), **changes)


class Episode:
    """What came of playing a household: every command, answer and state."""

    def __init__(self, house: Household, kind: str, seed: int = 0, steps: int = 50) -> None:
        self.state = text.initial_state(house.intro())
        self.task = Task("test", house.instruction, self.state)
        self.goal = goal_of(house.instruction)
        self.commands: list[str] = []
        self.answers: list[str] = []
        self.states: list[State] = []
        self.success = False
        acting = player(kind)
        acting.reset(self.task, np.random.default_rng(seed))
        while not self.success and len(self.commands) < steps:
            command = acting.act(self.state)
            answer, self.success = house.step(command)
            self.state = text.observe(self.state, command, answer)
            self.commands.append(command)
            self.answers.append(answer)
            self.states.append(self.state)


# --- the expert -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instruction", TASKS)
@pytest.mark.parametrize("seed", range(5))
def test_the_expert_reaches_every_family_of_goals(instruction, seed):
    episode = Episode(kitchen(instruction), "expert", seed, steps=30)
    assert episode.success
    assert satisfied(episode.goal, episode.state)


def test_the_expert_needs_no_step_too_many_when_it_sees_what_it_needs():
    episode = Episode(
        Household("put a clean mug in countertop.", {"countertop 1": ["mug 1"], "sinkbasin 1": []}), "expert"
    )
    assert episode.commands == [
        "go to countertop 1",
        "take mug 1 from countertop 1",
        "go to sinkbasin 1",
        "clean mug 1 with sinkbasin 1",
        "go to countertop 1",
        "move mug 1 to countertop 1",
    ]


def test_the_expert_knows_where_things_are_likely_to_be():
    house = Household(
        "put a pan in shelf.", {"shelf 1": [], "cabinet 1": [], "stoveburner 1": ["pan 1"]}, {"cabinet 1"}
    )
    assert Episode(house, "expert").commands[0] == "go to stoveburner 1"
    assert likelihood("pillow", "bed") > likelihood("pillow", "countertop")


@pytest.mark.parametrize("seed", range(10))
def test_the_expert_finds_things_in_receptacles_that_share_a_place(seed):
    """Given two cabinets and a shelf used from one place, going to the second of them fails; that is no dead end."""
    together = (frozenset({"cabinet 1", "cabinet 2", "shelf 1"}), frozenset({"shelf 2", "countertop 1"}))
    for instruction in TASKS:
        assert Episode(kitchen(instruction, together=together), "expert", seed, steps=35).success


def test_the_expert_does_the_treatment_again_that_was_undone():
    """Given a hot apple where a cool one is wanted, it is cooled before it is placed."""
    house = kitchen("put a cool apple in shelf.")
    house.contents["shelf 1"] += house.contents["countertop 1"][1:2]
    del house.contents["countertop 1"][1], house.contents["fridge 1"][0]
    house.flags["apple 1"] = {"hot"}
    episode = Episode(house, "expert")
    assert episode.success
    assert any(command.startswith("cool apple 1") for command in episode.commands)


def test_the_expert_does_not_turn_around_between_places_that_hold_as_much():
    # Given two shelves with a mug each, when two mugs are to be on one shelf
    moved = {"shelf 1": ["mug 1"], "shelf 2": ["mug 2"], "cabinet 2": [], "countertop 1": ["knife 1"]}
    for seed in range(5):
        contents = {place: list(things) for place, things in {**KITCHEN, **moved}.items()}
        episode = Episode(Household("put two mug in shelf.", contents, set(CLOSED)), "expert", seed, steps=16)
        # Then one of them is found and carried over
        assert episode.success


def test_the_expert_gets_rid_of_what_it_does_not_want():
    """Given a fork in the hand, it is put down, and the task is done all the same."""
    house = kitchen("put a apple in shelf.")
    state = text.initial_state(house.intro())
    expert = player("expert")
    expert.reset(Task("test", house.instruction, state), np.random.default_rng(0))
    for command in ("go to sinkbasin 1", "take fork 1 from sinkbasin 1"):
        state = text.observe(state, command, house.step(command)[0])
    for _ in range(12):
        command = expert.act(state)
        answer, done = house.step(command)
        state = text.observe(state, command, answer)
        if done:
            break
    assert done


def test_the_expert_goes_on_in_a_world_that_never_answers_as_it_should():
    """Given a dream in which everything fails, it does not insist on one action for ever."""
    house = kitchen()
    state = text.initial_state(house.intro())
    expert = player("expert")
    expert.reset(Task("test", house.instruction, state), np.random.default_rng(0))
    commands = [expert.act(State({**state.public, "feedback": NOTHING})) for _ in range(50)]
    assert len(set(commands)) > len(KITCHEN) / 2
    assert max(commands.count(command) for command in commands) < len(commands) / 2


def test_an_instruction_without_a_goal_is_an_error():
    with pytest.raises(ValueError, match="no goal in the instruction 'sing'"):
        player("expert").reset(Task("test", "sing", State({})), np.random.default_rng(0))


# --- the others -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(PLAYERS))
def test_every_player_speaks_the_grammar_and_repeats_itself_with_the_same_seed(kind):
    for instruction in TASKS:
        episode = Episode(kitchen(instruction), kind, seed=3)
        assert all(grammar.parse(command) for command in episode.commands)
        assert Episode(kitchen(instruction), kind, seed=3).commands == episode.commands


@pytest.mark.parametrize("kind", ["noisy", "random", "nearmiss", "prober"])
def test_another_seed_is_another_game(kind):
    assert len({tuple(Episode(kitchen(), kind, seed).commands) for seed in range(5)}) > 1


def test_a_player_forgets_the_last_episode():
    def commands(acting):
        house = kitchen()
        state = text.initial_state(house.intro())
        acting.reset(Task("test", house.instruction, state), np.random.default_rng(1))
        said = []
        for _ in range(10):
            said.append(acting.act(state))
            state = text.observe(state, said[-1], house.step(said[-1])[0])
        return said

    for kind in PLAYERS:
        acting = player(kind)
        assert commands(acting) == commands(acting)


def test_the_random_player_takes_candidates_only():
    episode = Episode(kitchen(), "random")
    before = [episode.task.initial, *episode.states]
    for state, command in zip(before, episode.commands, strict=False):
        assert command in grammar.candidates(episode.task, state)


def test_the_noisy_player_is_as_noisy_as_one_wants():
    house = kitchen()
    state = text.initial_state(house.intro())
    task = Task("test", house.instruction, state)

    def first(noise: float) -> set[str]:
        said = set()
        for seed in range(40):
            acting = Noisy(noise)
            acting.reset(task, np.random.default_rng(seed))
            said.add(acting.act(state))
        return said

    assert len(first(0.0)) <= 2 < len(first(1.0))


def test_the_explorer_looks_into_everything_before_it_acts():
    episode = Episode(kitchen("put a apple in drawer."), "explorer", steps=60)
    first = next(i for i, command in enumerate(episode.commands) if command.startswith("take"))
    seen = {row["status"] for row in episode.states[first - 1].public["receptacles"]}
    assert not seen & {"unseen", "closed"}


SIGNS = {
    "another kind of object is placed": lambda g, verb, a, held: (
        verb == "move" and a[0] != g.object and a[1] == g.receptacle
    ),
    "the object is placed elsewhere": lambda g, verb, a, held: (
        verb == "move" and a[0] == g.object and a[1] != g.receptacle
    ),
    "the flag is missing": lambda g, verb, a, held: verb == "move" and a == (g.object, g.receptacle) and not held,
    "the flag is another": lambda g, verb, a, held: (
        verb == "move" and a == (g.object, g.receptacle) and "clean" in held
    ),
    "the flag was undone": lambda g, verb, a, held: verb == "move" and a == (g.object, g.receptacle) and "cool" in held,
}


def test_near_misses_of_a_hot_apple_are_of_every_sort_and_earn_nothing():
    goal = goal_of("put a hot apple in shelf.")
    found = dict.fromkeys(SIGNS, 0)
    for seed in range(60):
        episode = Episode(kitchen("put a hot apple in shelf."), "nearmiss", seed, steps=70)
        before = [episode.task.initial, *episode.states]
        for state, command, answer in list(zip(before, episode.commands, episode.answers, strict=False))[:-1]:
            action = grammar.parse(command)
            if answer == NOTHING:
                continue
            kinds = tuple(grammar.kind(name) for name in action.arguments)
            held = state.public["holding"][0]["flags"] if state.public["holding"] else ()
            for name, sign in SIGNS.items():
                found[name] += sign(goal, action.verb, kinds, held)
    assert all(found.values()), found


def test_near_misses_of_looking_light_the_lamp_in_vain_in_every_way():
    hands = set()
    for seed in range(60):
        episode = Episode(kitchen("look at bowl under the desklamp."), "nearmiss", seed, steps=70)
        for command, state in zip(episode.commands[:-1], episode.states[:-1], strict=True):
            if command == "use desklamp 1" and state.public["feedback"] != NOTHING:
                hands.add(grammar.kind(state.public["holding"][0]["name"]) if state.public["holding"] else "empty")
    assert "empty" in hands
    assert "bowl" not in hands
    assert len(hands) >= 3


@pytest.mark.parametrize("instruction", TASKS)
def test_near_misses_mostly_end_well(instruction):
    won = [Episode(kitchen(instruction), "nearmiss", seed, steps=70).success for seed in range(20)]
    assert np.mean(won) > 0.6


def test_the_prober_runs_into_every_kind_of_failure_and_still_gets_there():
    failed, won = set(), []
    for seed in range(40):
        for instruction in TASKS:
            episode = Episode(kitchen(instruction), "prober", seed, steps=70)
            won.append(episode.success)
            failed |= {
                grammar.parse(command).verb
                for command, answer in zip(episode.commands, episode.answers, strict=True)
                if answer == NOTHING
            }
    assert failed >= {"go", "open", "close", "take", "move", "clean", "heat", "cool", "use", "slice", "examine"}
    assert np.mean(won) > 0.9


def test_an_unknown_player_is_an_error_that_lists_those_there_are():
    with pytest.raises(ValueError, match=r"no player 'wizard'; there are: expert, noisy, random, .*prober"):
        get_domain("alfworld").player("wizard")


# --- in the real engine -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_expert_solves_houses_in_the_real_engine():
    """Given generated houses, the expert solves one of each family, and the state tells success as the engine does."""
    pytest.importorskip("textworld", reason="the extra alfworld is not installed")
    domain = get_domain("alfworld")
    engine = domain.engine(split="train", count=6)
    try:
        for index, task_id in enumerate(engine.task_ids):
            task = engine.reset(np.random.default_rng(0), task_id)
            acting = domain.player("expert")
            acting.reset(task, np.random.default_rng(index))
            state, done = task.initial, False
            for _ in range(domain.max_episode_steps):
                state, _, done = engine.step(acting.act(state))
                assert domain.goal_satisfied(task, state) is done
                if done:
                    break
            assert done, task.instruction
    finally:
        engine.close()
