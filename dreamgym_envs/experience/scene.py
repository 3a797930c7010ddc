"""The state at hand while an answer is written: what can be edited, which names are taken, what was promised."""

from collections import Counter
from collections.abc import Mapping, Sequence

from dreamgym_envs.core.delta import Edit, apply_delta
from dreamgym_envs.core.schema import Node
from dreamgym_envs.core.types import JSON, State
from dreamgym_envs.experience.choices import GrammarTables
from dreamgym_envs.experience.codec import Prompt, handle, resolve
from dreamgym_envs.experience.symbols import split_number

MOST_EDITS = 32


class Scene:
    """A query's state as edited so far.

    Args:
        tables: Choices of the codec.
        prompt: The prompt; what the answer names anew gets slots in it.
        state: The query's state.

    Attributes:
        state: The state with all edits so far.
        committed: Paths of what the private state says is hidden where, by the name of its array ("x-commits").
        limbo: Names that this answer has removed and not yet put anywhere.
        owed: Strings that an array still has to be set with, by (dotted path, keys) of the array.
    """

    def __init__(self, tables: GrammarTables, prompt: Prompt, state: State) -> None:
        self._tables = tables
        self._codec = tables.codec
        self._prompt = prompt
        self.state = state
        self.committed = {
            name: node.commits
            for name, node in self._codec.schema.root.children.items()
            if node.commits is not None and name in state.private
        }
        self.limbo: list[str] = []
        self.owed: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for place, strings in prompt.owed.items():
            path, _, keys = resolve(self._codec.schema.root, place)
            if f"set {path}" in self._codec.operation_ids:
                self.owed[path, keys] = [text for text in strings if text in prompt.slots]
        self._set: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()  # what this answer has set
        self._added: Counter[str] = Counter()
        self._unique_names: dict[str, set[str]] = {}
        self._rows: dict[str, list[tuple[str, Mapping[str, JSON]]]] = {}

    def apply(self, edit: Edit) -> tuple[int, tuple[str, ...]] | None:
        """Apply an edit; return (operation token, keys) of the array that it makes known, if it does."""
        path, _, keys = resolve(self._codec.schema.root, edit.path)
        reveal = self._tables.reveals.get(path) if edit.op == "set" else None
        due = reveal is not None and edit.value in reveal[1]
        if reveal is not None and due:
            due = parent_of(self._codec.schema.root, self.state, edit.path)[edit.path[-1]] not in reveal[1]
        self.state = apply_delta(self._codec.schema, self.state, (edit,))
        self._unique_names = {}
        self._rows = {}
        if edit.op == "remove":
            self.limbo += edit.value
        elif edit.op == "set":
            self._set.add((tuple(path.split(".")), keys))
            self.owed.pop((path, keys), None)
        elif edit.op == "add":
            self._added[path] += len(edit.value)
            self.limbo = [name for name in self.limbo if all(name not in element.values() for element in edit.value)]
        return (reveal[0], keys) if reveal is not None and due else None

    # --- what can be edited ------------------------------------------------------------------------------------------

    def possible(self, op: str, names: tuple[str, ...], nodes: tuple[Node, ...]) -> bool:
        """Return whether an operation has something to work on."""
        if op == "set" and len(names) == 1:  # what most edits are, and needs no search
            return nodes[0].known is None and (names, ()) not in self._set
        if op == "add" and (not self._may_join(nodes[-1]) or self._added[".".join(names)] >= self._most(names)):
            return False
        return bool(self._paths(op, names, nodes))

    def invents(self, name: str) -> bool:
        """Return whether what joins a top-level array is invented."""
        return self._codec.schema.root.children[name].invented

    def targets(self, op: str, names: tuple[str, ...], nodes: tuple[Node, ...], keys: tuple[str, ...]) -> list[str]:
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
                    if element[node.key] in self._prompt.slots
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
                paths += [(*keys, element) for element in elements if element in self._prompt.slots]
        return paths

    def _rows_in_reach(self, name: str, node: Node, root: Mapping[str, JSON]) -> list[tuple[str, Mapping[str, JSON]]]:
        """Return (key, element) of the elements of a top-level array that the prompt mentions."""
        if name not in self._rows:
            shown, key = self._prompt.shown.get(name, frozenset()), node.key
            self._rows[name] = [(row[key], row) for row in root.get(name, ()) if row[key] in shown]
        return self._rows[name]

    def _most(self, names: tuple[str, ...]) -> int:
        """Return how many elements of an array of inventions one answer may add."""
        most = self._codec.tables.most_elements
        return most.get(".".join(names), MOST_EDITS) if self.invents(names[0]) else MOST_EDITS

    def _may_join(self, node: Node) -> bool:
        """Return whether there can be anything to add to an array."""
        if handle(node) is not None:
            return bool(self.handles(node))
        return bool(self.limbo) or not is_unique(node)

    def handles(self, array: Node) -> tuple[int, ...]:
        """Return the first tokens of a handle: of things that only the private state has, and of a new one."""
        assert array.items is not None and array.key is not None
        children = self._codec.schema.root.children
        taken = self.names(array.items.children[array.key].unique)
        known = (
            name
            for top, names in self._prompt.shown.items()
            if children[top].private and handle(children[top]) == handle(array)
            for name in sorted(names)
            if name in self._prompt.slots and name not in taken
        )
        room = self._prompt.count < self._codec.tables.slots
        return (*(self._codec.slot_ids[self._prompt.slots[name]] for name in known), *((self._codec.new_id,) * room))

    # --- what is there, and what was promised ------------------------------------------------------------------------

    def keys(self, path: tuple[str, ...]) -> set[str]:
        """Return the keys of a keyed array at the top of the state."""
        node = self._codec.schema.root.children[path[0]]
        part = self.state.private if node.private else self.state.public
        return {element[node.key] for element in part.get(path[0], ())}

    def names(self, unique: str | None) -> set[str]:
        """Return the names of a unique kind that exist, promised ones included."""
        if unique is None:
            return set()
        if unique not in self._unique_names:
            names: set[str] = set()
            for name, collect in self._tables.collectors[unique].items():
                private = self._codec.schema.root.children[name].private
                collect((self.state.private if private else self.state.public).get(name, ()), names)
            self._unique_names[unique] = names
        return self._unique_names[unique]

    def used_up(self, array: Node) -> tuple[str, ...]:
        """Return the kinds that no new element can be of: every number is taken."""
        assert array.items is not None and array.key is not None
        taken = self.names(array.items.children[array.key].unique)
        most = self._codec.tables.numbers
        if len(taken) < most:
            return ()
        return tuple(
            kind for kind, count in Counter([split_number(name)[0] for name in taken]).items() if count >= most
        )

    def take(self, array: Node, name: str) -> None:
        """Note that an element of an array has a name from now on."""
        assert array.items is not None and array.key is not None
        unique = array.items.children[array.key].unique
        if unique is not None:
            self.names(unique).add(name)

    def promised(self, path: str, keys: tuple[str, ...]) -> dict[str, bool]:
        """Return the names that the model has committed to reveal in the array at `path` of the element `keys[-1]`."""
        promised: dict[str, bool] = {}
        for name, (array, by) in self.committed.items():
            if ".".join(array) == path and keys:
                key = self._codec.schema.root.children[name].key
                for entry in self.state.private[name]:
                    if entry[by] == keys[-1] and key is not None and entry[key] in self._prompt.slots:
                        promised[entry[key]] = True
        return promised

    def promise(self, array: Node, name: JSON) -> Mapping[str, JSON]:
        """Return what the private state says of a thing that becomes public, by property."""
        if handle(array) is None:
            return {}
        entries = (entry for part in self.state.private.values() for entry in part if entry.get(array.key) == name)
        return next(entries, {})

    def contents(self, path: str, name: str) -> Sequence[JSON]:
        """Return what the private state says is in an array, known from now on, of a thing that it has a handle for."""
        top, _, below = path.partition(".")
        parts: Sequence[JSON] = self.promise(self._codec.schema.root.children[top], name).get(below, ())
        return parts


def is_unique(array: Node) -> bool:
    """Return whether the elements of an array are things of which there is one each."""
    return array.items is not None and array.key is not None and array.items.children[array.key].unique is not None


def parent_of(root: Node, state: State, path: tuple[str, ...]) -> Mapping[str, JSON]:
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
