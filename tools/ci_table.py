# SPDX-License-Identifier: Apache-2.0
"""tools: reads the table of CI's parts, tools/ci_parts.txt."""

import collections

NOW_MINUTES = 15
ALL_MINUTES = 25
KINDS = ("cpu", "net", "later")

Part = collections.namedtuple("Part", "name minutes kind what")


def read_parts(text):
    """[Part] of the table's text, in its order; ValueError names a bad line."""
    parts = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, 3)
        try:
            part = Part(words[0], float(words[1]), words[2], words[3])
        except (IndexError, ValueError):
            raise ValueError("line %d is not NAME SHARE KIND WHAT" % number) \
                from None
        if part.kind not in KINDS:
            raise ValueError("line %d: the kind \"%s\" is none of %s" % (
                number, part.kind, ", ".join(KINDS)))
        if part.name in [one.name for one in parts]:
            raise ValueError("line %d: %s stands twice" % (number, part.name))
        parts.append(part)
    return parts


def minutes(parts, *kinds):
    return round(sum(p.minutes for p in parts if p.kind in kinds), 3)


def over_budget(parts):
    """What is wrong with the sums, as texts."""
    now, every = minutes(parts, "cpu", "net"), minutes(parts, *KINDS)
    if now > NOW_MINUTES:
        yield "what runs today has %g minutes, over %d" % (now, NOW_MINUTES)
    if every > ALL_MINUTES:
        yield "all shares together are %g minutes, over %d" % (every,
                                                               ALL_MINUTES)


def as_markdown(parts):
    """The rows of CONTRIBUTING's table."""
    rows = []
    for part in parts:
        kept = "" if part.kind != "later" else " (kept for it)"
        rows.append("| `%s` | %g | %s%s |" % (part.name, part.minutes,
                                              part.what, kept))
    return rows
