#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries layout rules on a tree: check.py [RULE...] --tree DIR --build DIR.

Without a rule, all of them. Prints each problem on a line of its own; exits
with 1 if there was one, with 77 if no rule could be tried here.
"""

import argparse
import sys

import rules_binary  # noqa: F401  (each import registers its rules)
import rules_docs  # noqa: F401
import rules_layout  # noqa: F401
import rules_text  # noqa: F401
from layout_tree import RULES, Skip, Tree


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", nargs="*", choices=[[], *sorted(RULES)])
    parser.add_argument("--tree", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    problems = 0
    skipped = 0
    names = options.rules or sorted(RULES)
    tree = Tree(options.tree, options.build, options.cc)
    for name in names:
        try:
            for problem in RULES[name](tree):
                print("%s: %s" % (name, problem))
                problems += 1
        except Skip as why:
            print("%s: skipped: %s" % (name, why))
            skipped += 1
    if problems:
        return 1
    return 77 if skipped == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
