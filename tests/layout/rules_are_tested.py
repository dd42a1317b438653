#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule is in RULES, and has a planted breach."""

import os
import sys

from breaches import BREACHES
from layout_tree import RULES


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "RULES"), encoding="utf-8") as file:
        listed = {line.strip() for line in file
                  if line.strip() and not line.startswith("#")}
    problems = ["%s is no rule" % n for n in listed - set(RULES)]
    problems += ["RULES has not %s" % n for n in set(RULES) - listed]
    problems += ["%s has no planted breach" % n for n in RULES
                 if not BREACHES.get(n)]
    print("\n".join(sorted(problems)), end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
