"""A domain of three boxes, small enough to reason about by hand, with everything a schema can say."""

from typing import Any

import numpy as np

from dreamgym_envs.core.schema import Schema
from dreamgym_envs.core.types import State, Step, Task, Trajectory, Transition
from dreamgym_envs.domains.base import Action, Domain, Engine, Player

OBJECT = {
    "type": "object",
    "required": ["name", "flags"],
    "properties": {
        "name": {"type": "string", "maxLength": 40, "x-unique": "object"},
        "flags": {"type": "array", "items": {"enum": ["wet", "hot"]}},
    },
}
SCHEMA = {
    "type": "object",
    "title": "boxes",
    "required": ["at", "holding", "boxes", "feedback"],
    "properties": {
        "at": {"type": "array", "items": {"type": "string", "maxLength": 40, "x-ref": "boxes"}},
        "holding": {"type": "array", "maxItems": 1, "x-key": "name", "items": OBJECT},
        "boxes": {
            "type": "array",
            "x-key": "name",
            "items": {
                "type": "object",
                "required": ["name", "status", "contents"],
                "properties": {
                    "name": {"type": "string", "maxLength": 40},
                    "status": {"enum": ["unseen", "seen"]},
                    "contents": {
                        "type": "array",
                        "x-key": "name",
                        "x-known": {"field": "status", "values": ["seen"]},
                        "items": OBJECT,
                    },
                },
            },
        },
        "feedback": {"type": "string", "maxLength": 200, "x-event": True},
        "hidden": {
            "type": "array",
            "x-private": True,
            "x-key": "name",
            "x-commits": {"array": "boxes.contents", "by": "place"},
            "items": {
                "type": "object",
                "required": ["name", "place"],
                "properties": {
                    "name": {"type": "string", "maxLength": 40, "x-unique": "object"},
                    "place": {"type": "string", "maxLength": 40, "x-ref": "boxes"},
                },
            },
        },
    },
}


def thing(name: str, *flags: str) -> dict[str, Any]:
    return {"name": name, "flags": flags}


class Boxes(Domain):
    """Look into boxes, take the ball that the instruction names."""

    name = "boxes"
    title = "Boxes"
    max_episode_steps = 6
    max_candidates = 16
    schema = Schema(SCHEMA)

    def parse(self, action: str) -> Action | None:
        words = action.split()
        if len(words) == 3 and words[0] in ("look", "take", "drop"):
            return Action(words[0], (" ".join(words[1:]),))
        return None

    def candidates(self, task: Task, state: State) -> tuple[str, ...]:
        looks = tuple(f"look {box['name']}" for box in state.public["boxes"])
        takes = tuple(
            f"take {item['name']}"
            for box in state.public["boxes"]
            if box["name"] in state.public["at"]
            for item in box["contents"]
        )
        return looks + (takes if not state.public["holding"] else ())

    def rejection(self, state: State) -> State:
        return State({**state.public, "feedback": "What?"}, state.private)

    def focus(self, task: Task, state: State, action: Action | None) -> dict[str, Any]:
        if action is None:
            return {"boxes": tuple({"name": box["name"]} for box in state.public["boxes"])}
        near = [b for b in state.public["boxes"] if b["name"] in action.arguments or b["name"] in state.public["at"]]
        part: dict[str, Any] = {name: state.public[name] for name in ("at", "holding")}
        part["boxes"] = tuple(near)
        hidden = tuple(e for e in state.private.get("hidden", ()) if e["place"] in action.arguments)
        return {**part, "hidden": hidden} if hidden else part

    def explain(self, transition: Transition) -> str:
        action = self.parse(transition.action)
        assert action is not None
        wanted = transition.task.instruction.split()[-1]
        lines = [f"{action.verb} {action.arguments[0]}"]
        if action.verb == "take":
            lines.append(f"wanted: {'yes' if action.arguments[0].startswith(wanted) else 'no'}")
        return "\n".join(lines)

    def settle(self, state: State) -> State:
        seen = {item["name"] for box in state.public["boxes"] for item in box["contents"]}
        seen |= {item["name"] for item in state.public["holding"]}
        hidden = tuple(entry for entry in state.private.get("hidden", ()) if entry["name"] not in seen)
        return State(state.public, {"hidden": hidden})

    def hindsight(self, trajectory: Trajectory) -> list[dict[str, Any]]:
        wanted = trajectory.task.instruction.split()[-1]
        reveals: list[tuple[int, dict[str, str]]] = []
        seen: set[str] = set()
        for index, step in enumerate(trajectory.steps):
            for box in step.state.public["boxes"]:
                for item in box["contents"]:
                    if item["name"].startswith(wanted) and item["name"] not in seen:
                        seen.add(item["name"])
                        reveals.append((index, {"name": item["name"], "place": box["name"]}))
        return [
            {"hidden": tuple(entry for at, entry in reveals if at >= index)} for index in range(len(trajectory.steps))
        ]

    def goal_satisfied(self, task: Task, state: State) -> bool:
        wanted = task.instruction.split()[-1]
        return any(item["name"].startswith(wanted) for item in state.public["holding"])

    def render(self, task: Task, state: State) -> str:
        return f"{task.instruction}\n{state.public['feedback']}"

    def tasks(self, split: str = "train") -> list[Task]:
        if split != "train":
            raise ValueError(f"no split {split!r}; there is: train")
        return [task(i, kind) for i, kind in enumerate(("ball", "cube", "ball", "cube"))]

    def engine(self, **options: Any) -> Engine:
        return BoxesEngine(self)

    def player(self, kind: str) -> Player:
        raise ValueError(f"no player {kind!r}")


def task(index: int, kind: str) -> Task:
    boxes = tuple({"name": f"box {n}", "status": "unseen", "contents": ()} for n in (1, 2, 3))
    public = {"at": (), "holding": (), "boxes": boxes, "feedback": "Three boxes."}
    return Task(f"train-{index}", f"take the {kind}", State(public), family=kind)


class BoxesEngine:
    """The true boxes: where things are is drawn at reset."""

    task_ids = tuple(f"train-{i}" for i in range(4))

    def __init__(self, domain: Boxes) -> None:
        self.domain = domain

    def reset(self, rng: np.random.Generator, task_id: str | None = None) -> Task:
        tasks = self.domain.tasks()
        self.task = tasks[int(rng.integers(len(tasks)))]
        if task_id is not None:
            if task_id not in self.task_ids:
                raise ValueError(f"no task {task_id!r}")
            self.task = next(t for t in tasks if t.id == task_id)
        names = ["ball 1", "ball 2", "cube 1", "cube 2", "pin 1"]
        self.places = {name: f"box {int(rng.integers(1, 4))}" for name in names}
        self.state = self.task.initial
        return self.task

    def step(self, action: str) -> tuple[State, float, bool]:
        parsed = self.domain.parse(action)
        assert parsed is not None
        name = parsed.arguments[0]
        public = dict(self.state.public)
        held = {item["name"] for item in public["holding"]}
        if parsed.verb == "look" and any(box["name"] == name for box in public["boxes"]):
            inside = tuple(thing(o) for o in sorted(self.places) if self.places[o] == name and o not in held)
            public["at"] = (name,)
            public["boxes"] = tuple(
                {**box, "status": "seen", "contents": inside} if box["name"] == name else box for box in public["boxes"]
            )
            public["feedback"] = f"You look into {name}."
        elif parsed.verb == "take" and not held and self.places.get(name) in public["at"]:
            public["holding"] = (thing(name),)
            public["boxes"] = tuple(
                {**box, "contents": tuple(o for o in box["contents"] if o["name"] != name)} for box in public["boxes"]
            )
            public["feedback"] = f"You take {name}."
        else:
            public["feedback"] = "Nothing."
        self.state = State(public)
        done = self.domain.goal_satisfied(self.task, self.state)
        return self.state, float(done), done

    def close(self) -> None:
        pass


def episodes(count: int, seed: int = 0) -> list[Trajectory]:
    """Return random episodes of the true boxes."""
    rng = np.random.default_rng(seed)
    domain = Boxes()
    engine = BoxesEngine(domain)
    found = []
    for _ in range(count):
        start = engine.reset(rng)
        steps: list[Step] = []
        state = start.initial
        while len(steps) < domain.max_episode_steps and not (steps and steps[-1].terminated):
            options = (*domain.candidates(start, state), "take pin 1", "drop pin 1")
            action = options[int(rng.integers(len(options)))]
            state, reward, terminated = engine.step(action)
            steps.append(Step(action, state, reward, terminated))
        found.append(Trajectory(start, tuple(steps), player="random"))
    return found
