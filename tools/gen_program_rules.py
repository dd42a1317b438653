#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/program-rules.md from program_rules.inc (--check)."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "src/program/ir/program_rules.inc")
PAGE = os.path.join(ROOT, "docs/reference/program-rules.md")
HEAD = """# Rules of programs

What a program must keep beside its grammar (`program-text.md`). A message
names its rule, `[P012]`, and says after a colon what it met. P048 is a note:
the program is valid. Each rule is tested by programs that break it and
programs that keep it (`tests/unit/program/test_program_rules.c`,
`test_program_builder.c`).

| rule | what is wrong | what to do |
|---|---|---|
"""


def rows(text):
    """(number, message, fix) of each row."""
    pattern = r'X\((\d+), \w+,\s*"([^"]*)",\s*((?:"[^"]*"\s*)+)\)'
    for number, message, fix in re.findall(pattern, text):
        yield int(number), message, "".join(re.findall(r'"([^"]*)"', fix))


def main():
    with open(TABLE, encoding="utf-8") as file:
        text = file.read()
    page = HEAD
    for number, message, fix in rows(text):
        page += "| P%03d | %s | %s |\n" % (number, message,
                                          fix.replace("|", "\\|"))
    if "--check" in sys.argv:
        with open(PAGE, encoding="utf-8") as file:
            return 0 if file.read() == page else 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
