#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools: gives names of the source new ones, from a table.

    tools/rename.py TABLE [--module MODULE] [--check]

A line of TABLE is `WHERE OLD NEW`. WHERE is `*` for a name that the linker or
several files see: it is replaced wherever it stands by itself, in sources,
tests, lists and pages. Else it is a file of C: the name is one of its own, and
is replaced there and in what includes the file, where it is code and no member
of a struct, and in comments where it stands as a call or between backticks.
`OLD(` replaces calls and definitions alone, for a name that a variable or a
member of the same file bears as well.

What a module is goes by WHERE, for `*` by the new name. --check changes
nothing; it says which rows have nothing left to replace. Whether all was
replaced is the compiler's to say, and that nothing else was, a comparison of
what it made before and after.
"""

import argparse
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What was said at its time stays as it was; what is generated is made anew.
KEPT = re.compile(r"^docs/evidence/|_gen\.|^tools/renames|^tests/truth/data")
TEXT = (".c", ".h", ".inc", ".cc", ".cpp", ".py", ".txt", ".md", ".cmake",
        ".supp", ".map", ".in", ".sh", ".gdb", ".dict")
# Comments, strings, characters, words, all else.
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|[A-Za-z_]\w*|[0-9][\w.]*|\s+|->|.", re.S)
WORD = re.compile(r"[A-Za-z_]\w*")


def tracked():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    for name in names:
        if not name or KEPT.search(name):
            continue
        first = name.split("/")[0]
        plain = "." not in os.path.basename(name)
        if plain or name.endswith(TEXT) or first == "docs":
            yield name


def read_table(path):
    """The names of all files, and those of each file."""
    common = {}
    own = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 3:
                sys.exit("%s:%d: not WHERE OLD NEW" % (path, number))
            names = common if words[0] == "*" else own[words[0]]
            if words[1] in names:
                sys.exit("%s:%d: %s a second time" % (path, number, words[1]))
            names[words[1]] = words[2]
    return common, own


def of_module(module, common, own):
    prefix = re.compile("kilni_%s_|k[A-Z]" % module)
    common = {old: new for old, new in common.items() if prefix.match(new)}
    own = {path: names for path, names in own.items()
           if path.split("/")[1] == module}
    return common, own


def includes(texts):
    """For each file of C, the files that it includes, by their base names."""
    found = {}
    for path, text in texts.items():
        if path.endswith((".c", ".h", ".inc")):
            found[path] = {os.path.basename(name) for name in re.findall(
                r'^\s*#\s*include\s+"([^"]+)"', text, re.M)}
    return found


def users(path, inside):
    """A file and those that include it, themselves or through others; and the
    pieces that it is made of."""
    all_of_them = {path}
    all_of_them |= {piece for piece in inside if piece.endswith(".inc") and
                    os.path.basename(piece) in inside[path]}
    waiting = [path]
    while waiting:
        base = os.path.basename(waiting.pop())
        for user, names in inside.items():
            if base in names and user not in all_of_them:
                all_of_them.add(user)
                waiting.append(user)
    return all_of_them


def replace_common(text, names, seen):
    def change(match):
        word = match.group()
        for prefix in ("__wrap_", "__real_"):
            if word.startswith(prefix) and word[len(prefix):] in names:
                seen.add(word[len(prefix):])
                return prefix + names[word[len(prefix):]]
        if word in names:
            seen.add(word)
        return names.get(word, word)
    return WORD.sub(change, text)


def in_comment(text, names):
    def change(match):
        return match.group(1) + names.get(match.group(2), match.group(2))
    text = re.sub(r"(`)(\w+)(?=`)", change, text)
    return re.sub(r"(\b)([A-Za-z_]\w*)(?=\(\))", change, text)


def replace_own(text, names, seen):
    out = []
    last = ""
    tokens = TOKEN.findall(text)
    for at, token in enumerate(tokens):
        if token.startswith(("//", "/*")):
            out.append(in_comment(token, names))
            continue
        if WORD.fullmatch(token) and last not in (".", "->"):
            follows = tokens[at + 1] if at + 1 < len(tokens) else ""
            called = token + "("
            if token in names:
                seen.add(token)
                out.append(names[token])
            elif called in names and follows == "(":
                seen.add(called)
                out.append(names[called])
            else:
                out.append(token)
        else:
            out.append(token)
        if not token.isspace():
            last = token
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--module")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    common, own = read_table(options.table)
    if options.module:
        common, own = of_module(options.module, common, own)
    before = {}
    for path in tracked():
        try:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                before[path] = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    texts = dict(before)
    inside = includes(texts)
    unused = []
    for where, names in own.items():
        seen = set()
        for path in users(where, inside) if where in texts else []:
            texts[path] = replace_own(texts[path], names, seen)
        unused += ["%s %s" % (where, old) for old in names if old not in seen]
    seen = set()
    for path, text in texts.items():
        texts[path] = replace_common(text, common, seen)
    unused += ["* " + old for old in common if old not in seen]
    for row in unused:
        print("nothing to replace: " + row)
    changed = [path for path in texts if texts[path] != before[path]]
    print("%d files" % len(changed))
    if options.check:
        return 1 if unused else 0
    for path in changed:
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(texts[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
