#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the part of docs/cli/*.md that comes from the command's own table.

gen_cli_docs.py KILN [--check]

With --check it writes nothing and exits with 1 if a page is not what it would
write.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PART = re.compile(r"(<!-- made by: kiln help --markdown( \w+)? -->\n)"
                  r".*?(<!-- end -->\n)", re.S)


def main():
    kiln, check = sys.argv[1], "--check" in sys.argv[2:]
    folder = os.path.join(ROOT, "docs", "cli")
    stale = 0
    said = subprocess.check_output([kiln, "help"], text=True)
    for name in re.findall(r"^  (\w+) +\S", said, re.M):
        if not os.path.exists(os.path.join(folder, name + ".md")):
            print("docs/cli/%s.md: there is no such page" % name)
            stale += 1
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".md"):
            continue
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            old = file.read()

        def fresh(match):
            text = subprocess.check_output(
                [kiln, "help", "--markdown"] + (match.group(2) or "").split(),
                text=True)
            return match.group(1) + "\n" + text + "\n" + match.group(3)

        if not PART.search(old):
            print("%s: there is no part to write" % name)
            stale += 1
            continue
        new = PART.sub(fresh, old)
        if new == old:
            continue
        if check:
            print("%s: not what `kiln help --markdown` says; run %s" %
                  (name, "tools/gen_cli_docs.py KILN"))
            stale += 1
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
