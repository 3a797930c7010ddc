"""How a value of the schema is read: what it may consist of, token by token.

What was promised is held to: of a thing that becomes public no other title than the promised one, of an array that
becomes known at least what was promised for it.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

import numpy as np

from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON
from dreamgym_envs.experience.choices import Choice, GrammarTables
from dreamgym_envs.experience.codec import Prompt, handle, written
from dreamgym_envs.experience.handles import fresh
from dreamgym_envs.experience.scene import Scene, is_unique
from dreamgym_envs.experience.symbols import expanded, split_number

MOST_ELEMENTS = 64
MOST_SPELT = 768  # tokens of texts in one answer


class Values:
    """Reads the values of one answer. Every method is a coroutine as `Parser.parse` is one, but for the choices.

    Args:
        tables: Choices of the codec.
        prompt: The prompt; what is named anew gets a slot in it.
        scene: The state at hand.
        rng: Where handles of new things come from; None makes them from the prompt.
    """

    def __init__(
        self, tables: GrammarTables, prompt: Prompt, scene: Scene, rng: np.random.Generator | None = None
    ) -> None:
        self._tables = tables
        self._codec = tables.codec
        self._prompt = prompt
        self._scene = scene
        self._rng = rng
        self._longest = max(map(len, prompt.slots), default=0)
        self._spelt = 0

    def slot(self, names: list[str]) -> Generator[Choice, int, str]:
        """Read a reference to one of some strings that have slots."""
        token = yield self._tables.choice(tuple(self._codec.slot_ids[self._prompt.slots[name]] for name in names))
        return self._prompt.strings[self._tables.slot_of[token]]

    def _value(self, node: Node, path: str, sampled: bool, promise: JSON = None) -> Generator[Choice, int, JSON]:
        """Read a value of any kind; of what was promised no other than that, of an array at least that."""
        if node.kind == "array":
            return (yield from self.array(node, path, (), sampled, promise or ()))
        if isinstance(promise, str) and promise in self._prompt.slots:
            return (yield from self.slot([promise]))
        return (yield from self.scalar(node, path, sampled))

    def scalar(self, node: Node, path: str, sampled: bool = False) -> Generator[Choice, int, JSON]:
        """Read a value that is no array."""
        if node.kind == "enum":
            table = {self._codec.enum_ids[path, value]: value for value in node.values}
            token = yield self._tables.choice(tuple(table), sampled)
            return table[token]
        if node.kind == "integer":
            numbers = self._tables.integers[path]
            token = yield self._tables.choice(tuple(numbers), sampled)
            return numbers[token]
        if node.kind == "object":
            return (yield from self._object(node, path, sampled))
        token = yield self._tables.choice(self._string_choice(node, path), sampled)
        return (yield from self._string(token, node, path, sampled))

    def _object(self, node: Node, path: str, sampled: bool) -> Generator[Choice, int, JSON]:
        value: dict[str, JSON] = {}
        for name, child in node.children.items():
            value[name] = yield from self._value(child, f"{path}.{name}", sampled)
        return value

    def array(
        self, node: Node, path: str, keys: tuple[str, ...], sampled: bool = False, promise: Sequence[JSON] = ()
    ) -> Generator[Choice, int, JSON]:
        """Read elements up to the end token; of an array that becomes known, what was promised and what is invented."""
        assert node.items is not None
        if node.known is not None and keys:
            promise = (*promise, *self._scene.contents(path, keys[-1]))
        parts = {part[node.key] if node.key is not None else part: part for part in promise}
        promised = {name: True for name in parts if name in self._prompt.slots}
        if node.known is not None:
            promised |= self._scene.promised(path, keys)
        most = min(self._codec.tables.most_elements.get(path, MOST_ELEMENTS), node.max_items or MOST_ELEMENTS)
        elements: list[JSON] = []
        for read in count():
            due = [name for name in promised if promised[name]]
            full = read + len(due) >= most
            ends = () if due else (self._tables.end,)
            unmarked = node.commits is not None and not self._prompt.marks
            if (full and not due) or unmarked:
                yield self._tables.choice(ends)
                return tuple(elements)
            if node.commits is not None:
                element = yield from self._commitment(node, path, ends)
            elif node.items.kind == "object" and node.key is not None:
                taken = [known[node.key] for known in elements]
                only = due if full else None
                element = yield from self.element(node, path, sampled, ends, only, due, taken, parts=parts)
            elif full:
                element = yield from self.slot(due)
            else:
                element = yield from self._plain(node.items, path, ends, elements, sampled)
            if element is None:
                return tuple(elements)
            if node.items.kind == "object" or element not in elements:
                elements.append(element)
            if isinstance(element, Mapping) and node.key is not None:
                promised[element[node.key]] = False
                self._scene.take(node, element[node.key])
            elif isinstance(element, str):
                promised[element] = False
        raise AssertionError("an array ends at its largest size")

    def _plain(
        self, node: Node, path: str, ends: tuple[int, ...], before: list[JSON], sampled: bool
    ) -> Generator[Choice, int, JSON]:
        """Read an element that is no object; None if the end token comes instead."""
        if node.kind == "enum":
            table = {self._codec.enum_ids[path, value]: value for value in node.values if value not in before}
            token = yield self._tables.choice((*table, *ends), sampled)
            return table.get(token)
        token = yield self._tables.choice((*self._string_choice(node, path, before), *ends), sampled)
        return None if token in ends else (yield from self._string(token, node, path, sampled))

    def element(
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
                flags.update({self._codec.enum_ids[below, v]: (name, v) for v in child.items.values})
            first = True
            while True:
                token = yield self._tables.choice(
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
            token = yield self._tables.choice((*keys, *ends), sampled)
            if token in ends:
                return None
            value[key] = yield from self._key(token, array, path, sampled, taken)
            promise = parts.get(value[key]) or self._scene.promise(array, value[key])
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
        if token == self._codec.new_id:
            taken_names = {*self._scene.names(child.unique), *self._prompt.slots}
            new = fresh(child.handle or "", taken_names, self._prompt.ids, self._rng)
            self._prompt.refer(new)
            return new
        name: str = yield from self._string(token, child, f"{path}.{array.key}", sampled)
        while name in taken:
            name += "'"
        return name

    # --- what is promised ------------------------------------------------------------------------------------------

    def _commitment(self, array: Node, path: str, ends: tuple[int, ...]) -> Generator[Choice, int, JSON]:
        """Read what is promised, its key first; None if the end token comes instead."""
        node, key = array.items, array.key
        assert node is not None and key is not None
        used_up = self._scene.used_up(array)
        kinds = tuple(self._codec.kind_ids[kind] for kind in self._prompt.marks if kind not in used_up)
        token = yield self._tables.choice((*kinds, *ends), sampled=True)
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
            token = yield self._tables.choice(self._starts(node, path), sampled=True)
            return (yield from self._string(token, node, path, sampled=True))
        first: dict[int, list[int]] = {}
        for token in self._string_choice(node, path):
            kind = split_number(self._prompt.strings[self._tables.slot_of[token]])[0] if node.ref is not None else ""
            first.setdefault(self._codec.kind_ids.get(kind, token), []).append(token)
        token = yield self._tables.choice(tuple(first), sampled=True)
        if token in self._tables.kind_of:
            token = yield self._tables.choice(tuple(first[token]), sampled=True)
        return (yield from self._string(token, node, path, sampled=True))

    def _starts(self, node: Node, path: str) -> tuple[int, ...]:
        return tuple(self._codec.enum_ids[path, value] for value in node.values)

    # --- strings -------------------------------------------------------------------------------------------------

    def _string(self, token: int, node: Node, path: str, sampled: bool) -> Generator[Choice, int, JSON]:
        if node.kind == "enum":
            return next(value for value in node.values if self._codec.enum_ids[path, value] == token)
        if token in self._tables.slot_of:
            return self._prompt.strings[self._tables.slot_of[token]]
        if token in self._tables.kind_of:
            kind = self._tables.kind_of[token]
            taken = self._scene.names(node.unique)
            free = tuple(i for n, i in enumerate(self._codec.number_ids) if n and f"{kind} {n}" not in taken)
            number = yield self._tables.choice(free, sampled=sampled)
            return f"{kind} {self._tables.number_of[number]}"
        return (yield from self.text(token, path, node.max_length, sampled, node.pattern))

    def _string_choice(self, node: Node, path: str, before: Sequence[JSON] = ()) -> tuple[int, ...]:
        """Return the first tokens of a string that is no element's key."""
        if node.ref is not None:
            names = self._scene.keys(node.ref)
            slots = self._prompt.slots.items()
            return tuple(self._codec.slot_ids[slot] for name, slot in slots if name in names and name not in before)
        return self._fitting(node, path, self.texts(path))

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
        slots = self._prompt.slots
        if only is not None:
            return tuple(self._codec.slot_ids[slots[name]] for name in only)
        if handle(array) is not None:
            return self._scene.handles(array)
        if array.known is not None and hidden and is_unique(array):
            free = [name for name in promised if name in slots]
            banned = tuple(self._prompt.marks) if self._scene.committed else ()
            kinds = self._tables.kinds((*banned, *self._scene.used_up(array)))
            return (*(self._codec.slot_ids[slots[name]] for name in free), *kinds, self._tables.open)
        if is_unique(array):
            return tuple(self._codec.slot_ids[slots[name]] for name in self._scene.limbo)
        if self._codec.tables.mentions:
            return self._fitting(array.items.children[array.key], path, self.texts(path))
        return (*self._codec.slot_ids[1 : self._prompt.count + 1], *self.texts(path))

    def texts(self, path: str) -> tuple[int, ...]:
        """Return the first tokens of a text."""
        return self._tables.texts(path, self._prompt.count, len(self._prompt.mentions))

    def text(
        self, token: int, path: str, longest: int, sampled: bool = False, pattern: str = ""
    ) -> Generator[Choice, int, str]:
        """Return the text that a lexicon token stands for, or that is spelt after the opening quote."""
        if token != self._tables.open:
            return expanded(self._tables.text_of[path][token], self._prompt.strings)
        longest = min(longest, self._codec.tables.longest.get(path, longest))
        spelt = self._tables.spelt(path, len(self._prompt.mentions), self._prompt.count, sampled)
        text = ""
        run: list[int] = []
        length = 0
        while True:
            if pattern:
                spelt = self._tables.continued(path, pattern, text + self._codec.vocabulary.decode(run), sampled)
            full = len(text) + length >= longest or self._spelt >= MOST_SPELT
            full = full and (not pattern or self._tables.close in spelt.ids)
            token = yield self._tables.choice((self._tables.close,)) if full else spelt
            words = self._words(token)
            if words is None and token != self._tables.close:
                run.append(token)
                length += len(self._tables.pieces[token])
                self._spelt += 1
                continue
            text += self._codec.vocabulary.decode(run)
            run, length = [], 0
            self._spelt += 1
            if words is None:
                return text if pattern else text[:longest].replace("\n", " ")
            # Groups of words stand for the space before them as well; slots of other texts do not.
            text += f" {words}" if text and self._codec.tables.mentions else words

    def _stands_for(self, token: int, path: str) -> str | None:
        """Return the whole string that a slot or a token of the lexicon stands for, None for other tokens."""
        if token in self._tables.slot_of:
            return self._prompt.strings[self._tables.slot_of[token]]
        text = self._tables.text_of.get(path, {}).get(token)
        return None if text is None else expanded(text, self._prompt.strings)

    def _words(self, token: int) -> str | None:
        """Return what a slot or a group of words stands for, None for other tokens."""
        if token in self._tables.slot_of:
            return self._prompt.strings[self._tables.slot_of[token]]
        return self._tables.phrase_of.get(token)
