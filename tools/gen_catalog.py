#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables and the page of the catalog.

From src/locate/locate_catalog.txt come src/locate/locate_catalog_gen.inc and
docs/reference/catalog.md. With --check, writes nothing and exits with 1 if
one of them is out of date.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = "src/locate/locate_catalog.txt"
TABLE = "src/locate/locate_catalog_gen.inc"
PAGE = "docs/reference/catalog.md"

# In the order of the numbers in kiln/locate_catalog.h.
KINDS = ("lib", "header", "static", "bitcode", "binary", "stub")
CLASSES = ("ctk", "driver", "other")
FLAGS = ("deepbind", "tegra", "executable", "pathfinder")
LISTS = ("files", "wheel_dirs", "toolkit_dirs", "conda_dirs",
         "distribution_dirs", "hpc_sdk_dirs", "variables", "variable_dirs",
         "needs", "wants", "tags", "workarounds", "wheels", "packages")
TEXTS = ("summary", "component")
WORKAROUNDS = ("nvrtc-builtins", "librt")


class Bad(Exception):
    """The catalog cannot be read; the text says where and why."""


class Row:
    """One row: kind, name, class, texts, flags and lists of (text, major)."""

    def __init__(self, kind, name, class_word):
        self.kind, self.name, self.class_word = kind, name, class_word
        self.texts = dict.fromkeys(TEXTS, "")
        self.flags = ()
        self.lists = {key: () for key in LISTS}

    def texts_of(self, key, major=0):
        """The texts of a list; with `major` those that it may use."""
        return [text for text, of in self.lists[key]
                if not major or of in (0, major)]


class Flaw:
    def __init__(self, name, distribution, versions):
        self.id, self.distribution = name, distribution
        self.versions = versions
        self.file = self.what = self.mend = ""


def expand(words, groups):
    out = []
    for word in words:
        out += groups[word] if word.startswith("@") else [word]
    return out


def item(word):
    match = re.match(r"(\d+)=(.*)", word)
    return (match.group(2), int(match.group(1))) if match else (word, 0)


def read_line(target, key, value, groups):
    if isinstance(target, Flaw):
        if key not in ("file", "what", "mend"):
            raise Bad("a flaw has no %s" % key)
        setattr(target, key, value)
    elif key in TEXTS:
        target.texts[key] = value
    elif key == "flags":
        target.flags = tuple(value.split())
    elif key in LISTS:
        words = expand(value.split(), groups)
        target.lists[key] = tuple(item(word) for word in
                                  dict.fromkeys(words))
    else:
        raise Bad("no such key: " + key)


def read(path=None):
    """The rows, sorted as the library has them, and the flaws."""
    path = path or os.path.join(ROOT, SOURCE)
    rows, flaws, groups, target = [], [], {}, None
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        words = line.split()
        try:
            if not words or line.startswith("#"):
                continue
            if line.startswith("  "):
                key, _, value = line.strip().partition(": ")
                read_line(target, key, value, groups)
            elif words[0] == "ignore":
                continue  # for tools/check_catalog.py
            elif words[0] == "group":
                groups[words[1]] = expand(words[2:], groups)
            elif words[0] == "flaw":
                target = Flaw(*words[1:])
                flaws.append(target)
            elif words[0] in KINDS:
                target = Row(*words)
                rows.append(target)
            else:
                raise Bad("no such kind: " + words[0])
        except (Bad, KeyError, TypeError, AttributeError) as error:
            raise Bad("%s:%d: %s" % (SOURCE, number, error)) from error
    rows.sort(key=lambda row: (KINDS.index(row.kind), row.name.encode()))
    check(rows)
    return rows, flaws


def check(rows):
    """What every catalog must be; the unit tests see it from C again."""
    libs = {row.name for row in rows if row.kind == "lib"}
    seen, files = set(), {}
    for row in rows:
        where = "%s %s: " % (row.kind, row.name)
        if (row.kind, row.name) in seen:
            raise Bad(where + "is there twice")
        seen.add((row.kind, row.name))
        if row.class_word not in CLASSES:
            raise Bad(where + "no such class: " + row.class_word)
        if not row.lists["files"] or not row.texts["summary"]:
            raise Bad(where + "has no file or no summary")
        for flag in row.flags:
            if flag not in FLAGS:
                raise Bad(where + "no such flag: " + flag)
        for word in row.texts_of("workarounds"):
            if word not in WORKAROUNDS:
                raise Bad(where + "no such workaround: " + word)
        for need in row.texts_of("needs") + row.texts_of("wants"):
            if need not in libs or need == row.name:
                raise Bad(where + "needs what is no other library: " + need)
            if need in row.texts_of("needs") and \
                    need in row.texts_of("wants"):
                raise Bad(where + "needs and wants " + need)
        for name in row.texts_of("files"):
            if files.setdefault((row.kind, name), row) is not row:
                raise Bad(where + "shares the file " + name)


class Pool:
    """Texts, each once; a name that C can compute the place of."""

    def __init__(self):
        self.texts = {}

    def at(self, text):
        index = self.texts.setdefault(text, len(self.texts))
        return "T(%d)" % index

    def lines(self):
        quoted = [text.replace("\\", "\\\\").replace('"', '\\"')
                  for text in self.texts]
        out = ["static const struct pool_t {"]
        for index, text in enumerate(self.texts):
            out.append("  char t%d[%d];" % (index, len(text.encode()) + 1))
        out.append("} kPool = {")
        out += ['    "%s",' % text for text in quoted]
        out.append("};")
        out.append("#define T(n) (uint16_t)offsetof(struct pool_t, t##n)")
        return out


def table(rows, flaws):
    pool, items, starts = Pool(), [], {}
    pool.at("")

    def list_at(values):
        if values not in starts:
            starts[values] = len(items)
            items.extend(values)
        return starts[values]

    body = []
    for row in rows:
        flags = sum(1 << FLAGS.index(flag) for flag in row.flags)
        body.append("    {%s, %s, %s, %d, %d, %d," % (
            pool.at(row.name), pool.at(row.texts["summary"]),
            pool.at(row.texts["component"]), KINDS.index(row.kind) + 1,
            CLASSES.index(row.class_word) + 1, flags))
        values = [row.lists[key] for key in LISTS]
        body.append("     {%s}," % ", ".join(
            str(list_at(value) if value else 0) for value in values))
        body.append("     {%s}},  // %s" % (", ".join(
            str(len(value)) for value in values), row.name))
    item_lines = ["    {%s, %d}," % (pool.at(text), major)
                  for text, major in items]
    files = sorted((KINDS.index(row.kind) + 1, text.encode(), index)
                   for index, row in enumerate(rows)
                   for text in row.texts_of("files"))
    file_lines = ["    {%s, %d, %d}," % (pool.at(text.decode()), kind, index)
                  for kind, text, index in files]
    flaw_lines = ["    {%s}," % ", ".join(
        pool.at(text) for text in (flaw.id, flaw.distribution, flaw.versions,
                                   flaw.file, flaw.what, flaw.mend))
                  for flaw in flaws]
    past = [sum(KINDS.index(row.kind) < kind for row in rows)
            for kind in range(len(KINDS) + 1)]
    out = ["// SPDX-License-Identifier: Apache-2.0", "//",
           "// locate: the catalog as tables.", "//",
           "// Generated by tools/gen_catalog.py from locate_catalog.txt.",
           "// clang-format off", ""]
    out += pool.lines()
    for name, kind, lines in (("kItems", "item_t", item_lines),
                              ("kEntries", "kiln_locate_entry_t", body),
                              ("kFiles", "file_t", file_lines),
                              ("kFlaws", "flaw_t", flaw_lines)):
        out += ["", "static const %s %s[] = {" % (kind, name)]
        out += lines + ["};"]
    out += ["", "static const uint16_t kPast[] = {%s};" % ", ".join(
        str(value) for value in past), "", "#undef T", "// clang-format on"]
    return "\n".join(out) + "\n"


TOP = """# The catalog

Generated by `tools/gen_catalog.py` from `src/locate/locate_catalog.txt`.

What `kiln find` can look for, by kind and name. *Files* are tried in the
order shown; a number in brackets is the CUDA major that a file or folder
belongs to. Folders are shown for Python wheels (below `site-packages`), for
toolkits (below the root, e.g. `/usr/local/cuda`), and for distributions'
packages (below `/`). `{target}` is the toolkit's target folder
(`x86_64-linux`, `sbsa-linux`, `aarch64-linux`), `{multiarch}` the system's
triple (`x86_64-linux-gnu`). Class `ctk` follows the toolkit's version,
`driver` the display driver's, `other` its own.

"""
HEADS = {
    "lib": "## Shared libraries\n\n*Loads first* are the libraries that must "
           "be loaded before; in brackets those that it opens itself when it "
           "needs them. Libraries of one component link with each other.",
    "header": "## Headers\n\nThe file is the one that must be there.",
    "static": "## Static libraries",
    "bitcode": "## Bitcode",
    "binary": "## Programs and their files",
    "stub": "## Stubs\n\nTo link against where the real library is not; "
            "never to load.",
}


def shown(items):
    return ", ".join("`%s`%s" % (text, " (%d)" % major if major else "")
                     for text, major in items)


def page_row(row):
    cells = ["`%s`" % row.name, row.texts["summary"], row.class_word,
             shown(row.lists["files"]), shown(row.lists["wheel_dirs"]),
             shown(row.lists["toolkit_dirs"]),
             shown(row.lists["distribution_dirs"])]
    if row.kind == "lib":
        first = shown(row.lists["needs"])
        if row.lists["wants"]:
            first += " (%s)" % shown(row.lists["wants"])
        cells += [first.strip(), row.texts["component"]]
    cells += [", ".join(row.texts_of("tags"))]
    return "| " + " | ".join(cells) + " |\n"


def page(rows, flaws):
    out = TOP
    for kind in KINDS:
        of_kind = [row for row in rows if row.kind == kind]
        heads = ["name", "what", "class", "files", "wheels", "toolkit",
                 "distribution"]
        if kind == "lib":
            heads += ["loads first", "component"]
        heads.append("tags")
        out += "%s\n\n%d names.\n\n" % (HEADS[kind], len(of_kind))
        out += "| %s |\n|%s\n" % (" | ".join(heads), "---|" * len(heads))
        out += "".join(page_row(row) for row in of_kind) + "\n"
    out += "## Wheels known to be broken\n\n"
    out += "| id | distribution | versions | what | what to do |\n"
    out += "|---|---|---|---|---|\n"
    for flaw in flaws:
        out += "| `%s` | `%s` | `%s` | %s | %s |\n" % (
            flaw.id, flaw.distribution, flaw.versions, flaw.what, flaw.mend)
    return out


def main():
    rows, flaws = read()
    failed = 0
    for path, text in ((TABLE, table(rows, flaws)), (PAGE, page(rows, flaws))):
        full = os.path.join(ROOT, path)
        if "--check" in sys.argv[1:]:
            with open(full, encoding="utf-8") as file:
                if file.read() != text:
                    print(path + " is out of date: run tools/gen_catalog.py")
                    failed = 1
            continue
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Bad as error:
        sys.exit(str(error))
