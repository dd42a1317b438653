#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sees tools/lint find planted errors, pass what is clean, and remember."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

CLEAN = """#include "a/a.h"
int a_sum(const int* list, int count) {
  int sum = 0;
  if (list == 0) return sum;
  for (int i = 0; i < count; i++) {
    sum += list[i];
  }
  return sum;
}
"""
HEADER = "int a_sum(const int* list, int count);\n"
# (file, text, what tools/lint says of it)
BREACHES = [
    ("src/a/braces.c", "int f(int x);\nint f(int x) {\n  if (x)\n"
     "    return 1;\n  return 0;\n}\n",
     ["src/a/braces.c:3:", "[readability-braces-around-statements]"]),
    ("src/a/null.c", "int f(int x);\nint f(int x) {\n  int* at = 0;\n"
     "  if (x > 3) at = &x;\n  return *at;\n}\n",
     ["src/a/null.c:5:", "[clang-analyzer-core.NullDereference]"]),
    ("src/a/leak.c", "#include <stdlib.h>\nint f(void);\nint f(void) {\n"
     "  char* text = malloc(8);\n  if (text == NULL) return 1;\n"
     "  return text[0] = 0;\n}\n",
     ["src/a/leak.c:6:", "[clang-analyzer-unix.Malloc]"]),
    ("src/a/broken.c", "int f(void) { return x; }\n",
     ["src/a/broken.c:1:", "[clang-diagnostic-error]"]),
]


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(root, *command):
    return subprocess.run(command, cwd=root, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def lint(root, *arguments):
    return run(root, os.path.join(root, "tools/lint"), *arguments)


def git(root, *arguments):
    done = run(root, "git", "-c", "user.name=a", "-c", "user.email=a@b.invalid",
               *arguments)
    if done.returncode != 0:
        raise AssertionError(done)
    return done.stdout.strip()


def plant(root):
    """A small tree with a build's compile commands, in a repository."""
    for path in ("tools/lint", ".clang-tidy"):
        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, path), os.path.join(root, path))
    write(root, "src/a/a.c", CLEAN)
    write(root, "src/a/a.h", HEADER)
    write(root, "tests/layout/LINTED", "")
    write(root, ".gitignore", "/build/\n")
    names = ["src/a/a.c"] + [path for path, _, _ in BREACHES]
    write(root, "build/release/compile_commands.json", json.dumps([
        {"directory": root, "file": name,
         "command": "cc -std=c11 -Werror -I%s/src -o x.o -c %s" % (root, name)}
        for name in names]))
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")


def wrongs(root):
    """What tools/lint does that it should not; a text each."""
    said = lint(root, "--all")
    if said.returncode == 77:
        yield said
        return
    if said.returncode != 0 or "1 linted" not in said.stdout:
        yield "clean: %s" % said
    again = lint(root, "--all")
    if again.returncode != 0 or "1 as before, 0 linted" not in again.stdout:
        yield "remembered: %s" % again
    # Where the whole was clean stands in LINTED, and nothing has changed.
    if "0 sources" not in lint(root).stdout:
        yield "recorded: %s" % lint(root)
    for path, text, expected in BREACHES:
        write(root, path, text)
        said = lint(root, path)
        if said.returncode != 1 or any(w not in said.stdout for w in expected):
            yield "%s: %s" % (path, said)
    # All that is new is linted, and no error is remembered as clean.
    said = lint(root)
    if said.returncode != 1 or any(
            path not in said.stdout for path, _, _ in BREACHES):
        yield "changed: %s" % said
    for path, _, _ in BREACHES:
        os.remove(os.path.join(root, path))
    # A header by a source that includes it; a name is counted, no error.
    write(root, "src/a/a.h", HEADER + "extern int aBadName;\n")
    said = lint(root, "src/a/a.h")
    if said.returncode != 0 or "convention: 1 in 1 files" not in said.stdout:
        yield "header: %s" % said
    said = lint(root, "--naming", "src/a/a.h")
    if "src/a/a.h:2:" not in said.stdout:
        yield "naming: %s" % said


def main():
    if shutil.which("git") is None:
        print("skip: there is no git")
        return 77
    root = os.path.realpath(tempfile.mkdtemp(prefix="kiln-layout-"))
    try:
        plant(root)
        found = list(wrongs(root))
    finally:
        shutil.rmtree(root)
    if found and not isinstance(found[0], str):
        print("skip: " + found[0].stdout.strip())
        return 77
    print("\n".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
