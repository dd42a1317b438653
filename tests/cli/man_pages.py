#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the manual pages against the command, and has them read.

man_pages.py content KILN   every command has a page, with all its options
man_pages.py lint           mandoc, or else man, warns of nothing in any page

Without a reader of manual pages `lint` is a skip: exit code 77.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "docs", "man")
BAD = '.TH KILN 1 2026-01-01\n.SH NAME\nkiln \\- \\(zz a sign of no name\n'


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def text_of(name):
    """A page without its fonts and escapes."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"\\f[BIR]|\\[%&]", "", text)
    return text.replace("\\-", "-").replace("\\ ", " ").replace("\\e", "\\")


def content(kiln):
    names = re.findall(r"^  (\w+) +\S", output(kiln, "help"), re.M)
    assert len(names) > 5, names
    overview = text_of("kiln.1")
    for name in names:
        page = text_of("kiln-%s.1" % name)
        if "kiln-%s(1)" % name not in overview:
            yield "kiln.1 does not name kiln-%s" % name
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS",
                        '"EXIT STATUS"', '"SEE ALSO"'):
            if ".SH %s\n" % section not in page:
                yield "kiln-%s.1 has no section %s" % (name, section)
        said = output(kiln, "help", name)
        for option in re.findall(r"^  --([\w-]+)", said, re.M):
            if not re.search(r"^\.TP\n--%s( |$)" % option, page, re.M):
                yield "kiln-%s.1 says nothing of --%s" % (name, option)
        example = re.search(r"^Example:\n  (.*)$", said, re.M)
        if example and example.group(1).split()[-1] not in page:
            yield "kiln-%s.1 has another example" % name


def reader():
    """How to read a page and hear of what is wrong in it, or None."""
    if shutil.which("mandoc"):
        return ["mandoc", "-T", "lint", "-W", "warning"]
    if shutil.which("man") and shutil.which("groff"):
        return ["man", "--warnings=w", "-E", "UTF-8", "-Tutf8", "-l"]
    return None


def complaints(command, path):
    result = subprocess.run(command + [path], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    said = result.stderr
    if command[0] == "mandoc":
        said += result.stdout
    return said.strip()


def lint(command):
    with tempfile.TemporaryDirectory(prefix="kiln-man-") as folder:
        bad = os.path.join(folder, "kiln.1")
        with open(bad, "w", encoding="utf-8") as file:
            file.write(BAD)
        if not complaints(command, bad):
            yield "%s does not see what is wrong in a page" % command[0]
    for name in sorted(os.listdir(FOLDER)):
        said = complaints(command, os.path.join(FOLDER, name))
        if said:
            yield "%s: %s" % (name, said)


def main():
    if sys.argv[1] == "content":
        found = list(content(sys.argv[2]))
    else:
        command = reader()
        if command is None:
            print("skipped: neither mandoc nor man with groff is installed")
            return 77
        found = list(lint(command))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
