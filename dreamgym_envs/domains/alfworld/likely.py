"""Where things are likely to be: the common sense by which scripted players search a household.

Rough numbers, counted in official training games: how many objects a receptacle of a kind holds, which kinds of
receptacles take certain objects only, and where an object is found out of proportion.
"""

from functools import cache

__all__ = ["OPENABLE", "likelihood"]

OPENABLE = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
"""Kinds of receptacles that are closed as a rule; in some games a cabinet, drawer or safe cannot be closed."""

_CROWDED = {
    "diningtable": 9.0, "countertop": 6.0, "desk": 5.0, "bed": 4.0, "dresser": 4.0, "fridge": 4.0, "coffeetable": 3.5,
    "cart": 3.5, "tvstand": 3.0, "sofa": 2.7, "toilet": 2.7, "sidetable": 2.5, "sinkbasin": 1.4, "microwave": 1.2,
    "ottoman": 1.2, "bathtubbasin": 1.0, "armchair": 1.0, "shelf": 1.0, "garbagecan": 0.8, "safe": 0.7, "drawer": 0.5,
    "cabinet": 0.5, "toaster": 0.02, "laundryhamper": 0.02,
}  # fmt: skip
"""Objects in a receptacle of the kind."""


def _kinds(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FOOD = _kinds("apple bread egg lettuce potato tomato")
_DISHES = _kinds("bowl cup glassbottle mug plate")
_CUTLERY = _kinds("butterknife fork knife ladle spatula spoon")
_ONLY = {
    "bathtubbasin": _kinds("cloth dishsponge handtowel soapbar"),
    "bed": _kinds("baseballbat basketball book cellphone laptop newspaper pillow teddybear"),
    "coffeemachine": _kinds("cup mug"),
    "fridge": _FOOD | _DISHES | _kinds("pan pot winebottle"),
    "garbagecan": _FOOD
    | _kinds("cd newspaper papertowelroll pen pencil soapbar soapbottle spraybottle tissuebox toiletpaper winebottle"),
    "handtowelholder": _kinds("handtowel"),
    "microwave": _FOOD | _DISHES,
    "sinkbasin": _FOOD | _DISHES | _CUTLERY | _kinds("cloth dishsponge kettle soapbar"),
    "stoveburner": _kinds("kettle pan pot"),
    "toiletpaperhanger": _kinds("toiletpaper"),
    "towelholder": _kinds("towel"),
}
"""The objects in receptacles that take certain kinds of them only."""

_NEVER = {
    "cabinet": _FOOD | _CUTLERY | _kinds("cellphone papertowelroll pencil pillow statue"),
    "drawer": _FOOD | _DISHES | _kinds("alarmclock kettle laptop pan pillow pot spraybottle statue vase winebottle"),
}
"""What is never in receptacles of which there are many."""

_FAVOURITE = {
    "bathtubbasin": _kinds("cloth"),
    "bed": _kinds("laptop pillow teddybear"),
    "cabinet": _kinds("candle cloth toiletpaper"),
    "coffeemachine": _kinds("mug"),
    "desk": _kinds("bowl desklamp"),
    "drawer": _kinds("fork spatula spoon"),
    "fridge": _kinds("tomato"),
    "garbagecan": _kinds("apple egg papertowelroll soapbottle tomato winebottle"),
    "handtowelholder": _kinds("handtowel"),
    "microwave": _kinds("apple egg potato"),
    "safe": _kinds("keychain"),
    "shelf": _kinds("candle papertowelroll toiletpaper vase"),
    "sidetable": _kinds("desklamp peppershaker potato soapbottle"),
    "sinkbasin": _kinds("egg glassbottle potato spoon"),
    "sofa": _kinds("pillow"),
    "stoveburner": _kinds("kettle pan pot"),
    "toilet": _kinds("soapbottle"),
    "towelholder": _kinds("towel"),
}
"""Where a kind of object is found at least three times as often as the crowd in a receptacle suggests."""


@cache
def likelihood(thing: str, place: str) -> float:
    """Return how likely a kind of object is in a receptacle of a kind; only ratios mean anything.

    Example:
        >>> likelihood("pan", "stoveburner") > likelihood("pan", "cabinet") > likelihood("pan", "bed")
        True
    """
    if thing in _NEVER.get(place, ()) or (place in _ONLY and thing not in _ONLY[place]):
        return 0.01
    return _CROWDED.get(place, 1.0) * (4.0 if thing in _FAVOURITE.get(place, ()) else 1.0)
