"""The nouns of a product's title, without a tagger.

The original tags titles with spaCy's en_core_web_sm and counts nouns and proper nouns. Titles are lists of names and
kinds written with capitals, most of which spaCy takes for proper nouns, so the rule here goes the other way: a word of
a title is a noun unless it is known not to be one. Words are split as spaCy splits them (at hyphens and slashes between
letters; possessive 's apart). Not nouns are

- words that start with a digit, such as "4K" or "30-Pack"'s 30, and single letters;
- function words, number words, and the adjectives, verbs and adverbs that are common in titles (`OTHERS`);
- words that end like a participle, adverb or adjective ("-ed", "-ly", "-able", "-ful", "-less", "-ous", "-proof", ...)
  and are not among the nouns that do ("bed", "cable").

To compare it with spaCy where that is installed, give the titles of a catalogue to both and look at what differs in
`reward.type_factor`; tests/test_webshop_reward.py holds the title scores that the original's own tests expect.
"""

import re
from functools import lru_cache

from dreamgym_envs.domains.webshop.words import word_set

__all__ = ["nouns"]

OTHERS = word_set("not nouns")
"""Words that are not counted."""

_ENDINGS = ("ed", "ly", "able", "ible", "ful", "less", "ous", "proof", "ive", "ish", "est", "ical", "ese", "ier")
_NOUNS_ALL_THE_SAME = word_set("nouns all the same")
_SHORTEST_ENDED = 5

_BETWEEN = re.compile(r"(?<=[A-Za-z0-9])[-/:<>=&+](?=[A-Za-z])|(?<=[A-Za-z])[,;|]+(?=[A-Za-z])|\s+")
_EDGES = "\"'()[]{}<>*#!?,;:|&+-/\\~^%=$.\u00ae\u2122\u2013\u2014\u2018\u2019\u201c\u201d\u2026"
_POSSESSIVE = re.compile("['\u2019]s?$")


@lru_cache(maxsize=1 << 15)
def nouns(title: str) -> tuple[str, ...]:
    """Return the nouns of a title, lower case, in order and with repetitions.

    Example:
        >>> nouns("Nautica Men's Solid Crew Neck Short-Sleeve Pocket T-Shirt")
        ('nautica', 'men', 'crew', 'neck', 'sleeve', 'pocket', 't', 'shirt')
    """
    words = (_POSSESSIVE.sub("", part.strip(_EDGES)).lower() for part in _BETWEEN.split(title))
    return tuple(word for word in words if _is_noun(word))


def _is_noun(word: str) -> bool:
    if not word or not word[0].isalpha() or word in OTHERS:
        return False
    ended = len(word) >= _SHORTEST_ENDED and word.endswith(_ENDINGS)
    return not ended or word in _NOUNS_ALL_THE_SAME
