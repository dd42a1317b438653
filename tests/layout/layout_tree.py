# SPDX-License-Identifier: Apache-2.0
"""The tree as the layout rules see it: files, modules, includes, exceptions."""

import importlib
import os
import re
import subprocess
import sys

SKIP_FOLDERS = {"build", ".git", "__pycache__"}
RULES = {}


class Skip(Exception):
    """A rule that cannot be tried here; its text says why."""


def rule(function):
    """Registers a rule: a function of a Tree that yields problems."""
    RULES[function.__name__] = function
    return function


class Module:
    def __init__(self, line):
        head, _, rest = line.partition(":")
        layer, self.name = head.split()
        self.layer = int(layer)
        columns = [part.split() for part in rest.split(";")]
        columns += [[]] * (4 - len(columns))
        self.own, self.headers, self.also, self.only_by = columns[:4]


class Tree:
    def __init__(self, root, build=None, cc="cc"):
        self.root = os.path.abspath(root)
        self.build = os.path.abspath(build) if build else None
        self.cc = cc
        self._files = None
        self._text = {}

    # Files -----------------------------------------------------------------

    def files(self, *folders, ext=None):
        """Paths from the root, sorted; below `folders`, ending in `ext`."""
        if self._files is None:
            self._files = []
            for folder, names, files in os.walk(self.root):
                names[:] = [n for n in names if n not in SKIP_FOLDERS]
                for name in files:
                    path = os.path.relpath(os.path.join(folder, name),
                                           self.root)
                    self._files.append(path)
            self._files.sort()
        return [f for f in self._files
                if (not folders or f.startswith(tuple(d + "/"
                                                      for d in folders)))
                and (ext is None or f.endswith(ext))]

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))

    def text(self, path):
        if path not in self._text:
            full = os.path.join(self.root, path)
            with open(full, encoding="utf-8", errors="replace") as file:
                self._text[path] = file.read()
        return self._text[path]

    def lines(self, path):
        """(number, line) pairs of a data file without comments and blanks."""
        if not self.exists(path):
            return []
        pairs = enumerate(self.text(path).splitlines(), 1)
        return [(n, line.strip()) for n, line in pairs
                if line.strip() and not line.lstrip().startswith("#")]

    # Modules -----------------------------------------------------------------

    def modules(self):
        rows = [Module(line) for _, line in self.lines("src/LAYERS")
                if not line.startswith("part ")]
        return {module.name: module for module in rows}

    def parts(self):
        """"module/part" to (line number, names it may include), in order."""
        found = {}
        for number, line in self.lines("src/LAYERS"):
            if line.startswith("part "):
                name, _, others = line[len("part "):].partition(":")
                module = name.strip().partition("/")[0]
                found[name.strip()] = (number, [module + "/" + other
                                                for other in others.split()])
        return found

    def part_name(self, path):
        """"module/part" of a file below a part's folder; None elsewhere."""
        names = path.split("/")
        if names[0] == "src" and len(names) > 3:
            return "/".join(names[1:3])
        return None

    def header_modules(self):
        """Public header ("kiln/status.h") to the module that owns it."""
        return {header: module for module in self.modules().values()
                for header in module.headers}

    def module_name(self, path):
        """The module of a file in src/ or include/; None elsewhere."""
        parts = path.split("/")
        if parts[0] == "src" and len(parts) > 2:
            return parts[1]
        if parts[0] == "include":
            owner = self.header_modules().get("/".join(parts[1:]))
            return owner.name if owner else None
        return None

    def includes(self, path):
        """(line number, '"' or '<', name) of each include."""
        pattern = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
        for number, line in enumerate(self.text(path).splitlines(), 1):
            match = pattern.match(line)
            if match:
                yield number, match.group(1), match.group(2)

    # Exceptions ------------------------------------------------------------

    def generated(self):
        """Path of a generated file to its generator."""
        found = {}
        for _, line in self.lines("tests/layout/GENERATORS"):
            tool, _, outputs = line.partition(":")
            for output in outputs.split():
                found[output] = tool.strip()
        return found

    def excepted(self, rule_name):
        """What tests/layout/EXCEPTIONS lists for a rule."""
        found = set(self.generated())
        for _, line in self.lines("tests/layout/EXCEPTIONS"):
            name, what = line.split("#")[0].split()
            if name == rule_name:
                found.add(what)
        return found

    # The build -------------------------------------------------------------

    def cache(self, key):
        path = os.path.join(self.build, "CMakeCache.txt")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return line.partition("=")[2].strip()
        return ""

    def skip_if_sanitized(self):
        if self.cache("KILN_SANITIZE"):
            raise Skip("a sanitizer adds symbols of its own")

    def objects(self):
        """(module, source path in it, object path) of the library; a source
        that has moved leaves an object behind, which no longer counts."""
        base = os.path.join(self.build, "src")
        # The handlers of soft are compiled once for each lane set.
        pattern = re.compile(r"/kiln_(?:module_(\w+)|soft_lanes_\w+)\.dir/"
                             r"(.*)\.o$")
        found = []
        for folder, _, files in os.walk(base):
            for name in sorted(files):
                path = os.path.join(folder, name)
                match = pattern.search(path)
                if not match:
                    continue
                module, source = match.group(1) or "soft", match.group(2)
                if self.exists("src/%s/%s" % (module, source)):
                    found.append((module, source, path))
        if not found:
            raise AssertionError("no module objects below " + base)
        return sorted(found)


def from_tools(name):
    """A module of tools/. Asked for by the rules that need it: the others hold
    in a tree without tools."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "../../tools")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def run(*command):
    """Standard output of a command that must succeed."""
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError("%s: %s" % (" ".join(command), result.stderr))
    return result.stdout


def strip_comments(text):
    """C without comments; strings stay, line numbers stay."""
    def blank(match):
        found = match.group(0)
        if found.startswith(("//", "/*")):
            return " " + "\n" * found.count("\n")
        return found
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.DOTALL)
