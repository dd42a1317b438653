#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds what a test needs and CI cannot fetch, below $KILN_SOURCES.

    kiln_sources.py NAME... -- COMMAND...

runs COMMAND with {NAME} in its words replaced by the path of each source; where
one is not there it prints why and exits with 77, so that ctest reports a skip.
tests/support/sources.txt says what each NAME is and where it comes from. In a
CMakeLists.txt, kiln_source_test() is this.
"""

import os
import sys

SKIP = 77
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sources.txt")


def described(path=LIST):
    """{name: what it is, and where it comes from}"""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, what = line.split(None, 1)
                found[name] = what.strip()
    return found


def find(name):
    """The path of a source; None where KILN_SOURCES has it not."""
    folder = os.environ.get("KILN_SOURCES")
    path = os.path.join(os.path.abspath(folder), name) if folder else ""
    return path if path and os.path.exists(path) else None


def why_not(name):
    """What a test prints that skips for want of a source."""
    return "skip: KILN_SOURCES has no %s: %s" % (name, described()[name])


def main():
    words = sys.argv[1:]
    if "--" not in words[1:]:
        print(__doc__.strip())
        return 2
    names = words[:words.index("--")]
    command = words[words.index("--") + 1:]
    for name in names:
        path = find(name)
        if path is None:
            print(why_not(name))
            return SKIP
        command = [word.replace("{%s}" % name, path) for word in command]
    sys.stdout.flush()
    os.execvp(command[0], command)
    return 1


if __name__ == "__main__":
    sys.exit(main())
