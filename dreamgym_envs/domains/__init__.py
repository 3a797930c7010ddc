"""The domains by name. One folder each; nothing is imported before it is asked for."""

from functools import cache
from importlib import import_module

from dreamgym_envs.domains.base import Domain

__all__ = ["DOMAINS", "get_domain"]

DOMAINS = {"alfworld": "ALFWorld", "webshop": "WebShopDomain"}
"""Name of a domain, which is its folder, and the class in the folder's module `domain` that describes it."""


@cache
def get_domain(name: str) -> Domain:
    """Return the domain of that name, always the same object.

    Raises:
        ValueError: There is no such domain.

    Example:
        >>> get_domain("alfworld").title
        'ALFWorld'
    """
    if name not in DOMAINS:
        raise ValueError(f"no domain {name!r}; there are: {', '.join(sorted(DOMAINS))}")
    domain: Domain = getattr(import_module(f"dreamgym_envs.domains.{name}.domain"), DOMAINS[name])()
    return domain
