"""The codec: queries to token ids and predictions to token ids, for any domain's schema.

What makes a compact model right is the form of its text (facts of the prototype). The form, in five ideas:

- References, not copies. Every string of the query that an output may need gets a slot token at its first mention, the
  action's arguments first; afterwards prompt and output refer to the slot. "You pick up the mug 1 from the desk 1." is
  `You pick up the ⟦1⟧ from the ⟦2⟧.` in every query, so frequent strings, once their slots are abstracted, are one
  token each: the lexicon. Only new text is spelt, in subwords.
- Kinds. "mug 1" is written as its slot and its kind, "mug"; a new name as kind and number.
- Marks. A kind that the instruction names carries the mark of that place, any other the mark 0, so that "is this what
  is wanted?" is a comparison of two tokens and holds for kinds never seen in training.
- Mentions. Where names are handles that tell nothing (schema keyword "x-handle"), what an instruction names takes the
  place of kinds: each thing it names gets a reference, and texts that name it too refer to it (`prose`).
- Deltas. The output is reasoning lines, edits of the state and one token for reward and end.

`Codec` holds the tables (codec.json); `grammar.Parser` reads outputs back and says which tokens may come next.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dreamgym_envs.core.delta import Edit, diff
from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON, Step, Transition
from dreamgym_envs.domains.base import Action, Domain
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.prose import segments, units
from dreamgym_envs.experience.symbols import (
    ACTION,
    CLOSE,
    DELTA,
    DEMONSTRATION,
    END,
    HISTORY,
    HOLE,
    NEW,
    OPEN,
    OUTPUT,
    STRUCTURE,
    TASK,
    Tables,
    abstracted,
    enum_values,
    split_instruction,
    split_number,
    walk,
)
from dreamgym_envs.experience.vocabulary import Vocabulary

FILE = "codec.json"


@dataclass(slots=True)
class Prompt:
    """A query as token ids, with the strings that its slots stand for.

    Attributes:
        ids: Token ids.
        slots: Slot by string. What the instruction names has the slots behind those of the state.
        strings: String by slot.
        marks: Marks by kind, as the instruction gives them.
        mentions: Token ids by what the instruction names.
        count: How many slots the state's strings have; they are numbered from 1.
        shown: Keys of the elements that the prompt shows, by top-level array: only these can be edited.
        owed: Strings that the answer has to add, by the path of their array (see `Domain.owed`).
    """

    ids: list[int]
    slots: dict[str, int]
    strings: dict[int, str]
    marks: Mapping[str, int] = field(default_factory=dict)
    mentions: Mapping[str, int] = field(default_factory=dict)
    count: int = 0
    shown: dict[str, frozenset[str]] = field(default_factory=dict)
    owed: Mapping[tuple[str, ...], Sequence[str]] = field(default_factory=dict)

    def refer(self, name: str) -> int:
        """Give a string the next slot; return it."""
        self.count += 1
        self.slots[name] = self.count
        self.strings[self.count] = name
        return self.count

    def copy(self) -> "Prompt":
        """Return a prompt whose slots an answer may add to."""
        return replace(self, slots=dict(self.slots), strings=dict(self.strings), shown=dict(self.shown))


class Codec:
    """Writes queries and predictions as token ids.

    Args:
        domain: The domain whose schema and action grammar the text follows.
        tables: What was learned from data.
        vocabulary: Ids of the symbols and of text.
    """

    def __init__(self, domain: Domain, tables: Tables, vocabulary: Vocabulary) -> None:
        self.domain = domain
        self.schema = domain.schema
        self.tables = tables
        self.vocabulary = vocabulary
        ids = vocabulary.ids
        self.structure = {name: ids[name] for name in STRUCTURE}
        self.mention_ids = [ids[f"<@{i}>"] for i in range(1, tables.mentions + 1)]
        self.slot_ids = [0] + [ids[f"<${i}>"] for i in range(1, tables.slots + 1)] + self.mention_ids
        self.mark_ids = [ids[f"<#{i}>"] for i in range(tables.marks + 1)]
        self.number_ids = [0] + [ids[f"<n{i}>"] for i in range(1, tables.numbers + 1)]
        self.verb_ids = {verb: ids[f"<do {verb}>"] for verb in tables.verbs}
        self.kind_ids = {kind: ids[f"<kind {kind}>"] for kind in tables.kinds}
        self.operation_ids = {operation: ids[f"<{operation}>"] for operation in tables.operations}
        self.outcome_ids = {
            (reward, end): ids[f"<reward {reward:g}{' end' if end else ''}>"] for reward, end in tables.outcomes
        }
        self.path_ids = {path: ids[f"<{path}>"] for path, _ in walk(self.schema.root)}
        self.enum_ids = {
            (path, value): ids[f"<{path.rpartition('.')[2]}={value}>"]
            for path, node in walk(self.schema.root)
            for value in enum_values(node)
        }
        self.phrase_ids = {phrase: ids[f"<phrase {phrase}>"] for phrase in tables.phrases}
        self.lexicon_ids = {
            path: {text: self.phrase_ids.get(text) or ids[f"<{path}: {text}>"] for text in texts}
            for path, texts in tables.lexicon.items()
        }
        self.new_id = ids.get(NEW, -1)
        self._idle = frozenset(tables.idle)
        self._instruction = lru_cache(maxsize=8192)(self._encode_instruction)

    # --- files ---------------------------------------------------------------------------------------------------

    def save(self, directory: Path) -> None:
        """Write codec.json and tokenizer.json."""
        (directory / FILE).write_text(json.dumps(asdict(self.tables), indent=1, ensure_ascii=False), encoding="utf-8")
        self.vocabulary.save(directory)

    @classmethod
    def load(cls, directory: Path, domain: Domain) -> "Codec":
        """Read codec.json and tokenizer.json.

        Raises:
            ValueError: The codec belongs to another domain, or the two files do not fit each other.
        """
        raw: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
        if raw.get("domain") != domain.name:
            raise ValueError(
                f"the checkpoint {directory} plays {raw.get('domain')!r}, not {domain.name!r}; "
                f"fit one with `dreamgym fit {domain.name}`"
            )
        for key in ("verbs", "kinds", "operations", "phrases", "idle", "references"):
            raw[key] = tuple(raw.get(key, ()))
        raw["outcomes"] = tuple((float(reward), bool(end)) for reward, end in raw["outcomes"])
        for key in ("lexicon", "words"):
            raw[key] = {path: tuple(texts) for path, texts in raw.get(key, {}).items()}
        tables = Tables(**raw)
        return cls(domain, tables, Vocabulary.load(directory, tables.symbols(domain.schema.root)))

    # --- prompts -------------------------------------------------------------------------------------------------

    def encode(self, query: Query) -> Prompt:
        """Return the prompt of a query: demonstrations, task, history, action, the state in focus."""
        ids: list[int] = []
        for demonstration in query.demonstrations[: self.tables.demonstrations]:
            ids.append(self.structure[DEMONSTRATION])
            ids += self.encode_example(*example(self.domain, demonstration))[1]
        prompt = self._begin(query)
        ids += prompt.ids
        prompt.ids = ids
        return prompt

    def encode_example(self, query: Query, target: Prediction) -> tuple[int, list[int]]:
        """Return (length of the prompt, ids of prompt and output) of a query with its answer."""
        prompt = self.encode(query)
        return len(prompt.ids), prompt.ids + self.encode_output(prompt, target)

    def _begin(self, query: Query) -> Prompt:
        prompt = self._instruction(query.task.instruction).copy()
        prompt.ids = [self.structure[TASK], *prompt.ids]
        action = None if query.action is None else self.domain.parse(query.action)
        if self.tables.history:
            for step in query.history[-self.tables.history :]:
                self._write_step(prompt, step)
        focus = self.domain.focus(query.task, query.state, action)
        for name, node in self.schema.root.children.items():
            if node.key is not None and name in focus:
                prompt.shown[name] = frozenset(element[node.key] for element in focus[name])
        prompt.ids.append(self.structure[ACTION])
        if action is not None:
            self._write_action(prompt, action, focus)
            prompt.owed = self.domain.owed(query.task, query.state, action)
        for text in self.domain.comparisons(query.task, query.state, action):
            prompt.ids += self._text(prompt, "comparisons", text)
        for name, node in self.schema.root.children.items():
            if name in focus:
                self._write(prompt, node, focus[name], name)
        prompt.ids.append(self.structure[OUTPUT])
        return prompt

    def _encode_instruction(self, instruction: str) -> Prompt:
        """Write an instruction: known pieces between what it names, each behind its mark or reference."""
        prompt = Prompt([], {}, {})
        pieces = self.lexicon_ids.get("instruction", {})
        if self.tables.mentions:
            for words, names in units(instruction, self.phrase_ids, self._idle):
                if names:
                    prompt.ids += self._named(prompt, words)
                else:
                    prompt.ids += [pieces[words]] if words in pieces else self._spell(words)
            return prompt
        marks: dict[str, int] = {}
        for piece, kind in split_instruction(instruction, self.kind_ids):
            if piece:
                prompt.ids += [pieces[piece]] if piece in pieces else self._spell(piece)
            if kind:
                if kind not in marks and len(marks) < self.tables.marks:
                    marks[kind] = len(marks) + 1
                prompt.ids += [self.mark_ids[marks[kind]]] if kind in marks else []
                prompt.ids.append(self.kind_ids[kind])
        prompt.marks = marks
        return prompt

    def _named(self, prompt: Prompt, words: str) -> list[int]:
        """Return what the instruction names, behind the reference that it has from now on."""
        mentions = prompt.mentions
        if words not in mentions and len(mentions) < self.tables.mentions:
            slot = self.tables.slots + len(mentions) + 1
            prompt.mentions = {**mentions, words: self.slot_ids[slot]}
            prompt.slots[words] = slot
            prompt.strings[slot] = words
        phrase = self.phrase_ids.get(words)
        known = [prompt.mentions[words]] if words in prompt.mentions else []
        return [*known, *([phrase] if phrase is not None else self.vocabulary.encode(f" {words}"))]

    def _write_action(self, prompt: Prompt, action: Action, focus: Mapping[str, JSON]) -> None:
        """Write an action, behind each argument the properties of the state that mention it."""
        verb = self.verb_ids.get(action.verb)
        prompt.ids += [verb] if verb is not None else self._spell(action.verb)
        for argument in action.arguments:
            self._mention(prompt, argument, "action", self._is_handle(prompt, argument))
            for name, node in self.schema.root.children.items():
                if name in focus and not node.private:
                    prompt.ids += [self.path_ids[path] for path in _mentions(node, focus[name], name, argument)]

    def _write_step(self, prompt: Prompt, step: Step) -> None:
        prompt.ids.append(self.structure[HISTORY])
        action = self.domain.parse(step.action)
        if action is None:
            prompt.ids += self._spell(step.action)
        else:
            self._write_action(prompt, action, {})

    def _write(self, prompt: Prompt, node: Node, value: JSON, path: str) -> None:
        """Write a property of the state.

        Elements of an array follow its path token, which is repeated after an element with rows of its own.
        """
        if node.kind == "object":
            for name, child in node.children.items():
                if name in value:
                    self._write(prompt, child, value[name], f"{path}.{name}")
        elif node.kind != "array":
            if "." not in path:
                prompt.ids.append(self.path_ids[path])
            self._write_scalar(prompt, node, value, path)
        elif node.items is not None and node.items.kind == "enum":
            prompt.ids += [self.enum_ids[path, element] for element in value]
        elif node.items is not None:
            head, expected = self.path_ids[path], -1
            if not value and "." not in path:
                prompt.ids.append(head)
            for element in value:
                if len(prompt.ids) != expected:
                    prompt.ids.append(head)
                    expected = -1
                if node.items.kind != "object":
                    self._write_scalar(prompt, node.items, element, path)
                    expected = len(prompt.ids)
                    continue
                rows = False
                for name, child in node.items.children.items():
                    if name in element:
                        rows = rows or (child.key is not None and bool(element[name]))
                        self._write(prompt, child, element[name], f"{path}.{name}")
                expected = -1 if rows else len(prompt.ids)

    def _write_scalar(self, prompt: Prompt, node: Node, value: JSON, path: str) -> None:
        if node.kind == "enum":
            prompt.ids.append(self.enum_ids[path, value])
        elif node.kind == "string":
            self._mention(prompt, value, path, node.handle is not None or self._refers_to_handles(node))
        else:
            prompt.ids += self._text(prompt, path, json.dumps(value))

    def _is_handle(self, prompt: Prompt, name: str) -> bool:
        children = self.schema.root.children
        return any(name in keys and handle(children[top]) is not None for top, keys in prompt.shown.items())

    def _refers_to_handles(self, node: Node) -> bool:
        return node.ref is not None and handle(self.schema.root.children[node.ref[0]]) is not None

    def _mention(self, prompt: Prompt, name: str, path: str, nameless: bool = False) -> None:
        """Refer to a string by its slot; at its first mention say what it is, of a handle nothing."""
        slot = prompt.slots.get(name)
        if slot is not None:
            prompt.ids.append(self.slot_ids[slot])
            return
        text = [] if nameless else self._prose(prompt, path, name) if self.tables.mentions else None
        kind, number = split_number(name)
        fits = prompt.count < self.tables.slots
        if fits:
            prompt.ids.append(self.slot_ids[prompt.refer(name)])
        if text is not None:
            prompt.ids += text
            return
        known = self.kind_ids.get(kind) if number is not None else None
        prompt.ids += [known] if known is not None else self._spell(kind)
        prompt.ids.append(self.mark_ids[prompt.marks.get(kind, 0)])
        if not fits and number is not None:
            prompt.ids += [self.number_ids[number]] if number <= self.tables.numbers else self._spell(str(number))

    # --- outputs -------------------------------------------------------------------------------------------------

    def encode_output(self, prompt: Prompt, target: Prediction) -> list[int]:
        """Return the ids of a prediction, given the prompt that it answers.

        Raises:
            ValueError: The prediction uses an edit or an outcome that the codec was not fitted on.
        """
        prompt = prompt.copy()  # what the output names for the first time can be referred to behind it
        ids: list[int] = []
        for line in target.reasoning.splitlines():
            ids += self._text(prompt, "reasoning", line)
        ids.append(self.structure[DELTA])
        for edit in target.delta:
            ids += self._encode_edit(prompt, edit)
        outcome = (float(target.reward), target.terminated)
        if outcome not in self.outcome_ids:
            raise ValueError(f"reward {outcome[0]:g}, terminated={outcome[1]} did not occur when the codec was fitted")
        return [*ids, self.outcome_ids[outcome]]

    def _encode_edit(self, prompt: Prompt, edit: Edit) -> list[int]:
        path, node, keys = resolve(self.schema.root, edit.path)
        operation = f"{edit.op} {path}"
        if operation not in self.operation_ids:
            raise ValueError(f"the edit {operation!r} did not occur when the codec was fitted")
        head = [self.operation_ids[operation], *(self._reference(prompt, key) for key in keys)]
        if edit.op == "remove":
            return [token for key in edit.value for token in (*head, self._reference(prompt, key))]
        if edit.op == "add":
            assert node.items is not None
            return [
                token
                for element in edit.value
                for token in (*head, *self._value(prompt, node.items, element, path, node.key, joins=True))
            ]
        if node.commits is not None:
            return [*head, *self._commitments(prompt, node, edit.value, path)]
        return [*head, *self._value(prompt, node, edit.value, path, None)]

    def _reference(self, prompt: Prompt, name: str) -> int:
        slot = prompt.slots.get(name)
        if slot is None:
            raise ValueError(f"{name!r} is edited but not in the domain's focus of the query")
        return self.slot_ids[slot]

    def _value(
        self, prompt: Prompt, node: Node, value: JSON, path: str, key: str | None, *, joins: bool = False
    ) -> Iterator[int]:
        """Yield a value; of an element that joins an array nothing that is so by default."""
        match node.kind:
            case "array":
                assert node.items is not None
                for element in value:
                    yield from self._value(prompt, node.items, element, path, node.key)
                yield self.structure[END]
            case "object":
                parts = written(node, key, joins)
                for name, child in node.children.items():
                    if name not in parts and name != key and value[name] != child.default[0]:
                        raise ValueError(f"an element joins {path} with a {name} that is not the default")
                for name in parts:
                    child, below = node.children[name], f"{path}.{name}"
                    if name == key:
                        yield from self._string(prompt, below, value[key], child.handle is not None)
                    elif key is not None and is_flags(child):
                        assert child.items is not None
                        yield from (self.enum_ids[below, v] for v in child.items.values if v in value[name])
                    else:
                        yield from self._value(prompt, child, value[name], below, None)
            case "enum":
                yield self.enum_ids[path, value]
            case "string":
                yield from self._string(prompt, path, value)
            case _:
                yield from self._text(prompt, path, json.dumps(value))

    def _commitments(self, prompt: Prompt, node: Node, value: JSON, path: str) -> Iterator[int]:
        """Yield what is promised: each thing's name first, and before a reference the kind of what it refers to.

        So where a thing is invented to be follows from what it is, and that it is a desk is decided before which desk.
        """
        assert node.items is not None and node.key is not None
        for element in value:
            yield from self._string(prompt, f"{path}.{node.key}", element[node.key])
            for name, child in node.items.children.items():
                if name != node.key:
                    kind = split_number(element[name])[0] if child.ref is not None else ""
                    if kind in self.kind_ids:
                        yield self.kind_ids[kind]
                    yield from self._value(prompt, child, element[name], f"{path}.{name}", None)
        yield self.structure[END]

    def _string(self, prompt: Prompt, path: str, value: str, nameless: bool = False) -> list[int]:
        slot = prompt.slots.get(value)
        if slot is not None:
            return [self.slot_ids[slot]]
        if nameless:
            if prompt.count >= self.tables.slots:
                raise ValueError("there are more names than slots")
            prompt.refer(value)
            return [self.new_id]
        kind, number = split_number(value)
        if number is not None and kind in self.kind_ids and 1 <= number <= self.tables.numbers:
            return [self.kind_ids[kind], self.number_ids[number]]
        return self._text(prompt, path, value)

    def _text(self, prompt: Prompt, path: str, text: str) -> list[int]:
        """Write a text: one token if the lexicon has it, otherwise spelt between quotes with slots inside."""
        abstract = abstracted(text, prompt.slots)
        known = self.lexicon_ids.get(path, {}).get(abstract)
        if known is not None:
            return [known]
        if self.tables.mentions:
            return self._spell(text, prompt.mentions)
        ids = [self.structure[OPEN]]
        for index, piece in enumerate(HOLE.split(abstract)):
            ids += [self.slot_ids[int(piece)]] if index % 2 else self.vocabulary.encode(piece) if piece else []
        return [*ids, self.structure[CLOSE]]

    def _prose(self, prompt: Prompt, path: str, text: str) -> list[int]:
        """Write a text of the state: one token if it is a known group of words, else as an output would."""
        phrase = self.phrase_ids.get(text)
        return [phrase] if phrase is not None else self._text(prompt, path, text)

    def _spell(self, text: str, mentions: Mapping[str, int] = MappingProxyType({})) -> list[int]:
        ids = [self.structure[OPEN]]
        for piece in segments(text, mentions, self.phrase_ids) if self.tables.mentions else [text]:
            ids += [piece] if isinstance(piece, int) else self.vocabulary.encode(piece)
        return [*ids, self.structure[CLOSE]]


def written(node: Node, key: str | None, joins: bool) -> list[str]:
    """Return the properties of an object in the order in which an output says them.

    The key comes first; where all else is flags it comes last, since it needs no terminator. An element that joins an
    array does not say what is so by default.
    """
    parts = [name for name, child in node.children.items() if name != key and not (joins and child.default)]
    if key is None:
        return parts
    flags = all(is_flags(node.children[name]) for name in parts)
    return [*parts, key] if flags else [key, *parts]


def handle(array: Node) -> str | None:
    """Return the pattern of an array's keys, if they are handles."""
    return array.items.children[array.key].handle if array.items is not None and array.key is not None else None


def is_flags(node: Node) -> bool:
    """Return whether a node is an array of enum values."""
    return node.kind == "array" and node.items is not None and node.items.kind == "enum"


def _mentions(node: Node, value: JSON, path: str, name: str) -> Iterator[str]:
    """Yield the paths below a property at which a string occurs, but for the rows that are about it."""
    if node.kind == "string":
        if value == name:
            yield path
    elif node.kind == "array" and node.items is not None and node.items.kind != "object":
        if name in value:
            yield path
    elif node.kind == "array" and node.items is not None:
        rows = any(child.key is not None for child in node.items.children.values())
        if not rows and any(name in element.values() for element in value):
            yield path
        for element in value if rows else ():
            for below, child in node.items.children.items():
                if child.kind == "array" and below in element:
                    yield from _mentions(child, element[below], f"{path}.{below}", name)


def resolve(root: Node, path: Sequence[str]) -> tuple[str, Node, tuple[str, ...]]:
    """Return (dotted path, node, element keys) of an edit's path."""
    node, names, keys = root, [], []
    for part in path:
        if node.kind == "array":
            assert node.items is not None
            keys.append(part)
            node = node.items
        else:
            names.append(part)
            node = node.children[part]
    return ".".join(names), node, tuple(keys)


def example(domain: Domain, transition: Transition) -> tuple[Query, Prediction]:
    """Return a transition as a query and its right answer."""
    query = Query(transition.task, transition.state, transition.action, transition.history)
    delta = diff(domain.schema, transition.state, transition.next_state)
    delta = tuple(edit for edit in delta if not domain.schema.root.children[edit.path[0]].private)
    return query, Prediction(transition.reasoning, delta, transition.reward, transition.terminated)
