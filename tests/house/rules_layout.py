# SPDX-License-Identifier: Apache-2.0
"""Rules about where code lives and what it may include."""

import os
import re
import shutil

from house_tree import Skip, rule, run, strip_comments

CODE = (".c", ".h", ".inc")
TOOLKIT = re.compile(r"^(cuda|cuda_runtime|cuda_runtime_api|cuda_fp16|nvrtc|"
                     r"nvJitLink|nvvm|nvml|nccl|cudnn)(\w*)\.h$")
CLI_LIBRARIES = {"argp.h", "jansson.h", "png.h"}


def _kiln_include_problem(tree, room, name):
    owner = tree.header_rooms().get(name)
    if owner is None or owner.name == room.name or owner.name in room.also:
        return None
    if owner.floor >= room.floor:
        return "%s is a header of %s, which is not below" % (name, owner.name)
    # A room without doors is a user of the library, not a part of it.
    if owner.only_by and room.doors and room.name not in owner.only_by:
        return "%s may be included by %s only" % (name,
                                                  ", ".join(owner.only_by))
    return None


def _room_include_problem(tree, room, name):
    rooms = tree.rooms()
    target, slash, header = name.partition("/")
    if not slash:
        return '"%s" names no room' % name
    if target not in rooms:
        return '"%s": src/FLOORS has no room %s' % (name, target)
    if not tree.exists("src/" + name):
        return '"%s" does not exist' % name
    other = rooms[target]
    if other.name == room.name:
        return None
    if other.floor >= room.floor and other.name not in room.also:
        return '"%s" lies on floor %d, not below floor %d' % (
            name, other.floor, room.floor)
    if other.only_by and room.name not in other.only_by:
        return '"%s" may be included by %s only' % (name,
                                                    ", ".join(other.only_by))
    if "*" not in other.doors and header not in other.doors:
        return '"%s" is no door of %s' % (name, other.name)
    return None


@rule
def floors(tree):
    """A file includes its own room, and lower floors through their doors."""
    rooms = tree.rooms()
    for path in tree.files("src", "include", ext=CODE):
        room = rooms.get(tree.room_name(path))
        if room is None:
            if path.startswith("src/"):
                yield "%s: its folder is no room of src/FLOORS" % path
            continue
        for number, kind, name in tree.includes(path):
            if kind == "<":
                continue
            if name.startswith("kiln/"):
                problem = _kiln_include_problem(tree, room, name)
            elif path.startswith("include/"):
                problem = "a public header includes kiln/ only, not " + name
            else:
                problem = _room_include_problem(tree, room, name)
            if problem:
                yield "%s:%d: %s" % (path, number, problem)


def _part_lines(tree, parts):
    """Problems of the `part` lines themselves."""
    seen = []
    for part, (number, others) in parts.items():
        where = "src/FLOORS:%d: " % number
        if part.partition("/")[0] not in tree.rooms():
            yield where + "%s is in no room" % part
        if not tree.files("src/" + part):
            yield where + "there is no folder src/%s" % part
        for other in others:
            if other not in seen:
                yield where + "%s is no part above this line" % other
        seen.append(part)


@rule
def parts(tree):
    """A part of a room includes itself and the parts that src/FLOORS lists
    for it; beside the parts stands the room's door."""
    listed = tree.parts()
    yield from _part_lines(tree, listed)
    divided = {part.partition("/")[0] for part in listed}
    for path in tree.files("src", ext=CODE):
        room, part = tree.room_name(path), tree.part_name(path)
        if part is not None and part not in listed:
            yield "%s: its folder is no part of src/FLOORS" % path
            continue
        if room not in divided:
            continue
        if part is None and path != "src/%s/%s.h" % (room, room):
            yield "%s: belongs to a part of its room" % path
        allowed = [part] + listed[part][1] if part else []
        for number, kind, name in tree.includes(path):
            other = tree.part_name("src/" + name)
            if kind == '"' and other in listed and other not in allowed \
                    and other.partition("/")[0] == room:
                yield "%s:%d: %s may not include %s" % (
                    path, number, part or "a door", other)


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
    """A file name says which file it is, wherever it is printed. A door and
    its room's public header share theirs: "room/room.h", "kiln/room.h"."""
    seen = {}
    for path in tree.files(ext=CODE):
        name = os.path.basename(path)
        room = name[:-2]
        if path == "src/%s/%s.h" % (room, room) and seen.get(
                name) == "include/kiln/" + name:
            continue
        if name in seen:
            yield "%s and %s have the same name" % (seen[name], path)
        seen[name] = path


@rule
def no_homeless_names(tree):
    """No file for things that have no room."""
    for path in tree.files(ext=CODE + (".py",)):
        stem = os.path.splitext(os.path.basename(path))[0]
        if stem in ("util", "utils", "common", "misc", "helper", "helpers"):
            yield "%s: what is in it belongs to a room; find it" % path


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
def public_headers_have_rooms(tree):
    """Each public header is a header of exactly one room in src/FLOORS."""
    owners = {}
    for room in tree.rooms().values():
        for header in room.headers:
            if header in owners:
                yield "%s belongs to %s and to %s" % (header, owners[header],
                                                      room.name)
            owners[header] = room.name
    for path in tree.files("include", ext=".h"):
        if path[len("include/"):] not in owners:
            yield "%s belongs to no room of src/FLOORS" % path


@rule
def unit_tests_have_rooms(tree):
    """tests/unit/ has a folder for each room and no others."""
    rooms = tree.rooms()
    for path in tree.files("tests/unit", ext=CODE):
        name = path.split("/")[2]
        if name not in rooms:
            yield "%s: %s is no room of src/FLOORS" % (path, name)


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
            gathered = path.endswith(".h") and tree.room_name(
                header) == tree.room_name(path) and name.startswith("kiln/")
            generated = header in tree.generated()
            if same or gathered or generated or name == "kiln/api.h":
                continue
            yield '%s:%d: uses nothing of "%s"' % (path, number, name)
