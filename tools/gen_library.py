#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/library/library_texts_gen.inc from lib/*.kiln (--check).

A text with a page in docs/library/ is an entry; its summary is what the index
of the pages says of it. One without is a part of the entry whose name it begins
with; its summary is the first sentence of the comment at its head.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/library/library_texts_gen.inc"
HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// library: the texts of lib/*.kiln. Made by tools/gen_library.py.
"""
PAGES = ROOT / "docs/library"
A_LINE = 16
DEFAULT = re.compile(r"  (sample )?(in|inout|out|arg) (\w+)(?: \[(.*?)\])?"
                     r"(?: = (.*))?")
ROLES = {"in": "KILN_PROGRAM_ROLE_IN", "inout": "KILN_PROGRAM_ROLE_INOUT",
         "out": "KILN_PROGRAM_ROLE_OUT", "arg": "KILN_PROGRAM_ROLE_NONE"}


def summaries():
    """What the index of the pages says of each entry."""
    rows = re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| (.*?) \|$",
                      (PAGES / "index.md").read_text(encoding="utf-8"), re.M)
    return {name: text if text.startswith("y = ")
            else text[0].upper() + text[1:] for name, text in rows}


def entry_of(name, entries):
    """The entry that the text is a part of, or None."""
    if name in entries:
        return None
    found = [e for e in entries if name.startswith(e + "_")]
    if not found:
        raise SystemExit(f"lib/{name}.kiln: docs/library/index.md has it not")
    return max(found, key=len)


def summary_of(path, text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    first = re.match(r"(.*?[.?:])(\s|$)", " ".join(lines))
    if first is None:
        raise SystemExit(f"{path}: no sentence at its head")
    return first.group(1).rstrip(".:")


def quoted(text):
    """As a string of C."""
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def defaults(entries):
    """Rows of kDefaults, by the lines of lib/defaults.txt."""
    rows, entry, seen = [], None, set()
    path = ROOT / "lib/defaults.txt"
    for number, line in enumerate(path.read_text("ascii").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            entry = line
            seen.add(entry)
            continue
        row = DEFAULT.fullmatch(line)
        if row is None or entry not in entries:
            raise SystemExit(f"{path}:{number}: what is {line!r}?")
        sample, role, name, shape, value = row.groups()
        is_sample = sample is not None or role in ("in", "inout")
        rows.append('    {"%s",\n     {"%s", %s, %d,\n      "%s",\n      %s}},'
                    "\n" % (entry, name, ROLES[role], is_sample, shape or "",
                            quoted(value or "")))
    if seen != entries:
        raise SystemExit(f"{path}: not the entries: {sorted(seen ^ entries)}")
    return rows


def content():
    parts, rows, entries = [HEAD], [], summaries()
    for path in sorted((ROOT / "lib").glob("*.kiln")):
        text = path.read_text(encoding="ascii")
        name = path.stem
        numbers = list(text.encode()) + [0]
        lines = [",".join(map(str, numbers[i:i + A_LINE]))
                 for i in range(0, len(numbers), A_LINE)]
        parts.append("static const char kText_%s[] = {\n%s};\n"
                     % (name, ",\n".join(lines)))
        whole = entry_of(name, entries)
        summary = summary_of(path, text) if whole else entries[name]
        summary = summary.replace("\\", "\\\\").replace('"', '\\"')
        rows.append('    {"%s",\n     "%s",\n     {kText_%s, %d},\n'
                    "     %s},\n"
                    % (name, summary, name, len(numbers) - 1,
                       f'"{whole}"' if whole else "NULL"))
    parts.append("static const kiln_library_entry_t kEntries[] = {\n%s};\n"
                 % "".join(rows))
    parts.append("static const struct {\n  const char* entry;\n"
                 "  kiln_library_default_t is;\n} kDefaults[] = {\n%s};\n"
                 % "".join(defaults(set(entries))))
    return "\n".join(parts)


def main():
    made = content()
    if "--check" in sys.argv:
        return 0 if TARGET.read_text(encoding="ascii") == made else 1
    TARGET.write_text(made, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
