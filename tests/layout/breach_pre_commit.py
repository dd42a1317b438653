#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees tools/pre-commit refuse planted breaches, as the hook of a commit."""

import os
import shutil
import sys
import tempfile

from breach_lint import ROOT, run, write

TOP = "// SPDX-License-Identifier: Apache-2.0\n//\n// base: a purpose.\n"
GOOD = TOP + "int f(int x);\nint f(int x) {\n  return x;\n}\n"
# (file, text, subject, what is said; None where the commit is made)
COMMITS = [
    ("src/base/a.c", GOOD, "base: a file", None),
    ("src/base/a.c", GOOD + "int  y;\n", "base: a blank", "tools/format"),
    ("src/base/a.c", TOP + "void f(int n) {\n  for (int i = 0; i < n; ++i) "
     "f(i);\n}\n", "base: a step", "postfix_steps"),
    ("src/base/a.c", GOOD + "int y;\n", "base: " + "x" * 67, "73 characters"),
    ("src/base/a.c", GOOD + "int y;\n", "some things", "module: what"),
    ("src/base/a.c", GOOD + "int y;\n", "base: " + "x" * 66, None),
]


def plant(root):
    for path in ("tools/format", "tools/lint", "tools/pre-commit",
                 ".clang-format", ".clang-tidy", "tests/layout"):
        source, target = (os.path.join(top, path) for top in (ROOT, root))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    for name in ("GENERATORS", "EXCEPTIONS", "LINTED"):
        write(root, "tests/layout/" + name, "tools/gen.py: a\n"
              if name == "GENERATORS" else "")
    write(root, "src/LAYERS", "0 base: * ; ;\n")
    write(root, ".gitignore", "/build/\n__pycache__/\n")
    write(root, "build/release/compile_commands.json", "[]")
    for folder in ("include", "bench", "examples"):
        os.makedirs(os.path.join(root, folder))
    for key, value in (("name", "a"), ("email", "a@b.invalid")):
        run(root, "git", "config", "user." + key, value)


def wrongs(root):
    installed = run(root, "tools/pre-commit", "--install")
    if installed.returncode != 0:
        yield str(installed)
    for path, text, subject, expected in COMMITS:
        write(root, path, text)
        run(root, "git", "add", "-A")
        said = run(root, "git", "commit", "-m", subject)
        missing = "is not installed" in said.stdout
        if expected is None:
            right = said.returncode == 0
        else:
            right = said.returncode != 0 and expected in said.stdout
        if not right and not (missing and expected == "tools/format"):
            yield "%s: %s" % (subject, said)


def main():
    if shutil.which("git") is None:
        print("skip: there is no git")
        return 77
    root = os.path.realpath(tempfile.mkdtemp(prefix="kiln-layout-"))
    try:
        run(root, "git", "init", "-q")
        plant(root)
        found = list(wrongs(root))
    finally:
        shutil.rmtree(root)
    print("\n".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
