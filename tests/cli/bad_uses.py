#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad uses of the command, by a table: what each is answered.

    bad_uses.py KILN TABLE

The table says of each line what must hold: bad_uses.txt has the rules. Besides
those, no use may take longer than 100 seconds.
"""

import fnmatch
import hashlib
import os
import re
import sys

import use_tables

NOTE = re.compile(r"kiln: (grid|device|warning|block|note):|$")


def listing(folder):
    """Every path below a folder, with what is in it."""
    found = {}
    for at, folders, names in os.walk(folder):
        for name in folders:
            found[os.path.join(at, name)] = "folder"
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def first_line(text):
    """The first line of the error: no note, and not the help above it."""
    lines = [line for line in text.split("\n") if not NOTE.match(line)]
    said = [line for line in lines if "error" in line]
    return (said or lines or [""])[0]


def look(kiln, row):
    number, code, pattern, command = row
    with use_tables.place(kiln) as (folder, env):
        before = listing(folder)
        ended, out, err = use_tables.run(command, folder, env)
        after = listing(folder)
    wrong = []
    if ended != int(code):
        wrong.append("exit code %d, not %s" % (ended, code))
    if not fnmatch.fnmatchcase(first_line(err), pattern):
        wrong.append("the first line is not like %s" % pattern)
    if not re.search(r"^\s*Fix: \S", err, re.M):
        wrong.append("there is no Fix")
    if out:
        wrong.append("there is something on standard output")
    if before != after:
        wrong.append("left behind or changed: %s" % " ".join(sorted(
            os.path.basename(path) for path in set(before) ^ set(after)
            | {p for p in before if before[p] != after.get(p)})))
    if not wrong:
        return []
    return ["FAILED: line %d: %s" % (number, command)] + wrong + [err]


if __name__ == "__main__":
    sys.exit(use_tables.main(look, "%d bad uses, %d answered wrongly"))
