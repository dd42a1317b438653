#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Fix says, done: then the command must work.

    fix_texts.py KILN TABLE

The table says what fails and how its Fix is followed: fix_texts.txt has the
rules. A command that works at once, whose Fix reads otherwise, or that fails
still when it was followed, is reported.
"""

import os
import re
import sys

import run_cases
import use_tables

CATALOG = os.path.join(run_cases.ROOT, "src/locate/locate_catalog.txt")
WORDS = """
kiln() { "$KILN" "$@"; }
catalog() { grep -q -e "=$1\\(-cu[0-9]*\\)\\?\\( \\|$\\)" "%s"; }
""" % CATALOG


def look(kiln, row):
    number, command, text, followed = row
    with use_tables.place(kiln) as (folder, env):
        code, _, err = use_tables.run(WORDS + command, folder, env)
        head = "FAILED: line %d: %s" % (number, command)
        if code == 0:
            return [head, "it works at once", err]
        fix = re.search(r"^\s*Fix: (.*)", err, re.M)
        said = re.search(text, fix.group(1)) if fix else None
        if said is None:
            return [head, "no Fix like: " + text, err]
        for at, value in enumerate(said.groups(), 1):
            followed = followed.replace("{%d}" % at, value or "")
        code, _, err = use_tables.run(WORDS + followed, folder, env)
        if code == 0:
            return []
        return [head, "Fix: " + fix.group(1),
                "followed, exit code %d: %s" % (code, followed), err]


if __name__ == "__main__":
    sys.exit(use_tables.main(look, "%d texts followed, %d lead nowhere"))
