"""The decoding grammar: which tokens may come next, so that an invalid prediction cannot leave the model.

`Parser.parse` is a coroutine: it yields the tokens that are allowed, is sent the one that was chosen, and returns the
prediction. It follows the schema and the query's state as edited so far, and forbids only what contradicts them or the
model's own commitments:

- an edit must address something that is there; what is added must fit in, what is removed must be there;
- names that the schema calls unique occur once; a thing that exists is referred to by its slot or not at all;
- an array is set as a whole exactly when it becomes known ("x-known"), and edited only while it is known;
- where the model committed to what is hidden ("x-commits"), a reveal holds what was promised for that place and nothing
  else of the kinds that the instruction names;
- a new element whose name is a handle is given a free one, or is one that the private state knows already.

It never decides an outcome.
"""

import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

import numpy as np

from dreamgym_envs.core.delta import Edit, apply_delta
from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.experience.choices import Choice, GrammarTables
from dreamgym_envs.experience.codec import Prompt, handle, resolve, written
from dreamgym_envs.experience.handles import fresh
from dreamgym_envs.experience.model import Prediction
from dreamgym_envs.experience.symbols import expanded, split_number

MOST_LINES = 24
MOST_EDITS = 32
MOST_ELEMENTS = 64
MOST_SPELT = 768  # tokens of texts in one answer


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
        self.rng = rng
        self.state = state
        self.reasons = reasons
        self.committed = {
            name: node.commits
            for name, node in self.codec.schema.root.children.items()
            if node.commits is not None and name in state.private
        }
        self._limbo: list[str] = []  # removed by this delta and not yet put anywhere
        self._set: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()  # what this delta has set
        self._taken: dict[str, set[str]] = {}
        self._rows: dict[str, list[tuple[str, Mapping[str, JSON]]]] = {}
        self._longest = max(map(len, self.prompt.slots), default=0)
        self._spelt = 0
        self._added: Counter[str] = Counter()

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
            reveal = self._applied(edit)

    def _applied(self, edit: Edit) -> tuple[int, tuple[str, ...]] | None:
        """Apply an edit; return (operation token, keys) of the array that it makes known, if it does."""
        path, _, keys = resolve(self.codec.schema.root, edit.path)
        reveal = self.tables.reveals.get(path) if edit.op == "set" else None
        due = reveal is not None and edit.value in reveal[1]
        if reveal is not None and due:
            due = _parent(self.codec.schema.root, self.state, edit.path)[edit.path[-1]] not in reveal[1]
        self.state = apply_delta(self.codec.schema, self.state, (edit,))
        self._taken = {}
        self._rows = {}
        if edit.op == "remove":
            self._limbo += edit.value
        elif edit.op == "set":
            self._set.add((tuple(path.split(".")), keys))
        elif edit.op == "add":
            self._added[path] += len(edit.value)
            self._limbo = [name for name in self._limbo if all(name not in element.values() for element in edit.value)]
        return (reveal[0], keys) if reveal is not None and due else None

    # --- reasoning -----------------------------------------------------------------------------------------------

    def _reasoning(self) -> Generator[Choice, int, list[str]]:
        lines: list[str] = []
        while True:
            ids = self._texts("reasoning") if len(lines) < MOST_LINES else ()
            token = yield self.tables.choice((*ids, self.tables.delta), judged=True)
            if token == self.tables.delta:
                return lines
            lines.append((yield from self._text(token, "reasoning", 200)))

    def _texts(self, path: str) -> tuple[int, ...]:
        return self.tables.texts(path, self.prompt.count, len(self.prompt.mentions))

    def _text(
        self, token: int, path: str, longest: int, sampled: bool = False, pattern: str = ""
    ) -> Generator[Choice, int, str]:
        """Return the text that a lexicon token stands for, or that is spelt after the opening quote."""
        if token != self.tables.open:
            return expanded(self.tables.text_of[path][token], self.prompt.strings)
        longest = min(longest, self.codec.tables.longest.get(path, longest))
        spelt = self.tables.spelt(path, len(self.prompt.mentions), self.prompt.count, sampled)
        text = ""
        run: list[int] = []
        length = 0
        while True:
            if pattern:
                spelt = self.tables.continued(path, pattern, text + self.codec.vocabulary.decode(run), sampled)
            full = len(text) + length >= longest or self._spelt >= MOST_SPELT
            full = full and (not pattern or self.tables.close in spelt.ids)
            token = yield self.tables.choice((self.tables.close,)) if full else spelt
            words = self._words(token)
            if words is None and token != self.tables.close:
                run.append(token)
                length += len(self.tables.pieces[token])
                self._spelt += 1
                continue
            text += self.codec.vocabulary.decode(run)
            run, length = [], 0
            self._spelt += 1
            if words is None:
                return text if pattern else text[:longest].replace("\n", " ")
            # Groups of words stand for the space before them as well; slots of other texts do not.
            text += f" {words}" if text and self.codec.tables.mentions else words

    def _stands_for(self, token: int, path: str) -> str | None:
        """Return the whole string that a slot or a token of the lexicon stands for, None for other tokens."""
        if token in self.tables.slot_of:
            return self.prompt.strings[self.tables.slot_of[token]]
        text = self.tables.text_of.get(path, {}).get(token)
        return None if text is None else expanded(text, self.prompt.strings)

    def _words(self, token: int) -> str | None:
        """Return what a slot or a group of words stands for, None for other tokens."""
        if token in self.tables.slot_of:
            return self.prompt.strings[self.tables.slot_of[token]]
        return self.tables.phrase_of.get(token)

    # --- edits ---------------------------------------------------------------------------------------------------

    def _edit_choice(self, edits: list[Edit]) -> Choice:
        """Return the operations that are possible, in the order in which `diff` writes them, and the outcomes."""
        tables = self.tables
        if len(edits) >= MOST_EDITS:
            return tables.choice(tables.outcomes, judged=True)
        first = tables.rank(edits[-1].op, edits[-1].path[0]) if edits else 0
        ids = [
            token
            for rank, token, op, names, nodes in (tables.at_step if self.reasons else tables.at_reset)
            if rank >= first and self._possible(op, names, nodes)
        ]
        # How many things are invented is invented too.
        more = bool(edits) and edits[-1].op == "add" and self._invents(edits[-1].path[0])
        return tables.choice((*ids, *tables.outcomes), sampled=more, judged=not more)

    def _invents(self, name: str) -> bool:
        return self.codec.schema.root.children[name].invented

    def _possible(self, op: str, names: tuple[str, ...], nodes: tuple[Node, ...]) -> bool:
        if op == "set" and len(names) == 1:  # what most edits are, and needs no search
            return nodes[0].known is None and (names, ()) not in self._set
        if op == "add" and (not self._may_join(nodes[-1]) or self._added[".".join(names)] >= self._most(names)):
            return False
        return bool(self._paths(op, names, nodes))

    def _most(self, names: tuple[str, ...]) -> int:
        """Return how many elements of an array of inventions one answer may add."""
        most = self.codec.tables.most_elements
        return most.get(".".join(names), MOST_EDITS) if self._invents(names[0]) else MOST_EDITS

    def _may_join(self, node: Node) -> bool:
        """Return whether there can be anything to add to an array."""
        if handle(node) is not None:
            return bool(self._handles(node))
        return bool(self._limbo) or not _unique(node)

    def _targets(self, op: str, names: tuple[str, ...], nodes: tuple[Node, ...], keys: tuple[str, ...]) -> list[str]:
        """Return the strings that may come after `keys` on an operation's path; of a path without keys: [""] or [].

        After the last key of a "remove" these are the keys of the elements that may go.
        """
        found: list[str] = []
        for candidate in self._paths(op, names, nodes):
            if candidate[: len(keys)] == keys:
                found.append(candidate[len(keys)] if len(candidate) > len(keys) else "")
        return list(dict.fromkeys(found))

    def _paths(self, op: str, names: tuple[str, ...], nodes: tuple[Node, ...]) -> list[tuple[str, ...]]:
        """Return the key tuples with which an operation is possible in the current state."""
        root = self.state.private if nodes[0].private else self.state.public
        places: list[tuple[tuple[str, ...], Mapping[str, JSON]]] = [((), root)]
        for name, node in zip(names[:-1], nodes[:-1], strict=True):
            if node.kind != "array":
                places = [(keys, parent[name]) for keys, parent in places]
            elif node is nodes[0]:
                places = [((key,), row) for key, row in self._rows_in_reach(name, node, root)]
            else:
                places = [
                    ((*keys, element[node.key]), element)
                    for keys, parent in places
                    for element in parent[name]
                    if element[node.key] in self.prompt.slots
                ]
        name, node = names[-1], nodes[-1]
        paths: list[tuple[str, ...]] = []
        for keys, parent in places:
            if node.known is not None and not node.known_when(parent):
                continue
            value = parent.get(name, ())
            if op == "set":
                if node.known is None and (names, keys) not in self._set:
                    paths.append(keys)
            elif op == "add":
                if (node.max_items is None or len(value) < node.max_items) and self._may_join(node):
                    paths.append(keys)
            else:
                elements = (element[node.key] if node.key is not None else element for element in value)
                paths += [(*keys, element) for element in elements if element in self.prompt.slots]
        return paths

    def _rows_in_reach(self, name: str, node: Node, root: Mapping[str, JSON]) -> list[tuple[str, Mapping[str, JSON]]]:
        """Return (key, element) of the elements of a top-level array that the prompt mentions."""
        if name not in self._rows:
            shown, key = self.prompt.shown.get(name, frozenset()), node.key
            self._rows[name] = [(row[key], row) for row in root.get(name, ()) if row[key] in shown]
        return self._rows[name]

    def _edit(self, token: int, forced: tuple[str, ...] | None) -> Generator[Choice, int, Edit]:
        op, names, nodes = self.tables.operation_of[token]
        depth = sum(node.kind == "array" for node in nodes[:-1])
        keys: tuple[str, ...] = ()
        for position in range(depth):
            allowed = [forced[position]] if forced is not None else self._targets(op, names, nodes, keys)
            keys = (*keys, (yield from self._slot(allowed)))
        path: list[str] = []
        rest = list(keys)
        for name, node in zip(names, nodes, strict=True):
            path.append(name)
            if node is not nodes[-1] and node.kind == "array":
                path.append(rest.pop(0))
        node, dotted = nodes[-1], ".".join(names)
        value: JSON
        if op == "remove":
            value = ((yield from self._slot(self._targets(op, names, nodes, keys))),)
        elif op == "add":
            assert node.items is not None
            there = _parent(self.codec.schema.root, self.state, tuple(path))[names[-1]]
            taken = [other[node.key] for other in there] if node.key is not None else []
            element = yield from self._element(node, dotted, node.invented, taken=taken, joins=True)
            value = (element,)
        elif node.kind == "array":
            value = yield from self._array(node, dotted, keys, node.invented or node.known is not None)
        else:
            value = yield from self._scalar(node, dotted, node.invented)
        return Edit(op, tuple(path), value)  # type: ignore[arg-type]

    def _slot(self, names: list[str]) -> Generator[Choice, int, str]:
        token = yield self.tables.choice(tuple(self.codec.slot_ids[self.prompt.slots[name]] for name in names))
        return self.prompt.strings[self.tables.slot_of[token]]

    # --- values --------------------------------------------------------------------------------------------------

    def _value(self, node: Node, path: str, sampled: bool, promise: JSON = None) -> Generator[Choice, int, JSON]:
        """Read a value of any kind; of what was promised no other than that, of an array at least that."""
        if node.kind == "array":
            return (yield from self._array(node, path, (), sampled, promise or ()))
        if isinstance(promise, str) and promise in self.prompt.slots:
            return (yield from self._slot([promise]))
        return (yield from self._scalar(node, path, sampled))

    def _scalar(self, node: Node, path: str, sampled: bool = False) -> Generator[Choice, int, JSON]:
        if node.kind == "enum":
            table = {self.codec.enum_ids[path, value]: value for value in node.values}
            token = yield self.tables.choice(tuple(table), sampled)
            return table[token]
        if node.kind == "integer":
            numbers = self.tables.integers[path]
            token = yield self.tables.choice(tuple(numbers), sampled)
            return numbers[token]
        if node.kind == "object":
            return (yield from self._object(node, path, sampled))
        token = yield self.tables.choice(self._string_choice(node, path), sampled)
        return (yield from self._string(token, node, path, sampled))

    def _object(self, node: Node, path: str, sampled: bool) -> Generator[Choice, int, JSON]:
        value: dict[str, JSON] = {}
        for name, child in node.children.items():
            value[name] = yield from self._value(child, f"{path}.{name}", sampled)
        return value

    def _array(
        self, node: Node, path: str, keys: tuple[str, ...], sampled: bool = False, promise: Sequence[JSON] = ()
    ) -> Generator[Choice, int, JSON]:
        """Read elements up to the end token; of an array that becomes known, what was promised and what is invented."""
        assert node.items is not None
        if node.known is not None and keys:
            promise = (*promise, *self._contents(path, keys[-1]))
        parts = {part[node.key] if node.key is not None else part: part for part in promise}
        promised = {name: True for name in parts if name in self.prompt.slots}
        if node.known is not None:
            promised |= self._promised(path, keys)
        most = min(self.codec.tables.most_elements.get(path, MOST_ELEMENTS), node.max_items or MOST_ELEMENTS)
        elements: list[JSON] = []
        for read in count():
            due = [name for name in promised if promised[name]]
            full = read + len(due) >= most
            ends = () if due else (self.tables.end,)
            unmarked = node.commits is not None and not self.prompt.marks
            if (full and not due) or unmarked:
                yield self.tables.choice(ends)
                return tuple(elements)
            if node.commits is not None:
                element = yield from self._commitment(node, path, ends)
            elif node.items.kind == "object" and node.key is not None:
                taken = [known[node.key] for known in elements]
                only = due if full else None
                element = yield from self._element(node, path, sampled, ends, only, due, taken, parts=parts)
            elif full:
                element = yield from self._slot(due)
            else:
                element = yield from self._plain(node.items, path, ends, elements, sampled)
            if element is None:
                return tuple(elements)
            if node.items.kind == "object" or element not in elements:
                elements.append(element)
            if isinstance(element, Mapping) and node.key is not None:
                promised[element[node.key]] = False
                self._take(node, element[node.key])
            elif isinstance(element, str):
                promised[element] = False
        raise AssertionError("an array ends at its largest size")

    def _plain(
        self, node: Node, path: str, ends: tuple[int, ...], before: list[JSON], sampled: bool
    ) -> Generator[Choice, int, JSON]:
        """Read an element that is no object; None if the end token comes instead."""
        if node.kind == "enum":
            table = {self.codec.enum_ids[path, value]: value for value in node.values if value not in before}
            token = yield self.tables.choice((*table, *ends), sampled)
            return table.get(token)
        token = yield self.tables.choice((*self._string_choice(node, path, before), *ends), sampled)
        return None if token in ends else (yield from self._string(token, node, path, sampled))

    def _element(
        self,
        array: Node,
        path: str,
        sampled: bool = False,
        ends: tuple[int, ...] = (),
        only: list[str] | None = None,
        promised: Sequence[str] = (),
        taken: Sequence[str] = (),
        joins: bool = False,
        parts: Mapping[str, Mapping[str, JSON]] = MappingProxyType({}),
    ) -> Generator[Choice, int, JSON]:
        """Read an element of a keyed array; None if an end token comes instead of its first token.

        `parts` is what was promised of some elements, by key.
        """
        node, key = array.items, array.key
        assert node is not None and key is not None
        hidden = sampled and array.known is not None
        value: dict[str, JSON] = {
            name: child.default[0] for name, child in node.children.items() if joins and child.default
        }
        names = written(node, key, joins)
        keys = self._key_choice(array, f"{path}.{key}", hidden, only, promised)
        if taken:
            keys = tuple(token for token in keys if self._stands_for(token, f"{path}.{key}") not in taken)
        if names[0] != key:
            flags: dict[int, tuple[str, str]] = {}
            for name in names[:-1]:
                value[name] = ()
                below, child = f"{path}.{name}", node.children[name]
                assert child.items is not None
                flags.update({self.codec.enum_ids[below, v]: (name, v) for v in child.items.values})
            first = True
            while True:
                token = yield self.tables.choice(
                    (*(() if hidden else flags), *keys, *(ends if first else ())), sampled=sampled
                )
                if first and token in ends:
                    return None
                if token not in flags:
                    break
                first = False
                name, flag = flags.pop(token)
                value[name] = (*value[name], flag)
            value[key] = yield from self._key(token, array, path, sampled, taken)
        else:
            token = yield self.tables.choice((*keys, *ends), sampled)
            if token in ends:
                return None
            value[key] = yield from self._key(token, array, path, sampled, taken)
            promise = parts.get(value[key]) or self._promise(array, value[key])
            for name in names[1:]:
                child = node.children[name]
                value[name] = yield from self._value(child, f"{path}.{name}", sampled, promise.get(name))
        return {name: value[name] for name in node.children}

    def _key(
        self, token: int, array: Node, path: str, sampled: bool, taken: Sequence[str]
    ) -> Generator[Choice, int, str]:
        """Read the name of an element, which no other in its array may have."""
        assert array.items is not None and array.key is not None
        child = array.items.children[array.key]
        if token == self.codec.new_id:
            taken_names = {*self._names(child.unique), *self.prompt.slots}
            new = fresh(child.handle or "", taken_names, self.prompt.ids, self.rng)
            self.prompt.refer(new)
            return new
        name: str = yield from self._string(token, child, f"{path}.{array.key}", sampled)
        while name in taken:
            name += "'"
        return name

    def _promise(self, array: Node, name: JSON) -> Mapping[str, JSON]:
        """Return what the private state says of a thing that becomes public, by property."""
        if handle(array) is None:
            return {}
        entries = (entry for part in self.state.private.values() for entry in part if entry.get(array.key) == name)
        return next(entries, {})

    def _contents(self, path: str, name: str) -> Sequence[JSON]:
        """Return what the private state says is in an array, known from now on, of a thing that it has a handle for."""
        top, _, below = path.partition(".")
        parts: Sequence[JSON] = self._promise(self.codec.schema.root.children[top], name).get(below, ())
        return parts

    def _commitment(self, array: Node, path: str, ends: tuple[int, ...]) -> Generator[Choice, int, JSON]:
        """Read what is promised, its key first; None if the end token comes instead."""
        node, key = array.items, array.key
        assert node is not None and key is not None
        used_up = self._used_up(array)
        kinds = tuple(self.codec.kind_ids[kind] for kind in self.prompt.marks if kind not in used_up)
        token = yield self.tables.choice((*kinds, *ends), sampled=True)
        if token in ends:
            return None
        value = {key: (yield from self._string(token, node.children[key], f"{path}.{key}", sampled=True))}
        for name, child in node.children.items():
            if name != key:
                value[name] = yield from self._invented(child, f"{path}.{name}")
        return {name: value[name] for name in node.children}

    def _invented(self, node: Node, path: str) -> Generator[Choice, int, JSON]:
        """Read a property of what is promised; a reference to an element says its kind first."""
        if node.kind != "string":
            token = yield self.tables.choice(self._starts(node, path), sampled=True)
            return (yield from self._string(token, node, path, sampled=True))
        first: dict[int, list[int]] = {}
        for token in self._string_choice(node, path):
            kind = split_number(self.prompt.strings[self.tables.slot_of[token]])[0] if node.ref is not None else ""
            first.setdefault(self.codec.kind_ids.get(kind, token), []).append(token)
        token = yield self.tables.choice(tuple(first), sampled=True)
        if token in self.tables.kind_of:
            token = yield self.tables.choice(tuple(first[token]), sampled=True)
        return (yield from self._string(token, node, path, sampled=True))

    def _starts(self, node: Node, path: str) -> tuple[int, ...]:
        return tuple(self.codec.enum_ids[path, value] for value in node.values)

    # --- strings -------------------------------------------------------------------------------------------------

    def _string_choice(self, node: Node, path: str, before: Sequence[JSON] = ()) -> tuple[int, ...]:
        """Return the first tokens of a string that is no element's key."""
        if node.ref is not None:
            names = self._keys(node.ref)
            slots = self.prompt.slots.items()
            return tuple(self.codec.slot_ids[slot] for name, slot in slots if name in names and name not in before)
        return self._fitting(node, path, self._texts(path))

    def _fitting(self, node: Node, path: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of the first tokens of a string that do not stand for one which the schema forbids."""
        if not node.pattern and self._longest <= node.max_length:
            return tokens
        match = re.compile(node.pattern).search
        texts = ((token, self._stands_for(token, path)) for token in tokens)
        return tuple(t for t, text in texts if text is None or (len(text) <= node.max_length and match(text)))

    def _key_choice(
        self, array: Node, path: str, hidden: bool, only: list[str] | None, promised: Sequence[str]
    ) -> tuple[int, ...]:
        """Return the first tokens of an element's key: slots, kinds of new names, spelling."""
        assert array.items is not None and array.key is not None
        slots = self.prompt.slots
        if only is not None:
            return tuple(self.codec.slot_ids[slots[name]] for name in only)
        if handle(array) is not None:
            return self._handles(array)
        if array.known is not None and hidden and _unique(array):
            free = [name for name in promised if name in slots]
            banned = tuple(self.prompt.marks) if self.committed else ()
            kinds = self.tables.kinds((*banned, *self._used_up(array)))
            return (*(self.codec.slot_ids[slots[name]] for name in free), *kinds, self.tables.open)
        if _unique(array):
            return tuple(self.codec.slot_ids[slots[name]] for name in self._limbo)
        if self.codec.tables.mentions:
            return self._fitting(array.items.children[array.key], path, self._texts(path))
        return (*self.codec.slot_ids[1 : self.prompt.count + 1], *self._texts(path))

    def _handles(self, array: Node) -> tuple[int, ...]:
        """Return the first tokens of a handle: of things that only the private state has, and of a new one."""
        assert array.items is not None and array.key is not None
        children = self.codec.schema.root.children
        taken = self._names(array.items.children[array.key].unique)
        known = (
            name
            for top, names in self.prompt.shown.items()
            if children[top].private and handle(children[top]) == handle(array)
            for name in sorted(names)
            if name in self.prompt.slots and name not in taken
        )
        room = self.prompt.count < self.codec.tables.slots
        return (*(self.codec.slot_ids[self.prompt.slots[name]] for name in known), *((self.codec.new_id,) * room))

    def _string(self, token: int, node: Node, path: str, sampled: bool) -> Generator[Choice, int, JSON]:
        if node.kind == "enum":
            return next(value for value in node.values if self.codec.enum_ids[path, value] == token)
        if token in self.tables.slot_of:
            return self.prompt.strings[self.tables.slot_of[token]]
        if token in self.tables.kind_of:
            kind = self.tables.kind_of[token]
            taken = self._names(node.unique)
            free = tuple(i for n, i in enumerate(self.codec.number_ids) if n and f"{kind} {n}" not in taken)
            number = yield self.tables.choice(free, sampled=sampled)
            return f"{kind} {self.tables.number_of[number]}"
        return (yield from self._text(token, path, node.max_length, sampled, node.pattern))

    # --- the state so far ----------------------------------------------------------------------------------------

    def _keys(self, path: tuple[str, ...]) -> set[str]:
        """Return the keys of a keyed array at the top of the state."""
        node = self.codec.schema.root.children[path[0]]
        part = self.state.private if node.private else self.state.public
        return {element[node.key] for element in part.get(path[0], ())}

    def _names(self, unique: str | None) -> set[str]:
        """Return the names of a unique kind that exist, promised ones included."""
        if unique is None:
            return set()
        if unique not in self._taken:
            names: set[str] = set()
            for name, collect in self.tables.collectors[unique].items():
                private = self.codec.schema.root.children[name].private
                collect((self.state.private if private else self.state.public).get(name, ()), names)
            self._taken[unique] = names
        return self._taken[unique]

    def _used_up(self, array: Node) -> tuple[str, ...]:
        """Return the kinds that no new element can be of: every number is taken."""
        assert array.items is not None and array.key is not None
        taken = self._names(array.items.children[array.key].unique)
        most = self.codec.tables.numbers
        if len(taken) < most:
            return ()
        return tuple(
            kind for kind, count in Counter([split_number(name)[0] for name in taken]).items() if count >= most
        )

    def _take(self, array: Node, name: str) -> None:
        assert array.items is not None and array.key is not None
        unique = array.items.children[array.key].unique
        if unique is not None:
            self._names(unique).add(name)

    def _promised(self, path: str, keys: tuple[str, ...]) -> dict[str, bool]:
        """Return the names that the model has committed to reveal in the array at `path` of the element `keys[-1]`."""
        promised: dict[str, bool] = {}
        for name, (array, by) in self.committed.items():
            if ".".join(array) == path and keys:
                key = self.codec.schema.root.children[name].key
                for entry in self.state.private[name]:
                    if entry[by] == keys[-1] and key is not None and entry[key] in self.prompt.slots:
                        promised[entry[key]] = True
        return promised


def _unique(array: Node) -> bool:
    """Return whether the elements of an array are things of which there is one each."""
    return array.items is not None and array.key is not None and array.items.children[array.key].unique is not None


def _parent(root: Node, state: State, path: tuple[str, ...]) -> Mapping[str, JSON]:
    """Return the object that holds the property which a path ends in."""
    value: JSON = state.private if root.children[path[0]].private else state.public
    node = root
    for part in path[:-1]:
        if node.kind == "array":
            value = next(element for element in value if element[node.key] == part)
            assert node.items is not None
            node = node.items
        else:
            value = value[part]
            node = node.children[part]
    return value  # type: ignore[no-any-return]
