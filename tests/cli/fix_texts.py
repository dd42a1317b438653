#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Fix says, done: then the command must work.

    fix_texts.py KILN TABLE

The table says what fails and how its Fix is followed: fix_texts.txt has the
rules. A command that works at once, whose Fix reads otherwise, or that fails
still when it was followed, is reported.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

import bad_uses
import run_cases

CATALOG = os.path.join(run_cases.ROOT, "src/locate/locate_catalog.txt")
WORDS = """
kiln() { "$KILN" "$@"; }
catalog() { grep -q -e "=$1\\(-cu[0-9]*\\)\\?\\( \\|$\\)" "%s"; }
""" % CATALOG


def read_table(path):
    with open(path, encoding="utf-8") as file:
        return [(number, *line.rstrip("\n").split(" | ", 2))
                for number, line in enumerate(file, 1)
                if line.strip() and not line.startswith("#")]


def run(command, kiln, folder, caches):
    done = subprocess.run(["sh", "-c", WORDS + command], cwd=folder,
                          env=bad_uses.environment(kiln, caches), check=False,
                          timeout=100, stdin=subprocess.DEVNULL,
                          capture_output=True)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def follow(kiln, row):
    """The lines of a report; none if following works."""
    number, command, text, followed = row
    with tempfile.TemporaryDirectory(prefix="kiln-fix-") as folder, \
            tempfile.TemporaryDirectory(prefix="kiln-cache-") as caches:
        bad_uses.make_folder(folder)
        code, err = run(command, kiln, folder, caches)
        head = "FAILED: line %d: %s" % (number, command)
        if code == 0:
            return [head, "it works at once", err]
        fix = re.search(r"^\s*Fix: (.*)", err, re.M)
        said = re.search(text, fix.group(1)) if fix else None
        if said is None:
            return [head, "no Fix like: " + text, err]
        for at, value in enumerate(said.groups(), 1):
            followed = followed.replace("{%d}" % at, value or "")
        code, err = run(followed, kiln, folder, caches)
        if code == 0:
            return []
        return [head, "Fix: " + fix.group(1),
                "followed, exit code %d: %s" % (code, followed), err]


def main():
    kiln, table = os.path.abspath(sys.argv[1]), sys.argv[2]
    rows = read_table(table)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda row: follow(kiln, row), rows):
            bad += bool(report)
            for line in report:
                print(line.rstrip().replace("\n", "\n    "))
    print("%d texts followed, %d lead nowhere" % (len(rows), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
