"""The codec: queries to token ids and predictions to token ids, for any domain's schema.

What makes a compact model right is the form of its text (facts of the prototype). The form, in four ideas:

- References, not copies. Every string of the query that an output may need gets a slot token at its first mention, the
  action's arguments first; afterwards prompt and output refer to the slot. "You pick up the mug 1 from the desk 1." is
  `You pick up the ⟦1⟧ from the ⟦2⟧.` in every query, so frequent strings, once their slots are abstracted, are one
  token each: the lexicon. Only new text is spelt, in subwords.
- Kinds. "mug 1" is written as its slot and its kind, "mug"; a new name as kind and number.
- Marks. A kind that the instruction names carries the mark of that place, so that "is this what is wanted?" is a
  comparison of two tokens and holds for kinds never seen in training.
- Deltas. The output is reasoning lines, edits of the state and one token for reward and end.

`Codec` holds the tables (codec.json); `grammar.Parser` reads outputs back and says which tokens may come next.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from dreamgym_envs.core.delta import Edit, diff
from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON, Step, Transition
from dreamgym_envs.domains.base import Action, Domain
from dreamgym_envs.experience.model import Prediction, Query
from dreamgym_envs.experience.vocabulary import Vocabulary

FILE = "codec.json"
TASK, HISTORY, DEMONSTRATION, ACTION, OUTPUT, DELTA, END = (
    "<task>",
    "<history>",
    "<demonstration>",
    "<action>",
    "<output>",
    "<delta>",
    "<end>",
)
OPEN, CLOSE = '<">', '</">'
STRUCTURE = (TASK, HISTORY, DEMONSTRATION, ACTION, OUTPUT, DELTA, END, OPEN, CLOSE)

_NUMBERED = re.compile(r"^(.*\D) (\d+)$")
_HOLE = re.compile(r"⟦(\d+)⟧")


@lru_cache(maxsize=65536)
def split_number(name: str) -> tuple[str, int | None]:
    """Return kind and number of a name: ("mug", 1) for "mug 1", ("Mug", None) for "Mug"."""
    match = _NUMBERED.match(name)
    return (match.group(1), int(match.group(2))) if match else (name, None)


@dataclass(frozen=True)
class Tables:
    """What the codec learned from data; everything that codec.json holds.

    Attributes:
        domain: Name of the domain.
        verbs: Names of the action rules.
        kinds: Kinds of numbered names ("mug"), most frequent first.
        numbers: Largest number that is one token.
        slots: How many strings of a query can be referred to.
        marks: How many places of an instruction can be marked.
        operations: Edits seen, as "op path".
        outcomes: (reward, terminated) pairs seen.
        lexicon: Frequent strings with their slots abstracted, by the path of the property ("reasoning" for reasoning
            lines, "instruction" for pieces of instructions).
        most_elements: Most elements that an array was seen to be set to, by path.
        history: How many past steps a prompt shows.
        demonstrations: Most demonstrations that a prompt shows.
    """

    domain: str
    verbs: tuple[str, ...]
    kinds: tuple[str, ...]
    numbers: int
    slots: int
    marks: int
    operations: tuple[str, ...]
    outcomes: tuple[tuple[float, bool], ...]
    lexicon: Mapping[str, tuple[str, ...]]
    most_elements: Mapping[str, int] = field(default_factory=dict)
    history: int = 0
    demonstrations: int = 0

    def symbols(self, root: Node) -> tuple[str, ...]:
        """Return every symbol that these tables need, in a fixed order."""
        names = [*STRUCTURE]
        names += [f"<${i}>" for i in range(1, self.slots + 1)]
        names += [f"<#{i}>" for i in range(1, self.marks + 1)]
        names += [f"<n{i}>" for i in range(1, self.numbers + 1)]
        names += [f"<do {verb}>" for verb in self.verbs]
        names += [f"<kind {kind}>" for kind in self.kinds]
        names += [f"<{operation}>" for operation in self.operations]
        names += [f"<reward {reward:g}{' end' if end else ''}>" for reward, end in self.outcomes]
        names += [f"<{path}>" for path, _ in _walk(root)]
        names += sorted({f"<{path.rpartition('.')[2]}={value}>" for path, node in _walk(root) for value in _enum(node)})
        names += [f"<{path}: {text}>" for path, texts in self.lexicon.items() for text in texts]
        return tuple(names)


def _walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield (dotted path, node) for every property below a node, through the elements of arrays."""
    for name, child in node.children.items():
        below = f"{path}.{name}" if path else name
        yield below, child
        yield from _walk(child.items if child.items is not None else child, below)


def _enum(node: Node) -> tuple[str, ...]:
    """Return the values of an enum or of an array of enums; a value's symbol is shared by properties of one name."""
    return node.items.values if node.items is not None else node.values


@dataclass(slots=True)
class Prompt:
    """A query as token ids, with the strings that its slots stand for.

    Attributes:
        ids: Token ids.
        slots: Slot numbers by string, from 1.
        strings: Strings by slot, in order.
        marks: Marks by kind, as the instruction gives them.
        shown: Keys of the elements that the prompt shows, by top-level array: only these can be edited.
    """

    ids: list[int]
    slots: dict[str, int]
    strings: list[str]
    marks: Mapping[str, int]
    shown: dict[str, frozenset[str]] = field(default_factory=dict)


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
        self.slot_ids = [0] + [ids[f"<${i}>"] for i in range(1, tables.slots + 1)]
        self.mark_ids = [0] + [ids[f"<#{i}>"] for i in range(1, tables.marks + 1)]
        self.number_ids = [0] + [ids[f"<n{i}>"] for i in range(1, tables.numbers + 1)]
        self.verb_ids = {verb: ids[f"<do {verb}>"] for verb in tables.verbs}
        self.kind_ids = {kind: ids[f"<kind {kind}>"] for kind in tables.kinds}
        self.operation_ids = {operation: ids[f"<{operation}>"] for operation in tables.operations}
        self.outcome_ids = {
            (reward, end): ids[f"<reward {reward:g}{' end' if end else ''}>"] for reward, end in tables.outcomes
        }
        self.path_ids = {path: ids[f"<{path}>"] for path, _ in _walk(self.schema.root)}
        self.enum_ids = {
            (path, value): ids[f"<{path.rpartition('.')[2]}={value}>"]
            for path, node in _walk(self.schema.root)
            for value in _enum(node)
        }
        self.lexicon_ids = {
            path: {text: ids[f"<{path}: {text}>"] for text in texts} for path, texts in tables.lexicon.items()
        }
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
        for key in ("verbs", "kinds", "operations"):
            raw[key] = tuple(raw[key])
        raw["outcomes"] = tuple((float(reward), bool(end)) for reward, end in raw["outcomes"])
        raw["lexicon"] = {path: tuple(texts) for path, texts in raw["lexicon"].items()}
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
        instruction, marks = self._instruction(query.task.instruction)
        prompt = Prompt([self.structure[TASK], *instruction], {}, [], marks)
        action = None if query.action is None else self.domain.parse(query.action)
        if self.tables.history:
            for step in query.history[-self.tables.history :]:
                self._write_step(prompt, step)
        focus = self.domain.focus(query.task, query.state, action)
        prompt.ids.append(self.structure[ACTION])
        if action is not None:
            self._write_action(prompt, action, focus)
        for name, node in self.schema.root.children.items():
            if name in focus:
                self._write(prompt, node, focus[name], name)
                if node.key is not None:
                    prompt.shown[name] = frozenset(element[node.key] for element in focus[name])
        prompt.ids.append(self.structure[OUTPUT])
        return prompt

    def _encode_instruction(self, instruction: str) -> tuple[tuple[int, ...], dict[str, int]]:
        """Write an instruction: known pieces between the kinds that it names, each kind behind its mark."""
        ids: list[int] = []
        marks: dict[str, int] = {}
        pieces = self.lexicon_ids.get("instruction", {})
        for piece, kind in split_instruction(instruction, self.kind_ids):
            if piece:
                ids += [pieces[piece]] if piece in pieces else self._spell(piece)
            if kind:
                if kind not in marks and len(marks) < self.tables.marks:
                    marks[kind] = len(marks) + 1
                ids += [self.mark_ids[marks[kind]]] if kind in marks else []
                ids.append(self.kind_ids[kind])
        return tuple(ids), marks

    def _write_action(self, prompt: Prompt, action: Action, focus: Mapping[str, JSON]) -> None:
        """Write an action, behind each argument the properties of the state that mention it."""
        verb = self.verb_ids.get(action.verb)
        prompt.ids += [verb] if verb is not None else self._spell(action.verb)
        for argument in action.arguments:
            self._mention(prompt, argument)
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
            self._mention(prompt, value)
        else:
            prompt.ids += self._spell(json.dumps(value))

    def _mention(self, prompt: Prompt, name: str) -> None:
        """Refer to a string by its slot; at its first mention say what it is."""
        slot = prompt.slots.get(name)
        if slot is not None:
            prompt.ids.append(self.slot_ids[slot])
            return
        kind, number = split_number(name)
        fits = len(prompt.strings) < self.tables.slots
        if fits:
            prompt.strings.append(name)
            slot = prompt.slots[name] = len(prompt.strings)
            prompt.ids.append(self.slot_ids[slot])
        known = self.kind_ids.get(kind) if number is not None else None
        prompt.ids += [known] if known is not None else self._spell(kind)
        if kind in prompt.marks:
            prompt.ids.append(self.mark_ids[prompt.marks[kind]])
        if not fits and number is not None:
            prompt.ids += [self.number_ids[number]] if number <= self.tables.numbers else self._spell(str(number))

    # --- outputs -------------------------------------------------------------------------------------------------

    def encode_output(self, prompt: Prompt, target: Prediction) -> list[int]:
        """Return the ids of a prediction, given the prompt that it answers.

        Raises:
            ValueError: The prediction uses an edit or an outcome that the codec was not fitted on.
        """
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
            values = [self._value(prompt, node.items, element, path, node.key) for element in edit.value]
            return [token for value in values for token in (*head, *value)]
        return [*head, *self._value(prompt, node, edit.value, path, None)]

    def _reference(self, prompt: Prompt, name: str) -> int:
        slot = prompt.slots.get(name)
        if slot is None:
            raise ValueError(f"{name!r} is edited but not in the domain's focus of the query")
        return self.slot_ids[slot]

    def _value(self, prompt: Prompt, node: Node, value: JSON, path: str, key: str | None) -> Iterator[int]:
        """Yield a value; of an object with a key the key comes last, since it needs no terminator."""
        match node.kind:
            case "array":
                assert node.items is not None
                for element in value:
                    yield from self._value(prompt, node.items, element, path, node.key)
                yield self.structure[END]
            case "object":
                for name, child in node.children.items():
                    if name == key:
                        continue
                    below = f"{path}.{name}"
                    if child.kind == "array" and child.items is not None and child.items.kind == "enum":
                        yield from (self.enum_ids[below, v] for v in child.items.values if v in value[name])
                    else:
                        yield from self._value(prompt, child, value[name], below, None)
                if key is not None:
                    yield from self._string(prompt, f"{path}.{key}", value[key])
            case "enum":
                yield self.enum_ids[path, value]
            case "string":
                yield from self._string(prompt, path, value)
            case _:
                yield from self._text(prompt, path, json.dumps(value))

    def _string(self, prompt: Prompt, path: str, value: str) -> list[int]:
        slot = prompt.slots.get(value)
        if slot is not None:
            return [self.slot_ids[slot]]
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
        ids = [self.structure[OPEN]]
        for index, piece in enumerate(_HOLE.split(abstract)):
            ids += [self.slot_ids[int(piece)]] if index % 2 else self.vocabulary.encode(piece) if piece else []
        return [*ids, self.structure[CLOSE]]

    def _spell(self, text: str) -> list[int]:
        return [self.structure[OPEN], *self.vocabulary.encode(text), self.structure[CLOSE]]


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


def abstracted(text: str, slots: Mapping[str, int]) -> str:
    """Return the text with every whole-word occurrence of a slot's string replaced by its hole."""
    if not slots or not any(name in text for name in slots):
        return text
    names = "|".join(re.escape(name) for name in sorted(slots, key=len, reverse=True) if name)
    return re.sub(rf"(?<!\w)(?:{names})(?!\w)", lambda match: f"⟦{slots[match.group()]}⟧", text)


def expanded(text: str, strings: Sequence[str]) -> str:
    """Return a lexicon text with its holes filled."""
    return _HOLE.sub(lambda match: strings[int(match.group(1)) - 1], text)


def holes(text: str) -> int:
    """Return the largest slot that a lexicon text refers to, 0 for none."""
    return max((int(number) for number in _HOLE.findall(text)), default=0)


def split_instruction(instruction: str, kinds: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (piece of text, kind that follows it); the last kind may be empty.

    A kind is the longest run of whole words, at most three, that is known as a kind.
    """
    words = instruction.rstrip(" .").split()
    piece: list[str] = []
    position = 0
    while position < len(words):
        for length in (3, 2, 1):
            phrase = " ".join(words[position : position + length]).strip(",.").lower()
            if phrase in kinds and position + length <= len(words):
                yield " ".join(piece), phrase
                piece, position = [], position + length
                break
        else:
            piece.append(words[position])
            position += 1
    if piece:
        yield " ".join(piece), ""


def example(domain: Domain, transition: Transition) -> tuple[Query, Prediction]:
    """Return a transition as a query and its right answer."""
    query = Query(transition.task, transition.state, transition.action, transition.history)
    delta = diff(domain.schema, transition.state, transition.next_state)
    delta = tuple(edit for edit in delta if not domain.schema.root.children[edit.path[0]].private)
    return query, Prediction(transition.reasoning, delta, transition.reward, transition.terminated)


def fit_tables(
    domain: Domain,
    examples: Iterable[tuple[Query, Prediction]],
    *,
    slots: int = 96,
    marks: int = 6,
    least: int = 5,
    history: int = 0,
    demonstrations: int = 0,
) -> tuple[Tables, list[str]]:
    """Learn the codec's tables from queries and answers.

    Args:
        domain: The domain.
        examples: Training examples; iterated twice.
        slots: How many strings of a query can be referred to.
        marks: How many places of an instruction can be marked.
        least: How often a text must occur to become one token.
        history: How many past steps a prompt shows.
        demonstrations: Most demonstrations that a prompt shows.

    Returns:
        The tables, and a sample of texts to train subwords on.
    """
    pairs = list(examples)
    verbs: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    outcomes: Counter[tuple[float, bool]] = Counter()
    most: Counter[str] = Counter()
    largest = 1
    for query, target in pairs:
        action = None if query.action is None else domain.parse(query.action)
        if action is not None:
            verbs[action.verb] += 1
        names = [*_strings(domain.focus(query.task, query.state, action)), *_strings([e.value for e in target.delta])]
        for name in names:
            kind, number = split_number(name)
            if number is not None and len(kind) <= 40:
                kinds[kind] += 1
                largest = max(largest, number if number <= 64 else 1)
        for edit in target.delta:
            path, node, _ = resolve(domain.schema.root, edit.path)
            operations[f"{edit.op} {path}"] += 1
            if edit.op == "set" and node.kind == "array":
                most[path] = max(most[path], len(edit.value))
        outcomes[float(target.reward), target.terminated] += 1
    base = Tables(
        domain=domain.name,
        verbs=tuple(sorted(verbs)),
        kinds=_frequent(kinds, least),
        numbers=largest,
        slots=slots,
        marks=marks,
        operations=tuple(sorted(operations)),
        outcomes=tuple(sorted(outcomes)),
        lexicon={},
        most_elements=dict(most),
        history=history,
        demonstrations=demonstrations,
    )
    texts: dict[str, Counter[str]] = {}
    draft = Codec(domain, base, Vocabulary.train([], base.symbols(domain.schema.root)))
    for query, target in pairs:
        prompt = draft.encode(query)
        for line in target.reasoning.splitlines():
            texts.setdefault("reasoning", Counter())[abstracted(line, prompt.slots)] += 1
        for edit in target.delta:
            path, node, _ = resolve(domain.schema.root, edit.path)
            if node.kind == "string" and edit.value not in prompt.slots:
                texts.setdefault(path, Counter())[abstracted(edit.value, prompt.slots)] += 1
    for instruction in {query.task.instruction for query, _ in pairs}:
        for piece, _ in split_instruction(instruction, draft.kind_ids):
            if piece:
                texts.setdefault("instruction", Counter())[piece] += least
    lexicon = {path: _frequent(counts, least) for path, counts in sorted(texts.items())}
    sample = [_HOLE.sub("", text) for counts in texts.values() for text in counts] + list(kinds)
    return Tables(**{**asdict(base), "lexicon": lexicon}), sample


def _frequent(counts: Counter[str], least: int) -> tuple[str, ...]:
    """Return what was counted at least `least` times, most frequent first."""
    return tuple(text for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if count >= least)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
