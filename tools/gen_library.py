#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/library/library_texts_gen.inc from lib/*.kiln (--check).

An entry's summary is the first sentence of the comment at its head.
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
A_LINE = 16


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


def content():
    parts, rows = [HEAD], []
    for path in sorted((ROOT / "lib").glob("*.kiln")):
        text = path.read_text(encoding="ascii")
        name = path.stem
        numbers = list(text.encode()) + [0]
        lines = [",".join(map(str, numbers[i:i + A_LINE]))
                 for i in range(0, len(numbers), A_LINE)]
        parts.append("static const char kText_%s[] = {\n%s};\n"
                     % (name, ",\n".join(lines)))
        summary = summary_of(path, text).replace("\\", "\\\\")
        summary = summary.replace('"', '\\"')
        rows.append('    {"%s",\n     "%s",\n     {kText_%s, %d}},\n'
                    % (name, summary, name, len(numbers) - 1))
    parts.append("static const kiln_library_entry_t kEntries[] = {\n%s};\n"
                 % "".join(rows))
    return "\n".join(parts)


def main():
    made = content()
    if "--check" in sys.argv:
        return 0 if TARGET.read_text(encoding="ascii") == made else 1
    TARGET.write_text(made, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
