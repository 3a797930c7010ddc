"""A bounded cache of predictions that chance has no part in."""

from collections import OrderedDict
from collections.abc import Hashable

from dreamgym_envs.experience.model import Prediction


class PredictionCache:
    """Least recently used predictions by everything that they depend on.

    The key is the prompt with the strings that its slots stand for: greedy decoding reads nothing else. Predictions
    with a sampled part are never kept. It pays where tasks and starts repeat (evaluation, groups of rollouts), hardly
    where every environment is in a house of its own.

    Args:
        capacity: Most predictions kept; 0 keeps none.
    """

    def __init__(self, capacity: int) -> None:
        if not isinstance(capacity, int) or capacity < 0:
            raise ValueError(f"cache is {capacity!r}; expected the most predictions to keep, or 0 for no cache")
        self.capacity = capacity
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, Prediction] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def hit_rate(self) -> float:
        """Share of look-ups that were answered, in [0, 1]."""
        return self.hits / max(1, self.hits + self.misses)

    def get(self, key: Hashable) -> Prediction | None:
        """Return the prediction kept for a key, if any."""
        found = self._entries.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, prediction: Prediction) -> None:
        """Keep a prediction unless chance had a part in it."""
        if prediction.sampled or self.capacity == 0:
            return
        self._entries[key] = prediction
        self._entries.move_to_end(key)
        if len(self._entries) > self.capacity:
            self._entries.popitem(last=False)
