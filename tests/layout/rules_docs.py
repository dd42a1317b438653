# SPDX-License-Identifier: Apache-2.0
"""Rules that keep the documents true."""

import os
import re
import subprocess
import sys

from layout_tree import from_tools, rule, strip_comments


@rule
def generated_files(tree):
    """What a tool writes is what the tool would write now."""
    outputs = tree.generated()
    for path, tool in sorted(outputs.items()):
        if not tree.exists(path):
            yield "tests/layout/GENERATORS: %s does not exist" % path
        if not tree.exists(tool):
            yield "tests/layout/GENERATORS: %s does not exist" % tool
    for tool in sorted(set(outputs.values())):
        if not tree.exists(tool):
            continue
        result = subprocess.run(
            [sys.executable, os.path.join(tree.root, tool), "--check"],
            cwd=tree.root, text=True, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        if result.returncode != 0:
            yield "%s --check: %s" % (tool, result.stdout.strip())
    for path in tree.files():
        if re.search(r"_gen\.\w+$", path) and path not in outputs:
            yield "%s: is named as generated, but GENERATORS has it not" % path


def is_built(tree, path):
    """True if a CMakeLists.txt beside or above a test names its file, in full
    or as a list does: "find" of test_locate_find.c."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    tail = stem.partition("_")[2].partition("_")[2] or stem
    folder = path.rpartition("/")[0]
    while folder:
        lists = folder + "/CMakeLists.txt"
        if tree.exists(lists):
            return re.search(r"\b(%s|%s)\b" % (stem, tail),
                             tree.text(lists)) is not None
        folder = folder.rpartition("/")[0]
    return False


def test_functions(tree):
    """Names of functions of tests that are built: each is defined, and named
    once more where it is run."""
    found = set()
    for path in tree.files("tests", ext=(".c", ".py")):
        if not is_built(tree, path):
            continue
        text = tree.text(path)
        if path.endswith(".c"):
            text = strip_comments(text)
        for name in re.findall(r"^(?:static void|def) (\w+)\(", text, re.M):
            if len(re.findall(r"\b%s\b" % name, text)) > 1:
                found.add(name)
    return found


@rule
def case_tables(tree):
    """Each test that a table of cases names is there and is run."""
    tests = test_functions(tree)
    known = set(tests) | {t[len("test_"):] for t in tests
                          if t.startswith("test_")}
    files = {path.rpartition("/")[2] for path in tree.files("tests")}
    rules = {"layout_" + line for _, line in tree.lines("tests/layout/RULES")}
    for path in tree.files("docs/reference", ext="-cases.md"):
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if not line.startswith("| ") or line.count(" | ") < 1:
                continue
            cell = line.rstrip(" |").rpartition(" | ")[2]
            for text in re.findall(r"`([^`]+)`", cell):
                name = re.sub(r"^\w+: ", "", text)
                if re.match(r"(test_\w+|\w+)\.(c|py|txt)$", name):
                    if name not in files and "/" not in name:
                        yield "%s:%d: there is no file %s" % (path, number,
                                                              name)
                elif name.startswith("layout_"):
                    if name not in rules:
                        yield "%s:%d: there is no rule %s" % (path, number,
                                                              name)
                elif (re.match(r"(?=.*_)[a-z][a-z0-9_]+$", name) and
                      (text != name or name.startswith("test_") or
                       name.startswith("case_"))):
                    if name not in known:
                        yield "%s:%d: no test is called %s" % (path, number,
                                                               name)


@rule
def reference_is_complete(tree):
    """Each status code and each environment variable is documented."""
    wanted = [("src/base/env_vars.inc", r"^KILNI_ENV_VAR\((\w+)",
               "docs/reference/environment.md"),
              ("include/kiln/status.h", r"^  X\((\w+),",
               "docs/reference/status.md")]
    for source, pattern, page in wanted:
        text = tree.text(page) if tree.exists(page) else ""
        for name in re.findall(pattern, tree.text(source), re.M):
            if "`%s`" % name not in text:
                yield "%s: %s is not in %s" % (source, name, page)


# Pages of docs/internals/ about all modules.
OF_ALL_MODULES = ("layout",)


@rule
def modules_have_pages(tree):
    """Each module with code has a page in docs/internals/, and a page there is
    a module's, or about all of them."""
    modules = tree.modules()
    for name in sorted(modules):
        if tree.files("src/" + name, ext=".c"):
            page = "docs/internals/%s.md" % name
            if not tree.exists(page):
                yield "src/%s has code and no page %s" % (name, page)
    for page in tree.files("docs/internals", ext=".md"):
        name = os.path.basename(page)[:-3]
        if name not in modules and name not in OF_ALL_MODULES:
            yield "%s is the page of no module" % page


@rule
def library_pages(tree):
    """Each entry of the library has a page with its limits, its cost and the
    source of its algorithm, a text that says what it is, and tests on real inputs,
    of awkward sizes and with awkward values."""
    cases = "docs/reference/library-cases.md"
    shown = re.findall(r"^\| \[(\w+)\]", tree.text(cases), re.M) \
        if tree.exists(cases) else []
    for page in tree.files("docs/library", ext=".md"):
        name = os.path.basename(page)[:-3]
        if name == "index":
            continue
        text = "lib/%s.kiln" % name
        for part in ("# %s\n" % name, "`%s`" % text, "**Cost.**",
                     "**Limits.**", "**Algorithm.**"):
            if part not in tree.text(page):
                yield "%s: lacks %s" % (page, part.strip())
        if not tree.exists(text):
            yield "%s: there is no %s" % (page, text)
        elif not tree.text(text).startswith("// "):
            yield "%s: does not begin with what it is" % text
        if shown.count(name) != 2:
            yield "%s: %s is there %d times, not among real inputs and " \
                "among awkward ones" % (cases, name, shown.count(name))


@rule
def layout_page(tree):
    """The picture in docs/internals/layout.md shows the layers of src/LAYERS."""
    page = "docs/internals/layout.md"
    shown = {}
    text = tree.text(page) if tree.exists(page) else ""
    for line in text.splitlines():
        match = re.match(r"    (\d+) +((?:\w+/ *)+)", line)
        if match:
            for name in match.group(2).split():
                shown[name.rstrip("/")] = int(match.group(1))
    built = {module.name: module.layer for module in tree.modules().values()}
    for name in sorted(set(shown) | set(built)):
        if shown.get(name) != built.get(name):
            yield "%s: %s is on layer %s there and %s in src/LAYERS" % (
                page, name, shown.get(name), built.get(name))


@rule
def links(tree):
    """A document names no file of the tree that is not there."""
    pattern = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
    for page in tree.files(ext=".md"):
        for target in pattern.findall(tree.text(page)):
            path = os.path.normpath(os.path.join(os.path.dirname(page),
                                                 target))
            if not tree.exists(path):
                yield "%s: links to %s, which is not there" % (page, target)


@rule
def decisions(tree):
    """Each page of docs/decisions/ is in its index."""
    index = "docs/decisions/index.md"
    text = tree.text(index) if tree.exists(index) else ""
    for page in tree.files("docs/decisions", ext=".md"):
        name = os.path.basename(page)
        if page != index and "(%s)" % name not in text:
            yield "%s: is not in %s" % (page, index)


@rule
def ci_shares(tree):
    """CONTRIBUTING.md shows the parts of CI and their shares as
    tools/ci_parts.txt has them, and the shares fit the limit."""
    ci_table = from_tools("ci_table")
    source, page = "tools/ci_parts.txt", "CONTRIBUTING.md"
    try:
        parts = ci_table.read_parts(tree.text(source))
    except ValueError as error:
        yield "%s: %s" % (source, error)
        return
    for problem in ci_table.over_budget(parts):
        yield "%s: %s" % (source, problem)
    wanted = ci_table.as_markdown(parts)
    shown = re.findall(r"^\| `[\w-]+` \| [\d.]+ \| .*\|$", tree.text(page),
                       re.M)
    for row in wanted:
        if row not in shown:
            yield "%s: has no row `%s`" % (page, row)
    for row in shown:
        if row not in wanted:
            yield "%s: `%s` is not in %s" % (page, row, source)
