"""The decoding grammar: which tokens may come next, so that an invalid prediction cannot leave the model.

`Parser.parse` is a coroutine: it yields the tokens that are allowed, is sent the one that was chosen, and returns the
prediction. It follows the schema and the query's state as edited so far, and forbids only what contradicts them or the
model's own commitments:

- an edit must address something that is there; what is added must fit in, what is removed must be there;
- names that the schema calls unique occur once; a thing that exists is referred to by its slot or not at all;
- an array is set as a whole exactly when it becomes known ("x-known"), and edited only while it is known;
- where the model committed to what is hidden ("x-commits"), a reveal holds what was promised for that place and nothing
  else of the kinds that the instruction names;
- what the domain says is owed now is written before the edits behind it (see `Domain.owed`);
- a new element whose name is a handle is given a free one, or is one that the private state knows already.

It never decides an outcome.
"""

from collections.abc import Generator, Sequence

import numpy as np

from dreamgym_envs.core.delta import Edit
from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.experience.choices import Choice, GrammarTables
from dreamgym_envs.experience.codec import Prompt
from dreamgym_envs.experience.model import Prediction
from dreamgym_envs.experience.scene import MOST_EDITS, Scene, parent_of
from dreamgym_envs.experience.values import Values

MOST_LINES = 24

Parse = Generator[Choice, int, Prediction]


class Parser:
    """Reads one output, token by token.

    Args:
        tables: Choices of the codec.
        prompt: The prompt that the output answers.
        state: The query's state.
        reasons: Whether the output begins with reasoning.
        rng: Where handles of new things come from; None makes them from the prompt.
    """

    def __init__(
        self,
        tables: GrammarTables,
        prompt: Prompt,
        state: State,
        reasons: bool = True,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.tables = tables
        self.codec = tables.codec
        self.prompt = prompt.copy()
        self.reasons = reasons
        self.scene = Scene(tables, self.prompt, state)
        self.values = Values(tables, self.prompt, self.scene, rng)

    def parse(self) -> Parse:
        """Yield what may come next, be sent what came; return the prediction."""
        lines = (yield from self._reasoning()) if self.reasons else []
        if not self.reasons:
            yield self.tables.choice((self.tables.delta,))
        edits: list[Edit] = []
        reveal: tuple[int, tuple[str, ...]] | None = None
        while True:
            token = yield self.tables.choice((reveal[0],)) if reveal is not None else self._edit_choice(edits)
            if token in self.tables.outcome_of:
                reward, terminated = self.tables.outcome_of[token]
                return Prediction("\n".join(lines), tuple(edits), reward, terminated)
            edit = yield from self._edit(token, reveal[1] if reveal is not None else None)
            edits.append(edit)
            reveal = self.scene.apply(edit)

    def _reasoning(self) -> Generator[Choice, int, list[str]]:
        lines: list[str] = []
        while True:
            ids = self.values.texts("reasoning") if len(lines) < MOST_LINES else ()
            token = yield self.tables.choice((*ids, self.tables.delta), judged=True)
            if token == self.tables.delta:
                return lines
            lines.append((yield from self.values.text(token, "reasoning", 200)))

    def _edit_choice(self, edits: list[Edit]) -> Choice:
        """Return the operations that are possible, in the order in which `diff` writes them, and the outcomes."""
        tables = self.tables
        if len(edits) >= MOST_EDITS:
            return tables.choice(tables.outcomes, judged=True)
        first = tables.rank(edits[-1].op, edits[-1].path[0]) if edits else 0
        operations = tables.at_step if self.reasons else tables.at_reset
        if self.scene.owed:
            owed = next(iter(self.scene.owed))[0]
            last = tables.rank("set", owed.partition(".")[0])
            due = self.codec.operation_ids[f"set {owed}"]
            before = (
                token
                for rank, token, op, names, nodes in operations
                if first <= rank < last and self.scene.possible(op, names, nodes)
            )
            return tables.choice((*before, due), judged=True)
        ids = [
            token
            for rank, token, op, names, nodes in operations
            if rank >= first and self.scene.possible(op, names, nodes)
        ]
        # How many things are invented is invented too.
        more = bool(edits) and edits[-1].op == "add" and self.scene.invents(edits[-1].path[0])
        return tables.choice((*ids, *tables.outcomes), sampled=more, judged=not more)

    def _edit(self, token: int, forced: tuple[str, ...] | None) -> Generator[Choice, int, Edit]:
        op, names, nodes = self.tables.operation_of[token]
        dotted = ".".join(names)
        promise: Sequence[JSON] = ()
        if op == "set" and self.scene.owed and dotted == next(iter(self.scene.owed))[0]:
            (_, forced), promise = next(iter(self.scene.owed.items()))
        depth = sum(node.kind == "array" for node in nodes[:-1])
        keys: tuple[str, ...] = ()
        for position in range(depth):
            allowed = [forced[position]] if forced is not None else self.scene.targets(op, names, nodes, keys)
            keys = (*keys, (yield from self.values.slot(allowed)))
        path: list[str] = []
        rest = list(keys)
        for name, node in zip(names, nodes, strict=True):
            path.append(name)
            if node is not nodes[-1] and node.kind == "array":
                path.append(rest.pop(0))
        node = nodes[-1]
        value: JSON
        if op == "remove":
            value = ((yield from self.values.slot(self.scene.targets(op, names, nodes, keys))),)
        elif op == "add":
            assert node.items is not None
            there = parent_of(self.codec.schema.root, self.scene.state, tuple(path))[names[-1]]
            taken = [other[node.key] for other in there] if node.key is not None else []
            element = yield from self.values.element(node, dotted, node.invented, taken=taken, joins=True)
            value = (element,)
        elif node.kind == "array":
            sampled = node.invented or node.known is not None
            value = yield from self.values.array(node, dotted, keys, sampled, promise)
        else:
            value = yield from self.values.scalar(node, dotted, node.invented)
        return Edit(op, tuple(path), value)  # type: ignore[arg-type]
