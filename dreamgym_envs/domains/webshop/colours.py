"""Colour names that options are reduced to before they are compared, in the original's order (MIT licence)."""

from dreamgym_envs.domains.webshop.words import word_list

__all__ = ["COLOURS", "normalise"]

COLOURS: tuple[str, ...] = tuple(word_list("colours"))


def normalise(option: str) -> str:
    """Return the first of the colours that an option's value contains anywhere, or the value itself.

    It is applied to every option, as in the original, with its surprises: "standard" contains "tan".

    Example:
        >>> normalise("bright aqua blue"), normalise("navy | white"), normalise("x-large")
        ('aqua', 'navy', 'x-large')
    """
    return next((colour for colour in COLOURS if colour in option), option)
