# SPDX-License-Identifier: Apache-2.0
"""Rules about what files look like and say."""

import os
import re
import shutil

from layout_tree import Skip, rule, run, strip_comments

CODE = (".c", ".h", ".inc")
SPDX = "SPDX-License-Identifier: Apache-2.0"
FILE_LINES = 1500
FUNCTION_LINES = 120
COLUMNS = 80
THREAD_WORDS = ("thread-safe", "thread-compatible", "one-thread")
OUTSIDE_SRC = ("tests", "bench", "examples")


@rule
def opening(tree):
    """A file opens with its licence and `module: one line of purpose.`"""
    for path in tree.files("src", "include", *OUTSIDE_SRC, ext=CODE):
        lines = tree.text(path).splitlines()[:3]
        if lines[:2] != ["// " + SPDX, "//"]:
            yield "%s: does not open with the SPDX line and `//`" % path
            continue
        third = lines[2] if len(lines) > 2 else ""
        match = re.match(r"// (\w+): \S", third)
        module = tree.module_name(path)
        if path.startswith("tests/unit/"):
            module = path.split("/")[2]
        if not match:
            yield "%s:3: is not `// module: purpose`" % path
        elif module and match.group(1) != module:
            yield "%s:3: says %s, but lies in %s" % (path, match.group(1),
                                                     module)
    for path in tree.files(ext=(".py", ".cmake", "CMakeLists.txt")):
        if SPDX not in "\n".join(tree.text(path).splitlines()[:3]):
            yield "%s: has no SPDX line at its top" % path
    for path in tree.files("tools", ".ci"):
        text = tree.text(path)
        if text.startswith("#!") and SPDX not in "\n".join(
                text.splitlines()[:3]):
            yield "%s: has no SPDX line at its top" % path


@rule
def file_size(tree):
    """No file has more than 1500 lines."""
    excepted = tree.excepted("file_size")
    for path in tree.files("src", "include", *OUTSIDE_SRC, ext=CODE):
        count = tree.text(path).count("\n")
        if count > FILE_LINES and path not in excepted:
            yield "%s: has %d lines, over %d" % (path, count, FILE_LINES)


def functions(tree, paths):
    """(name, path, first line, last line) of the functions that files of C
    define."""
    if shutil.which("ctags") is None:
        raise Skip("ctags is not installed")
    if not paths:
        return
    full = [os.path.join(tree.root, p) for p in paths]
    tags = run("ctags", "--fields=+ne", "--kinds-C=f", "--language-force=C",
               "-o", "-", *full)
    for tag in tags.splitlines():
        fields = tag.split("\t")
        at = dict(f.split(":", 1) for f in fields[3:] if ":" in f)
        if "line" in at and "end" in at:
            yield (fields[0], os.path.relpath(fields[1], tree.root),
                   int(at["line"]), int(at["end"]))


@rule
def function_size(tree):
    """No function has more than 120 lines."""
    excepted = tree.excepted("function_size")
    paths = [p for p in tree.files("src", "include", *OUTSIDE_SRC, ext=CODE)
             if p not in excepted]
    for name, path, first, last in functions(tree, paths):
        length = last - first + 1
        if length > FUNCTION_LINES and name not in excepted:
            yield "%s:%d: %s has %d lines, over %d" % (
                path, first, name, length, FUNCTION_LINES)


@rule
def unique_functions(tree):
    """A function's name is defined in one file of src, so that a name in a
    backtrace or a profile says which file it is of. A macro that opens a
    function, in capitals, gives it its name."""
    excepted = tree.excepted("unique_functions")
    places = {}
    paths = [p for p in tree.files("src", ext=CODE) if p not in excepted]
    for name, path, first, _ in functions(tree, paths):
        if name not in excepted and not name.isupper():
            places.setdefault(name, {}).setdefault(path, first)
    for name, found in sorted(places.items()):
        (one, line), *others = sorted(found.items())
        for other, _ in others:
            yield "%s:%d: %s is defined in %s as well" % (one, line, name,
                                                          other)


@rule
def columns(tree):
    """No tabs, no trailing blanks, no lines over 80 columns."""
    excepted = tree.excepted("columns")
    for path in tree.files("src", "include", ext=(".c", ".h")):
        if path in excepted:
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if "\t" in line:
                yield "%s:%d: has a tab" % (path, number)
            if len(line) > COLUMNS:
                yield "%s:%d: has %d columns" % (path, number, len(line))
            if line != line.rstrip():
                yield "%s:%d: ends in a blank" % (path, number)


@rule
def no_loose_ends(tree):
    """A thing is there, or it is UNSUPPORTED: no notes to do it later."""
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    for path in tree.files("src", "include", "tools", *OUTSIDE_SRC,
                           ext=CODE + (".py",)):
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            match = words.search(line)
            if match:
                yield "%s:%d: %s" % (path, number, match.group(1))


@rule
def thread_word(tree):
    """A public type says in its first comment line who may use it."""
    start = re.compile(r"^typedef\s+(struct|enum|union)\b")
    for path in tree.files("include", ext=".h"):
        lines = tree.text(path).splitlines()
        for at, line in enumerate(lines):
            if not start.match(line):
                continue
            first = at
            while first > 0 and lines[first - 1].startswith("//"):
                first -= 1
            comment = lines[first] if first < at else ""
            if not any(word in comment for word in THREAD_WORDS):
                yield "%s:%d: no thread word in the first comment line" % (
                    path, at + 1)


@rule
def prefixes(tree):
    """Types end in _t; public names begin with kiln_, constants KILN_."""
    for path in tree.files("include", ext=".h"):
        text = strip_comments(tree.text(path))
        for match in re.finditer(r"^(?:typedef\s+(?:struct|enum|union)\s+"
                                 r"(\w+)|#define\s+(\w+))", text, re.M):
            name = match.group(1) or match.group(2)
            number = text[:match.start()].count("\n") + 1
            if match.group(1) and not re.match(r"kiln_\w+_t$", name):
                yield "%s:%d: the type %s is not kiln_*_t" % (path, number,
                                                              name)
            if match.group(2) and not name.startswith("KILN_"):
                yield "%s:%d: the macro %s is not KILN_*" % (path, number,
                                                             name)


# Where the text of a `Fix:` line stands: a call and which of its arguments.
FIX_CALLS = {"kilni_base_status_with_fix": 1, "kilni_cli_error_fix": 1,
             "kilni_cli_fail": 2, "fail_value": 3,
             "kilni_probe_add_problem": 3, "KILNI_CHECK_ARGUMENT_SAYS": 3}
STRINGS = r'(?:"(?:\\.|[^"\\\n])*"\s*(?:PRI\w+\s*)?)+'


def arguments(text, at):
    """The arguments of the call whose parenthesis opens at `at`."""
    found, depth, first = [], 0, at + 1
    for token in re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'])+\'|'
                             r"[()\[\]{},]", text[at:]):
        word, place = token.group(0), at + token.start()
        depth += (word in "([{") - (word in ")]}")
        if depth == 0 or (word == "," and depth == 1):
            found.append(text[first:place])
            first = place + 1
        if depth == 0:
            break
    return found


def fix_texts(text):
    """(line number, text) of each `Fix:` line that a C file writes."""
    pieces = []
    for match in re.finditer(r"\b(\w+)\(", text):
        which = FIX_CALLS.get(match.group(1))
        if match.group(1).endswith("_RESULT"):  # a row of *_results.inc
            which = -1
        if which is None:
            continue
        given = arguments(text, match.end() - 1)
        if len(given) > which:
            pieces.append((match.start(), given[which]))
    for match in re.finditer(r"\b(?:FIX\w*\[\]|\w*fix) ="
                             r'((?:[^;"]|' + STRINGS + ")*);", text):
        pieces.append((match.start(), match.group(1)))
    for match in re.finditer(r"(?:kilni_base_str_add(?:f|_cstr)\(\s*&?[\w.>-]*\bfix"
                             r"|snprintf\(fix, sizeof\(fix\)),\s*(" + STRINGS + ")", text):
        pieces.append((match.start(), match.group(1)))
    for start, piece in pieces:
        number = text[:start].count("\n") + 1
        for strings in re.findall(STRINGS, piece):
            yield number, "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"',
                                             strings))


@rule
def fix_lines(tree):
    """A `Fix:` line is a phrase: no capital at its head, no full stop."""
    for path in tree.files("src", ext=(".c", ".h", ".inc")):
        for number, text in fix_texts(strip_comments(tree.text(path))):
            if re.match(r"[A-Z][a-z]", text):
                yield '%s:%d: the fix "%s" begins with a capital' % (
                    path, number, text)
            if re.search(r"[^.]\.$|[.?!;] [A-Z][a-z]", text):
                yield '%s:%d: the fix "%s" is written as sentences' % (
                    path, number, text)


def without_strings(text):
    """C without comments and without what its strings say."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"',
                  lambda match: '"' + "x" * (len(match.group(0)) - 2) + '"',
                  strip_comments(text))


# Words that stand before the star of a type, in an argument of a macro.
TYPE_WORD = re.compile(r"^(\w+_t|\w+_st|T\w?|any|type|void|char|short|int|long"
                       r"|signed|unsigned|float|double|bool|FILE|DIR)$")


# What the formatter of the tree can leave so: a cast of what is in brackets,
# and a number behind them.
CRAMMED = re.compile(r"\)\((?!\w*_t\))\w+\)[&*]\w|\)[&*]\d")


OPERATOR = re.compile(r"(?<!struct )\b(\w+)[*&] ?(?=[\w(])")


def _may_be_crammed(text):
    """Whether there can be such an operator: most files have none."""
    return CRAMMED.search(text) or any(
        not TYPE_WORD.match(match.group(1))
        for match in OPERATOR.finditer(text))


def _crammed(text):
    """(place, what) of each operator without its blanks in stripped C."""
    for match in CRAMMED.finditer(text):
        yield match.start(), match.group(0)
    for call in re.finditer(r"(#define +)?\b[A-Z][A-Z0-9_]+\(", text):
        if call.group(1):
            continue
        for given in arguments(text, call.end() - 1):
            match = OPERATOR.search(given)
            if match and not TYPE_WORD.match(match.group(1)):
                yield call.start(), " ".join(given.split())
                break


@rule
def operator_blanks(tree):
    """Arithmetic has blanks about its operators, in macros too."""
    generated = tree.generated()
    for path in tree.files("src", "include", *OUTSIDE_SRC, ext=(".c", ".h")):
        if path in generated or not _may_be_crammed(tree.text(path)):
            continue
        text = without_strings(tree.text(path))
        for place, what in _crammed(text):
            yield ('%s:%d: "%s" wants blanks about its operator; if '
                   "tools/format takes them away, list the macro in "
                   ".clang-format or put the argument in brackets" % (
                       path, text[:place].count("\n") + 1, what))


LVALUE = (r"[A-Za-z_]\w*(?:(?:->|\.)\w+"
          r"|\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])*")
STEP = re.compile(r"(?:^|[;{})]|\belse\b|\bcase [^:;?]*:|\bdefault:)"
                  r"\s*(?:\\\n\s*)?((?:\+\+|--)" + LVALUE + r")(?=\s*[;,)])",
                  re.M)


def _steps(text):
    """(place, what) of each step before a name whose value nobody uses."""
    for match in STEP.finditer(text):
        yield match.start(1), match.group(1)
    for match in re.finditer(r"\bfor \(", text):
        for given in reversed(arguments(text, match.end() - 1)):
            if ";" in given:
                break
            if re.fullmatch(r"(\+\+|--)" + LVALUE, given.strip()):
                yield match.start(), given.strip()


@rule
def postfix_steps(tree):
    """A step for its own sake is written behind the name: i++, not ++i."""
    generated = tree.generated()
    for path in tree.files("src", "include", *OUTSIDE_SRC, ext=CODE):
        if path in generated or not re.search(r"(\+\+|--)[A-Za-z_]",
                                              tree.text(path)):
            continue
        text = without_strings(tree.text(path))
        for place, what in _steps(text):
            yield "%s:%d: %s: write %s%s" % (
                path, text[:place].count("\n") + 1, what, what[2:], what[:2])


@rule
def ok_is_named(tree):
    """A function that gives a status says kiln_ok(), not NULL."""
    if shutil.which("ctags") is None:
        raise Skip("ctags is not installed")
    excepted = tree.excepted("ok_is_named")
    paths = [p for p in tree.files("src", "include", *OUTSIDE_SRC, ext=CODE)
             if p not in excepted]
    tags = run("ctags", "--fields=+net", "--kinds-C=f", "--language-force=C",
               "-I", "KILN_API,KILN_MUST_USE", "-o", "-",
               *(os.path.join(tree.root, p) for p in paths))
    null = re.compile(r"\breturn (NULL|0);|\breturn .*[?:] NULL( :|;)")
    for tag in tags.splitlines():
        fields = tag.split("\t")
        at = dict(f.split(":", 1) for f in fields[3:] if ":" in f)
        if "end" not in at or not re.search(
                r":(static |inline )*kiln_status_t$", at.get("typeref", "")):
            continue
        path = os.path.relpath(fields[1], tree.root)
        lines = tree.text(path).splitlines()
        for number in range(int(at["line"]), int(at["end"]) + 1):
            if null.search(lines[number - 1]) and fields[0] != "kiln_ok":
                yield "%s:%d: `return kiln_ok();` says it" % (path, number)
