#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the manual pages docs/man/*.1 from docs/cli/*.md.

gen_man_pages.py [--check]

What a page says comes from two places that are true without it: docs/cli,
whose first part is the command's own table (tools/gen_cli_docs.py), and
src/base/env_vars.inc, for the variables. With --check it writes nothing and
exits with 1 if a page is not what it would write.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = "docs/cli"
FOLDER = "docs/man"
VARIABLES = "src/base/env_vars.inc"
VERSION = "include/kiln/version.h"
# The day of the version in version.h; a manual page has one at its foot.
DATE = "2026-11-21"
PART = re.compile(r"<!-- made by: kiln help --markdown.*?-->\n(.*?)"
                  r"<!-- end -->\n", re.S)
# Whose variables a command follows: the modules that it reaches.
MODULES = {
    "bench": "cache locate compat table runtime soft",
    "cache": "cache locate compat table runtime soft",
    "check": "locate compat table",
    "compile": "cache locate compat runtime",
    "completion": "",
    "config": "locate compat",
    "doctor": "locate compat table probe cache soft runtime",
    "find": "locate compat",
    "graph": "cache locate compat table runtime soft",
    "help": "",
    "inspect": "",
    "kiln": "locate compat table probe cache soft runtime",
    "lib": "",
    "link": "cache locate compat table runtime",
    "top": "table runtime soft",
    "run": "cache locate compat table runtime soft",
}
# These stand at the end of a page, in this order, whatever the order there.
LAST = ["FILES", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"]
TITLES = {"EXIT CODES": "EXIT STATUS", "WHAT IT IS FOR": "DESCRIPTION"}


# ---- Text ----

def escape(text, literal=False):
    """`text` as roff takes it. A literal's signs stay those of a keyboard, so
    that what is copied from a terminal works."""
    text = text.replace("\\", "\\e")
    for sign, name in (("`", "\\(ga"), ("~", "\\(ti"), ("^", "\\(ha")):
        text = text.replace(sign, name)
    if literal:
        text = text.replace("-", "\\-").replace("'", "\\(aq")
    return "".join(c if ord(c) < 128 else "\\[u%04X]" % ord(c) for c in text)


def whole(text):
    """Roff without hyphens inside names of variables, paths and JSON: a mark
    before each such word, font included."""
    return re.sub(r'(?<!\S)(?!\\%)\S*[_/{"]\S*|(?<!\S)\\fB\S{6,}',
                  lambda word: "\\%" + word.group(0), text)


def inline(text):
    """Markdown inside a paragraph: literals, emphasis and links."""
    text = re.sub(r"\[([^]]*)\]\(([^)]*)\)", link, text)
    out = ""
    for piece in re.split(r"(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)", text):
        if piece.startswith("`"):
            out += "\\fB" + escape(piece[1:-1], True) + "\\fR"
        elif piece.startswith("**"):
            out += "\\fB" + escape(piece[2:-2], True) + "\\fR"
        elif piece.startswith("*") and len(piece) > 1:
            out += "\\fI" + escape(piece[1:-1]) + "\\fR"
        else:
            out += escape(piece)
    return whole(out)


def link(match):
    """A page of a command is named; of others the title and the file."""
    text, target = match.groups()
    name = re.match(r"(\w+)\.md$", target)
    if name:
        page = "kiln" if name.group(1) == "kiln" else "kiln-" + name.group(1)
        return "**%s**(1)" % page
    path = os.path.normpath(os.path.join(PAGES, target))
    return "%s (%s)" % (text, path)


def line(text):
    """One line of running text: no control character at its head."""
    return "\\&" + text if text[:1] in (".", "'") else text


def usage(text):
    """The call of a command, with bold names and slanted values."""
    out = []
    for call in re.split(r"\n(?=kiln )", text.strip()):
        words = re.findall(
            r"\[(?:[^][]|\[(?:[^][]|\[[^]]*\])*\])*\](?:\.\.\.)?|\S+", call)
        names = 2 if len(words) > 1 and re.match(r"[a-z]", words[1]) else 1
        out.append(".SY " + "\\ ".join(words[:names]))
        out += [argument(word) for word in words[names:]]
        out.append(".YS")
    return out


def argument(word):
    match = re.match(r"(\[?)(--[\w-]+) ?(.*?)(\]?(?:\.\.\.)?)$", word)
    if not match:
        return line(escape(word, True)) + "\\&"
    head, name, value, tail = match.groups()
    if value.startswith("[") and tail.startswith("]"):
        value, tail = re.match(r"(\[.*\])(\].*)$", value + tail).groups()
    out = head + "\\fB" + escape(name, True) + "\\fR"
    if value:
        out += "\\ \\fI" + escape(value, True) + "\\fR"
    # Dots at the end of a line would end a sentence.
    return out + tail + "\\&"


# ---- Blocks ----

def cells(row):
    row = re.sub(r"^\||\|$", "", row.strip())
    return [cell.strip().replace("\\|", "|")
            for cell in re.split(r"(?<!\\)\|", row)]


def table(rows):
    """Two columns are a list of terms; more are a table."""
    head, body = cells(rows[0]), [cells(row) for row in rows[2:]]
    out = []
    if len(head) == 2:
        for term, text in body:
            term, repeats = re.subn(r" \(may be repeated\)$", "", term)
            if head[0] == "option":
                call = term.strip("`").split(" ", 1)
                term = "\\fB%s\\fR" % escape(call[0], True)
                if len(call) > 1:
                    term += " \\fI%s\\fR" % escape(call[1], True)
            elif head[0] in ("code", "exit code"):
                term = "\\fB%s\\fR" % term
            else:
                term = inline(term)
            if repeats:
                text += " May be repeated."
            out += [".TP", line(term), line(inline(text))]
        return out
    out += [".TS", "tab(@);", " ".join(["lb"] + ["lbx"] * (len(head) - 1)),
            " ".join(["l"] + ["lx"] * (len(head) - 1)) + ".",
            "@".join(inline(cell) for cell in head)]
    for row in body:
        assert "@" not in "".join(row), row
        out.append("@".join("T{\n%s\nT}" % line(inline(cell)) if cell else ""
                            for cell in row))
    return out + [".TE"]


def blocks(text):
    """Sections of markdown as roff: [title, lines], the first without one."""
    sections = [["", []]]
    rest = text.split("\n")
    while rest:
        out = sections[-1][1]
        now = rest.pop(0)
        if not now.strip() or now.startswith(("<!--", "# ")):
            continue
        taken = [now]
        if now.startswith("## "):
            title = now[3:].upper()
            sections.append([TITLES.get(title, title), []])
        elif now.startswith("### "):
            out.append('.SS "%s"' % escape(now[4:]))
        elif now.startswith("```") or now.startswith("    "):
            fenced = now.startswith("```")
            taken = [] if fenced else [now[4:]]
            while rest and (rest[0] != "```" if fenced else
                            rest[0].startswith("    ")):
                taken.append(rest.pop(0)[0 if fenced else 4:])
            if fenced:
                rest.pop(0)
            out += [".PP", ".RS 4", ".nf"]
            out += [line(escape(one, True)) for one in taken] + [".fi", ".RE"]
        elif now.startswith("|"):
            while rest and rest[0].startswith("|"):
                taken.append(rest.pop(0))
            out += table(taken)
        elif now.startswith("* "):
            while rest and rest[0].startswith("  "):
                taken.append(rest.pop(0).strip())
            out += [".IP \\(bu 2", line(inline(" ".join(taken)[2:]))]
        else:
            while rest and re.match(r"[^\s#|`<]|`[^`]|\*\*", rest[0]):
                taken.append(rest.pop(0))
            out += [".PP", line(inline(" ".join(taken)))]
    return sections


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def environment(command):
    row = re.compile(r'^KILNI_ENV_VAR\((\w+),\s*(\w+),\s*(\w+),\s*"([^"]*)",'
                     r'\s*"([^"]*)"\)', re.M)
    modules, out = MODULES[command].split(), []
    for name, module, kind, fallback, what in row.findall(read(VARIABLES)):
        if module not in modules:
            continue
        end = "" if not fallback else "; %s without it" % fallback
        term = "\\fB%s\\fR" % name
        if kind == "family":
            term += "\\fINAME\\fR"
        out += [".TP", term, line(whole(escape(what + end))) + "."]
    return out


def names(command):
    """The commands that a page speaks of."""
    text = re.sub(r"<!--.*?-->", "", read("%s/%s.md" % (PAGES, command)))
    return set(re.findall(r"\bkiln ([a-z]+)\b", text)) | set(
        re.findall(r"\((\w+)\.md\)", text))


def see_also(command, commands):
    """The pages that this one speaks of, and that speak of it."""
    others = [name for name in commands
              if name not in (command, "kiln") and
              (command == "kiln" or name in names(command) or
               command in names(name))]
    pages = ([] if command == "kiln" else ["kiln"]) + [
        "kiln-" + name for name in others]
    return [".BR %s (1)%s" % (escape(name, True),
                              "," if name != pages[-1] else "")
            for name in pages]


def page(command, commands):
    text = read("%s/%s.md" % (PAGES, command))
    made = PART.search(text).group(1).strip()
    call, rest = re.match(r"```\n(.*?)```\n(.*)$", made, re.S).groups()
    example = re.search(r"^Example:\n\n(```.*?```\n?)", rest, re.M | re.S)
    if example:
        rest = rest[:example.start()]
    summary, _, rest = rest.strip().partition("\n\n")
    summary = " ".join(summary.split()).rstrip(".")
    options = re.search(r"^\| option .*", rest, re.M | re.S)
    if options:
        rest = rest[:options.start()]

    sections = dict(blocks(PART.sub("", text)))
    if command == "kiln":
        described, _, codes = rest.partition("| exit code")
        sections = {"DESCRIPTION": sections["DESCRIPTION"],
                    "COMMANDS": blocks(described)[0][1], **sections,
                    "EXIT STATUS": blocks("| exit code" + codes)[0][1]}
    elif rest.strip():
        sections = {"DESCRIPTION": blocks(rest)[0][1], **sections}
    if options:
        sections = {"DESCRIPTION": sections.pop("DESCRIPTION"),
                    "OPTIONS": blocks(options.group(0))[0][1], **sections}
    sections.pop("")
    if example:
        sections["EXAMPLES"] = blocks(example.group(1))[0][1]
    variables = environment(command)
    if variables:
        sections["ENVIRONMENT"] = variables
    sections["SEE ALSO"] = see_also(command, commands)

    numbers = re.findall(r"^#define KILN_VERSION_M?\w+ (\d+)$", read(VERSION),
                         re.M)
    title = "kiln" if command == "kiln" else "kiln-" + command
    out = ["'\\\" t", ".\\\" SPDX-License-Identifier: Apache-2.0",
           ".\\\" Generated by tools/gen_man_pages.py from docs/cli/%s.md."
           % command,
           '.TH %s 1 %s "Kiln %s" "Kiln"' % (
               escape(title.upper(), True), DATE, ".".join(numbers)),
           ".ad l", ".SH NAME",
           "%s \\- %s" % (escape(title, True),
                          escape(summary[:1].lower() + summary[1:])),
           ".SH SYNOPSIS"] + usage(call)
    for name in [n for n in sections if n not in LAST] + [
            n for n in LAST if n in sections]:
        body = sections[name]
        if body[:1] == [".PP"]:
            body = body[1:]
        out += [".SH %s" % ('"%s"' % name if " " in name else name)] + body
    return "\n".join(out) + "\n"


def main():
    commands = sorted(n[:-3] for n in os.listdir(os.path.join(ROOT, PAGES))
                   if n.endswith(".md"))
    stale = 0
    wanted = {"kiln.1"} | {"kiln-%s.1" % name for name in commands}
    for name in sorted(set(os.listdir(os.path.join(ROOT, FOLDER))) - wanted):
        print("%s/%s: there is no command of that name" % (FOLDER, name))
        stale = 1
    for name in commands:
        file = "kiln.1" if name == "kiln" else "kiln-%s.1" % name
        path = "%s/%s" % (FOLDER, file)
        new = page(name, commands)
        full = os.path.join(ROOT, path)
        if os.path.exists(full) and read(path) == new:
            continue
        if "--check" in sys.argv[1:]:
            print("%s is out of date: run tools/gen_man_pages.py" % path)
            stale = 1
        else:
            with open(full, "w", encoding="utf-8") as out:
                out.write(new)
    return stale


if __name__ == "__main__":
    sys.exit(main())
