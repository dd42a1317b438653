# SPDX-License-Identifier: Apache-2.0
"""Rules about where code lives and what it may include."""

import os
import re
import shutil

from layout_tree import Skip, rule, run, strip_comments

CODE = (".c", ".h", ".inc")
TOOLKIT = re.compile(r"^(cuda|cuda_runtime|cuda_runtime_api|cuda_fp16|nvrtc|"
                     r"nvJitLink|nvvm|nvml|nccl|cudnn)(\w*)\.h$")
CLI_LIBRARIES = {"argp.h", "jansson.h", "png.h"}


def _kiln_include_problem(tree, module, name):
    owner = tree.header_modules().get(name)
    if owner is None or owner.name == module.name or owner.name in module.also:
        return None
    if owner.layer >= module.layer:
        return "%s is a header of %s, which is not below" % (name, owner.name)
    # A module without public headers is a user of the library, not a part of it.
    if owner.only_by and module.own and module.name not in owner.only_by:
        return "%s may be included by %s only" % (name,
                                                  ", ".join(owner.only_by))
    return None


def _module_include_problem(tree, module, name):
    modules = tree.modules()
    target, slash, header = name.partition("/")
    if not slash:
        return '"%s" names no module' % name
    if target not in modules:
        return '"%s": src/LAYERS has no module %s' % (name, target)
    if not tree.exists("src/" + name):
        return '"%s" does not exist' % name
    other = modules[target]
    if other.name == module.name:
        return None
    if other.layer >= module.layer and other.name not in module.also:
        return '"%s" lies on layer %d, not below layer %d' % (
            name, other.layer, module.layer)
    if other.only_by and module.name not in other.only_by:
        return '"%s" may be included by %s only' % (name,
                                                    ", ".join(other.only_by))
    if "*" not in other.own and header not in other.own:
        return '"%s" is no header of %s' % (name, other.name)
    return None


@rule
def layers(tree):
    """A file includes its own module, and lower layers through their headers."""
    modules = tree.modules()
    for path in tree.files("src", "include", ext=CODE):
        module = modules.get(tree.module_name(path))
        if module is None:
            if path.startswith("src/"):
                yield "%s: its folder is no module of src/LAYERS" % path
            continue
        for number, kind, name in tree.includes(path):
            if kind == "<":
                continue
            if name.startswith("kiln/"):
                problem = _kiln_include_problem(tree, module, name)
            elif path.startswith("include/"):
                problem = "a public header includes kiln/ only, not " + name
            else:
                problem = _module_include_problem(tree, module, name)
            if problem:
                yield "%s:%d: %s" % (path, number, problem)


def _part_lines(tree, parts):
    """Problems of the `part` lines themselves."""
    seen = []
    for part, (number, others) in parts.items():
        where = "src/LAYERS:%d: " % number
        if part.partition("/")[0] not in tree.modules():
            yield where + "%s is in no module" % part
        if not tree.files("src/" + part):
            yield where + "there is no folder src/%s" % part
        for other in others:
            if other not in seen:
                yield where + "%s is no part above this line" % other
        seen.append(part)


@rule
def parts(tree):
    """A part of a module includes itself and the parts that src/LAYERS lists
    for it; beside the parts stands the module's header."""
    listed = tree.parts()
    yield from _part_lines(tree, listed)
    divided = {part.partition("/")[0] for part in listed}
    for path in tree.files("src", ext=CODE):
        module, part = tree.module_name(path), tree.part_name(path)
        if part is not None and part not in listed:
            yield "%s: its folder is no part of src/LAYERS" % path
            continue
        if module not in divided:
            continue
        if part is None and path != "src/%s/%s.h" % (module, module):
            yield "%s: belongs to a part of its module" % path
        allowed = [part] + listed[part][1] if part else []
        for number, kind, name in tree.includes(path):
            other = tree.part_name("src/" + name)
            if kind == '"' and other in listed and other not in allowed \
                    and other.partition("/")[0] == module:
                yield "%s:%d: %s may not include %s" % (
                    path, number, part or "a header", other)


@rule
def cli_is_a_user(tree):
    """The command includes include/kiln/ and its own files, nothing else."""
    for path in tree.files("src/cli", ext=CODE):
        for number, kind, name in tree.includes(path):
            if kind == '"' and not name.startswith(("kiln/", "cli/")):
                yield "%s:%d: the command includes %s" % (path, number, name)
            if kind == "<" and "/" in name and not name.startswith("sys/"):
                yield "%s:%d: the command includes <%s>" % (path, number, name)


@rule
def no_toolkit_headers(tree):
    """No CUDA header and no third library is needed to build libkiln."""
    for path in tree.files("src", "include", ext=CODE):
        for number, kind, name in tree.includes(path):
            if kind == "<" and TOOLKIT.match(os.path.basename(name)):
                yield "%s:%d: <%s> is a header of the CUDA toolkit" % (
                    path, number, name)
            if name in CLI_LIBRARIES and not path.startswith("src/cli/"):
                yield "%s:%d: <%s> belongs to the command" % (path, number,
                                                              name)


@rule
def header_cycles(tree):
    """No header includes itself, by whatever way round."""
    graph = {}
    for path in tree.files("src", "include", ext=(".h", ".inc")):
        targets = []
        for _, kind, name in tree.includes(path):
            folder = "include/" if name.startswith("kiln/") else "src/"
            if kind == '"' and tree.exists(folder + name):
                targets.append(folder + name)
        graph[path] = targets
    done = set()

    def visit(path, way):
        if path in way:
            yield "headers in a circle: " + " -> ".join(
                way[way.index(path):] + [path])
            return
        if path in done:
            return
        for target in graph.get(path, []):
            yield from visit(target, way + [path])
        done.add(path)

    for path in sorted(graph):
        yield from visit(path, [])


@rule
def unique_names(tree):
    """A file name says which file it is, wherever it is printed. A header and
    its module's public header share theirs: "module/module.h", "kiln/module.h"."""
    seen = {}
    for path in tree.files(ext=CODE):
        name = os.path.basename(path)
        module = name[:-2]
        if path == "src/%s/%s.h" % (module, module) and seen.get(
                name) == "include/kiln/" + name:
            continue
        if name in seen:
            yield "%s and %s have the same name" % (seen[name], path)
        seen[name] = path


@rule
def names_have_modules(tree):
    """No file for things that have no module."""
    for path in tree.files(ext=CODE + (".py",)):
        stem = os.path.splitext(os.path.basename(path))[0]
        if stem in ("util", "utils", "common", "misc", "helper", "helpers"):
            yield "%s: what is in it belongs to a module; find it" % path


# What programs leave behind: fuzzers, debuggers, profilers, editors, patches.
LEFTOVER = re.compile(
    r"^((crash|leak|oom|timeout|slow-unit)-[0-9a-f]{8,}|core(\.\d+)?|a\.out"
    r"|vgcore\..*|perf\.data.*|(callgrind|massif|cachegrind)\.out.*"
    r"|gmon\.out|.*\.(orig|rej|swp|bak|tmp|log|gcda|gcno|profraw)|.*~)$")


@rule
def no_leftovers(tree):
    """Nothing that a fuzzer, a debugger, a profiler or an editor left."""
    for path in tree.files():
        top = path.split("/")[0]
        if top == "out" or top.startswith("build-"):
            continue
        if LEFTOVER.match(os.path.basename(path)):
            yield "%s: left behind by a program; remove it" % path


@rule
def public_headers_have_modules(tree):
    """Each public header is a header of exactly one module in src/LAYERS."""
    owners = {}
    for module in tree.modules().values():
        for header in module.headers:
            if header in owners:
                yield "%s belongs to %s and to %s" % (header, owners[header],
                                                      module.name)
            owners[header] = module.name
    for path in tree.files("include", ext=".h"):
        if path[len("include/"):] not in owners:
            yield "%s belongs to no module of src/LAYERS" % path


@rule
def unit_tests_have_modules(tree):
    """tests/unit/ has a folder for each module and no others."""
    modules = tree.modules()
    for path in tree.files("tests/unit", ext=CODE):
        name = path.split("/")[2]
        if name not in modules:
            yield "%s: %s is no module of src/LAYERS" % (path, name)


def _declared(tree, headers):
    """Header to the names that it declares itself, by ctags."""
    found = {header: set() for header in headers}
    full = [os.path.join(tree.root, header) for header in headers]
    tags = run("ctags", "--kinds-C=defgmpstuvx", "--language-force=C",
               "-I", "KILN_API,KILN_MUST_USE", "-o", "-", *full)
    for line in tags.splitlines():
        name, path = line.split("\t")[:2]
        if not name.startswith("!_"):
            found[os.path.relpath(path, tree.root)].add(name)
    # What a list of rows makes has names that only its reader knows.
    for header in headers:
        for number, kind, name in tree.includes(header):
            if name.endswith(".inc"):
                found[header].add(None)
    return found


@rule
def needless_includes(tree):
    """A file uses something of each header of ours that it includes: what it
    does not use it is compiled again for."""
    if shutil.which("ctags") is None:
        raise Skip("ctags is not installed")
    excepted = tree.excepted("needless_includes")
    headers = tree.files("src", "include", ext=".h")
    declared = _declared(tree, headers)
    for path in tree.files("src", ext=(".c", ".h")):
        code = strip_comments(tree.text(path))
        words = set(re.findall(r"\w+", re.sub(r'"[^"\n]*"', "", code)))
        stem = os.path.splitext(os.path.basename(path))[0]
        for number, kind, name in tree.includes(path):
            header = next((h for h in ("src/" + name, "include/" + name)
                           if h in declared), None)
            if kind == "<" or header is None or path in excepted:
                continue
            names = declared[header]
            if not names or None in names or names & words:
                continue
            # A file includes what it implements; a header gathers its
            # module's public ones; C's own types come by kiln/api.h.
            same = os.path.splitext(os.path.basename(name))[0] == stem
            gathered = path.endswith(".h") and tree.module_name(
                header) == tree.module_name(path) and name.startswith("kiln/")
            generated = header in tree.generated()
            if same or gathered or generated or name == "kiln/api.h":
                continue
            yield '%s:%d: uses nothing of "%s"' % (path, number, name)
