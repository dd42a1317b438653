# SPDX-License-Identifier: Apache-2.0
"""Rules about what the compiler made: symbols, sections, layouts, flags."""

import glob
import json
import os
import re
import shlex
import subprocess
import tempfile

from layout_tree import Skip, from_tools, rule, run, strip_comments

# Imported by nobody but the file named.
ONE_FILE = {
    "alloc_libc.c": {"malloc", "calloc", "realloc", "reallocarray", "free",
                     "aligned_alloc", "posix_memalign", "memalign", "valloc"},
    "env.c": {"getenv", "secure_getenv", "environ", "__environ"},
    "dynlib_posix.c": {"dlopen", "dlmopen", "dlsym", "dlvsym", "dlclose",
                       "dlinfo", "dlerror", "dladdr", "dl_iterate_phdr"},
}
# Imported by nobody.
NOBODY = {
    # These end or interrupt the host program.
    "abort", "exit", "_exit", "_Exit", "quick_exit", "raise", "kill",
    "__assert_fail", "atexit", "on_exit", "__cxa_atexit", "signal",
    # These write where only the host program may.
    "printf", "vprintf", "fprintf", "vfprintf", "__printf_chk",
    "__fprintf_chk", "__vprintf_chk", "__vfprintf_chk", "puts", "putchar",
    "perror", "psignal", "stderr", "stdout", "syslog", "dprintf",
    # These change or hang on state that is the host program's.
    "setenv", "unsetenv", "putenv", "clearenv", "setlocale", "umask", "chdir",
    "rand", "srand", "random", "srandom", "strtok", "system", "popen",
    # These allocate behind the allocator's back.
    "strdup", "strndup", "__strdup", "asprintf", "vasprintf", "getline",
    "getdelim", "open_memstream",
}
NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0",
          "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def _symbols(tree, kind):
    """(module, source, names) of each object of the library: the names that nm
    calls undefined ("U") or defined (""). One nm for all."""
    flag = "--undefined-only" if kind == "U" else "--defined-only"
    objects = tree.objects()
    names = {path: set() for _, _, path in objects}
    # PATH:[ADDRESS] KIND NAME[@VERSION]
    for line in run("nm", "-A", flag, "--extern-only",
                    *names).splitlines():
        path, _, rest = line.rpartition(":")
        name = rest.split()[-1].split("@")[0]
        names[path].add(name.replace("__isoc99_", ""))
    for module, source, path in objects:
        yield module, source, names[path]


@rule
def imports(tree):
    """Memory, environment and loader have one file each; nobody ends the
    process, prints, or touches the host program's state."""
    free = tree.excepted("imports")
    for module, source, used in _symbols(tree, "U"):
        if module == "cli":
            continue
        for owner, names in sorted(ONE_FILE.items()):
            if module == "base" and source == owner:
                continue
            for name in sorted(used & names):
                yield "%s/%s: uses %s, which is for base/%s only" % (
                    module, source, name, owner)
        for name in sorted(used & NOBODY):
            if "src/%s/%s:%s" % (module, source, name) in free:
                continue
            yield "%s/%s: uses %s, which the library must not" % (module, source,
                                                                  name)


@rule
def symbol_prefixes(tree):
    """Two libraries may each carry Kiln, so names between files are ours; and
    a name inside says which module it is of."""
    tree.skip_if_sanitized()
    for module, source, names in _symbols(tree, ""):
        for name in sorted(names):
            if not (name + "_").startswith(("kiln_", "kilni_%s_" % module)):
                yield "%s/%s: %s is neither kiln_* nor kilni_%s_*" % (
                    module, source, name, module)


def declared_functions(tree):
    """Function name to header, for all functions of include/kiln/."""
    found = {}
    for path in tree.files("include", ext=".h"):
        text = strip_comments(tree.text(path))
        text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
        text = re.sub(r"KILN_EXTERN_C_(BEGIN|END)", "", text)
        while True:
            flat = re.sub(r"\{[^{}]*\}", ";", text)
            if flat == text:
                break
            text = flat
        for statement in text.split(";"):
            if re.search(r"\b(typedef|static)\b", statement):
                continue
            match = re.search(r"\b(kiln_\w+)\s*\(", statement)
            if match:
                found[match.group(1)] = path
    return found


@rule
def exports(tree):
    """libkiln.so exports the functions of include/kiln/: all, and no more."""
    tree.skip_if_sanitized()
    libraries = glob.glob(os.path.join(tree.build, "src", "libkiln.so"))
    if not libraries:
        raise AssertionError("no libkiln.so in " + tree.build)
    exported = set()
    for line in run("nm", "-D", "--defined-only", libraries[0]).splitlines():
        kind, name = line.split()[-2:]
        exported.add(name.split("@")[0])
        if kind not in "TW":
            yield "libkiln.so exports %s, which is no function" % name
    declared = declared_functions(tree)
    for name in sorted(set(declared) - exported):
        yield "%s: %s is declared, but libkiln.so does not export it" % (
            declared[name], name)
    for name in sorted(exported - set(declared)):
        yield "libkiln.so exports %s, which include/kiln/ does not declare" % (
            name)


@rule
def library_is_whole(tree):
    """libkiln.so has every function of its own that it calls."""
    library = os.path.join(tree.build, "src", "libkiln.so")
    names = run("nm", "-D", "--undefined-only", library).split()
    for name in sorted(set(names)):
        if name.startswith("kiln"):
            yield "libkiln.so calls %s, which no module has" % name


@rule
def calls_stay_inside(tree):
    """libkiln.so calls its own functions, also in a program that has and
    exports functions of the same names: another copy of Kiln."""
    tree.skip_if_sanitized()
    library = os.path.join(tree.build, "src", "libkiln.so")
    for line in run("objdump", "-R", library).splitlines():
        words = line.split()
        if len(words) == 3 and words[2].startswith("kiln"):
            yield "libkiln.so leaves it to the program which %s is called" % (
                words[2].split("@")[0])


@rule
def needed_libraries(tree):
    """Nothing of CUDA is there at link time, nor any library not named."""
    tree.skip_if_sanitized()
    library = os.path.join(tree.build, "src", "libkiln.so")
    for line in run("readelf", "-d", library).splitlines():
        match = re.search(r"\(NEEDED\).*\[(.*)\]", line)
        if match and match.group(1) not in NEEDED:
            yield "libkiln.so needs %s" % match.group(1)


def _mutable(tree):
    """(module, source, name) of what can change. One objdump for all."""
    objects = {path: (module, source) for module, source, path in tree.objects()}
    where = None
    for line in run("objdump", "-t", *objects).splitlines():
        if ":     file format " in line:
            where = objects[line.rpartition(":")[0]]
        # address flags section<TAB>size name
        match = re.match(r"[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+ +(?:\.hidden )?"
                         r"(\S+)$", line)
        if not match or "d" in match.group(1) or "f" in match.group(1):
            continue
        section, name = match.group(2), match.group(3)
        if section.startswith(".data.rel.ro"):
            continue
        if re.match(r"\.(data|bss|tdata|tbss)\b|\*COM\*", section):
            yield (*where, name)


def _plain(name):
    """`n` of a function's static: gcc says n.0, clang says function.n."""
    parts = name.split(".")
    return parts[0] if parts[-1].isdigit() else parts[-1]


@rule
def mutable_globals(tree):
    """What can change and belongs to no object is listed in src/GLOBALS."""
    tree.skip_if_sanitized()
    listed = {}
    for number, line in tree.lines("src/GLOBALS"):
        match = re.match(r"(\S+/\S+) (\w+): \S", line)
        if not match:
            yield "src/GLOBALS:%d: is not `module/file.c name: why`" % number
            continue
        listed[(match.group(1), match.group(2))] = number
    for module, source, name in _mutable(tree):
        key = ("%s/%s" % (module, source), _plain(name))
        if key in listed:
            listed[key] = None
        else:
            yield "%s: %s can change, and src/GLOBALS has it not" % key
    for (where, name), number in sorted(listed.items()):
        if number is not None:
            yield "src/GLOBALS:%d: %s has no such variable %s" % (
                number, where, name)


def _compiles(command, source):
    result = subprocess.run(command, input=source, text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return result.returncode == 0, result.stderr


@rule
def headers_alone(tree):
    """Each public header compiles by itself, as C11 and as C++17."""
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
                "-fsyntax-only"]
    modes = [["-x", "c", "-std=c11", "-Wstrict-prototypes"],
             ["-x", "c++", "-std=c++17"]]
    include = "-I" + os.path.join(tree.root, "include")
    for path in tree.files("include", ext=".h"):
        source = '#include "%s"\nint kiln_alone;\n' % path[len("include/"):]
        # Twice: its guard works.
        source = source.splitlines()[0] + "\n" + source
        for mode in modes:
            ok, said = _compiles(
                [tree.cc, *mode, *warnings, include, "-"], source)
            if not ok:
                first = [l for l in said.splitlines() if "error" in l][:1]
                yield "%s: not by itself as %s: %s" % (path, mode[2],
                                                       "".join(first))


def options_structs(tree):
    """(header, type, field names) of each struct with a struct_size."""
    pattern = re.compile(r"typedef\s+struct\s+(kiln_\w+_t)\s*\{([^{}]*)\}")
    for path in tree.files("include", ext=".h"):
        for match in pattern.finditer(strip_comments(tree.text(path))):
            body = match.group(2)
            if not re.search(r"\bstruct_size\b", body):
                continue
            fields = []
            for field in body.split(";"):
                for part in field.split(","):
                    name = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$",
                                     part.strip())
                    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", field)
                    if pointer:
                        fields.append(pointer.group(1))
                        break
                    if name:
                        fields.append(name.group(1))
            yield path, match.group(1), fields, body


@rule
def options_have_no_padding(tree):
    """struct_size comes first, and the fields sum up to the struct."""
    for path, name, fields, _ in options_structs(tree):
        if fields[0] != "struct_size":
            yield "%s: struct_size is not the first field of %s" % (path, name)
        total = " + ".join("sizeof(((%s*)0)->%s)" % (name, f) for f in fields)
        source = ('#include "%s"\n_Static_assert(sizeof(%s) == %s, "");\n'
                  '_Static_assert(sizeof(((%s*)0)->struct_size) == 4, "");\n'
                  % (path[len("include/"):], name, total, name))
        ok, said = _compiles(
            [tree.cc, "-x", "c", "-std=c11", "-fsyntax-only",
             "-I" + os.path.join(tree.root, "include"), "-"], source)
        if not ok:
            why = "has padding" if "assert" in said else said.strip()
            yield "%s: %s %s" % (path, name, why)
        default = name[:-2] + "_default"
        if not re.search(r"static inline %s %s\s*\(\s*void\s*\)"
                         % (name, default), tree.text(path)):
            yield "%s: %s has no inline %s()" % (path, name, default)


def handed_in(tree):
    """(header, type) of each struct with a field `reserved` that a caller
    hands in: a function takes a pointer to a const one, or a struct with a
    struct_size has such a field."""
    texts = [strip_comments(tree.text(path))
             for path in tree.files("include", ext=".h")]
    taken = " ".join(re.findall(r"\(([^()]*)\)\s*;", " ".join(texts)))
    taken += " ".join(body for _, _, _, body in options_structs(tree))
    pattern = re.compile(r"typedef\s+struct\s+(kiln_\w+_t)\s*\{(.*?)\}\s*\1;",
                         re.S)
    for path, text in zip(tree.files("include", ext=".h"), texts):
        for name, body in pattern.findall(text):
            if (re.search(r"\breserved\s*(\[\d+\])?;", body) and
                    re.search(r"\bconst\s+(struct\s+)?%s\s*\*" % name, taken)):
                yield path, name


@rule
def reserved_is_checked(tree):
    """A test hands in each such struct with a `reserved` that is not zero."""
    table = "tests/unit/runtime/test_runtime_reserved.c"
    rows = re.findall(r"\b(?:SIZED|PLAIN)\(\s*(\w+)",
                      tree.text(table) if tree.exists(table) else "")
    for path, name in handed_in(tree):
        if name not in rows:
            yield "%s: %s has no row in %s" % (path, name, table)


def _compile_commands(tree):
    path = os.path.join(tree.build, "compile_commands.json")
    with open(path, encoding="utf-8") as file:
        commands = json.load(file)
    if not commands:
        raise AssertionError("no compile commands in " + path)
    return commands


@rule
def sources_are_built(tree):
    """No source lies in the tree that no target names."""
    if tree.cache("KILN_BUILD_BENCH") == "OFF":
        raise Skip("this build has no benches")
    excepted = tree.excepted("sources_are_built")
    built = {os.path.relpath(entry["file"], tree.root)
             for entry in _compile_commands(tree)}
    for path in tree.files("src", "tests", "bench", ext=".c"):
        if path not in built and path not in excepted:
            yield "%s: no CMakeLists.txt names it" % path


@rule
def tests_have_modules(tree):
    """Each test is labelled with the modules that can break it, so that
    tools/test runs it."""
    test_targets = from_tools("test_targets")
    known = set(tree.modules()) | {"layout", "install", "live", "pathfinder"}
    tests = test_targets.read_tests(tree.build)
    for name, (labels, _) in sorted(tests.items()):
        if not labels & known:
            yield "%s: its labels name no module: %s" % (
                name, ", ".join(sorted(labels)) or "it has none")


@rule
def compile_flags(tree):
    """Every file is C11 without extensions and without contraction."""
    commands = _compile_commands(tree)
    for entry in commands:
        words = entry.get("arguments") or shlex.split(entry["command"])
        where = os.path.relpath(entry["file"], tree.root)
        standards = [w for w in words if w.startswith("-std=")]
        if standards[-1:] != ["-std=c11"]:
            yield "%s: is not compiled with -std=c11" % where
        contract = [w for w in words if w.startswith("-ffp-contract=")]
        if contract[-1:] != ["-ffp-contract=off"]:
            yield "%s: is not compiled with -ffp-contract=off" % where
        for word in words:
            if word in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations",
                        "-march=native"):
                yield "%s: is compiled with %s" % (where, word)


def compile_object(tree, source, path):
    """For planted breaches: an object where a build would put it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write(source)
        file.flush()
        run(tree.cc, "-std=c11", "-fno-builtin", "-fPIC", "-c", file.name,
            "-o", path)
