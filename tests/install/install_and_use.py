#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a build into a temporary folder, moves it, and builds a program
against it: through pkg-config and through find_package, shared and static."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "consumer_main.c")
LISTS = """# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(kiln %s REQUIRED)
add_executable(use_shared %s)
target_link_libraries(use_shared PRIVATE kiln::kiln)
add_executable(use_static %s)
target_link_libraries(use_static PRIVATE kiln::kiln_static)
"""


def run(*command, **variables):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT, check=False,
                            env={**os.environ, **variables})
    if result.returncode != 0:
        raise SystemExit("%s\n%s" % (shlex.join(command), result.stdout))
    return result.stdout.strip()


def find(root, name):
    for folder, _, files in os.walk(root):
        if name in files:
            return os.path.join(folder, name)
    raise SystemExit("%s is not installed below %s" % (name, root))


def needs_libkiln(program):
    return "libkiln" in run("readelf", "-d", program)


def expect(condition, what):
    if not condition:
        raise SystemExit("not so: " + what)


def use_pkg_config(options, prefix, work):
    path = os.path.dirname(find(prefix, "kiln.pc"))
    ask = {"PKG_CONFIG_PATH": path, "PKG_CONFIG_LIBDIR": path}
    lib = os.path.dirname(find(prefix, "libkiln.a"))
    version = run("pkg-config", "--modversion", "kiln", **ask)
    expect(version == options.version, "kiln.pc has version " + version)

    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "kiln", **ask))
    program = os.path.join(work, "pc_shared")
    run(options.cc, "-std=c11", SOURCE, "-o", program, *flags)
    expect(needs_libkiln(program), "the program needs libkiln.so")
    expect(run(program, LD_LIBRARY_PATH=lib) == options.version,
           "the shared program prints the version")

    flags = shlex.split(run("pkg-config", "--static", "--cflags", "--libs",
                            "kiln", **ask))
    flags = [os.path.join(lib, "libkiln.a") if f == "-lkiln" else f
             for f in flags]
    program = os.path.join(work, "pc_static")
    run(options.cc, "-std=c11", SOURCE, "-o", program, *flags)
    expect(not needs_libkiln(program), "the program has the library in it")
    expect(run(program) == options.version,
           "the static program prints the version")


def use_find_package(options, prefix, work):
    source = os.path.join(work, "cmake_source")
    build = os.path.join(work, "cmake_build")
    os.makedirs(source)
    with open(os.path.join(source, "CMakeLists.txt"), "w",
              encoding="utf-8") as file:
        file.write(LISTS % (options.version, SOURCE, SOURCE))
    run(options.cmake, "-G", "Ninja", "-S", source, "-B", build,
        "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_C_COMPILER=" + options.cc)
    run(options.cmake, "--build", build)
    for name, shared in (("use_shared", True), ("use_static", False)):
        program = os.path.join(build, name)
        expect(needs_libkiln(program) == shared, name + " is what it says")
        expect(run(program) == options.version, name + " prints the version")


def use_documents(prefix):
    """What the README and texts of the library and the command name is there."""
    folder = os.path.join(prefix, "share", "doc", "kiln")
    sources = [os.path.join(folder, "README.md"), find(prefix, "libkiln.so")]
    command = os.path.join(prefix, "bin", "kiln")
    sources += [command] if os.path.exists(command) else []
    named = set()
    for source in sources:
        with open(source, "rb") as file:
            named.update(re.findall(rb"\b((?:docs|examples)/[\w./-]*\w)",
                                    file.read()))
    expect(len(named) > 10, "documents are named")
    for name in sorted(named):
        name = name.decode()
        expect(os.path.exists(os.path.join(folder, name)),
               name + " is installed")
    expect(not os.path.exists(os.path.join(folder, "docs", "man")),
           "manual pages are installed once")
    with open(sources[0], encoding="utf-8") as file:
        sections = re.split(r"^## ", file.read(), flags=re.M)
    for section in sections:
        away = re.findall(r"\b((?:tools|tests|src|build)/[\w./-]*\w|"
                          r"CONTRIBUTING\.md)", section)
        expect(not away or "source tree" in section,
               "the README says of %s where they are, in \"%s\"" % (
                   ", ".join(away), section.split("\n")[0]))


def use_pictures(prefix, work):
    """The examples run from where they lie, with the command beside them."""
    examples = os.path.join(prefix, "share", "doc", "kiln", "examples",
                            "pictures")
    made = os.path.join(work, "pictures")
    run("sh", os.path.join(examples, "run.sh"),
        os.path.join(prefix, "bin", "kiln"), made, "--device", "soft",
        KILN_CACHE_DIR=os.path.join(work, "cache"))
    run(sys.executable, "-B", os.path.join(examples, "check.py"), made)


def use_manual(prefix):
    """The pages are where man looks, and man finds them from bin/ on PATH."""
    pages = os.path.join(prefix, "share", "man")
    for name in ("kiln.1", "kiln-find.1"):
        with open(os.path.join(pages, "man1", name), encoding="utf-8") as file:
            expect("Generated by" in file.read(), name + " is whole")
    man = shutil.which("man")
    if man is None or "minimized" in run("sh", "-c", "%s -w kiln 2>&1 || :"
                                         % man):
        return
    path = os.path.join(prefix, "bin") + os.pathsep + os.environ["PATH"]
    for name in ("kiln", "kiln-find"):
        found = run(man, "-w", name, PATH=path, MANPATH="")
        expect(os.path.samefile(found, os.path.join(pages, "man1",
                                                    name + ".1")),
               "man finds the page of %s: %s" % (name, found))


def use_command(options, prefix, work):
    command = os.path.join(prefix, "bin", "kiln")
    if os.path.exists(os.path.join(options.build, "src", "cli", "kiln")):
        expect(os.path.exists(command), "the command is installed")
        for name in ("bash-completion/completions/kiln",
                     "zsh/site-functions/_kiln",
                     "fish/vendor_completions.d/kiln.fish"):
            with open(os.path.join(prefix, "share", name),
                      encoding="utf-8") as file:
                expect("kiln completion" in file.read(), name + " is whole")
        use_manual(prefix)
        program = os.path.join(prefix, "share", "kiln", "lib", "saxpy.kiln")
        expect("kernel saxpy" in run(command, "inspect", program),
               "the library of programs is installed")
        use_pictures(prefix, work)
        said = run(command, "--version")
        expect(options.version in said, "the command says its version")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cc", "cmake", "version"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    for tool in ("pkg-config", "ninja", "readelf"):
        if shutil.which(tool) is None:
            print("skipped: %s is not installed" % tool)
            return 77
    work = tempfile.mkdtemp(prefix="kiln-install-")
    try:
        first = os.path.join(work, "first")
        prefix = os.path.join(work, "moved")
        run(options.cmake, "--install", options.build, "--prefix", first)
        os.rename(first, prefix)
        find(prefix, "LICENSE")
        use_pkg_config(options, prefix, work)
        use_find_package(options, prefix, work)
        use_command(options, prefix, work)
        use_documents(prefix)
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
