#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what pages tell their reader to do.

doc_commands.py KILN LEAST PAGE...

Runs the commands of the indented blocks of each page, in their order, in a
folder that has the tree's lib/ and examples/:

  * behind a line that ends in `NAME.kiln`: the block is that file, and a valid
    program unless its name is wrong.kiln;
  * lines that begin with `$ kiln`: a command, with the lines behind it what it
    prints, in this order among others; `...` stands for anything. It may fail
    only where one of them says `error:`;
  * lines that begin with `kiln` or end in it, without a `$`: a command that
    must succeed. One with `…`, or with words behind a gap, is no command.

Every block that has a program in it is read, and the program is run on buffers
of 4096 bytes. At least LEAST commands and programs must be found.
"""
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMMAND = re.compile(r"(\$ )?(build/\w+/src/cli/)?kiln ")


def blocks(text):
    """(line number, the line before it, its lines) of indented blocks."""
    lines = text.splitlines()
    before, found, at = "", [], 0
    while at < len(lines):
        if not lines[at].startswith("    ") or lines[at - 1].strip():
            before = lines[at] if lines[at].strip() else before
            at += 1
            continue
        first = at
        while at < len(lines) and (not lines[at].strip() or
                                   lines[at].startswith("    ")):
            at += 1
        body = [line[4:] for line in lines[first:at]]
        while not body[-1].strip():
            body.pop()
        found.append((first + 1, before, body))
    return found


def commands(body):
    """(command, what it prints) of a block."""
    found = []
    lines = iter(body)
    for line in lines:
        if COMMAND.match(line):
            while line.endswith("\\"):
                line = line[:-1].rstrip() + " " + next(lines).strip()
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return found


def is_command(command):
    words = command.removeprefix("$ ")
    return "…" not in words and not words.endswith("...") and \
        (command.startswith("$") or not re.search(r"\S  +\S", words))


def missing(wanted, printed):
    """The first line that is not there behind those before it."""
    rest = iter(printed.splitlines())
    for line in wanted:
        # Which device it is depends on the machine.
        if not line.strip() or line.startswith("kiln: device:"):
            continue
        pattern = re.sub(r"([][*?])", r"[\1]", line).replace("...", "*")
        if not any(fnmatch.fnmatchcase(found.rstrip(), pattern.rstrip())
                   for found in rest):
            return line
    return None


class Page:
    def __init__(self, kiln, path, folder):
        self.kiln, self.path, self.folder = kiln, path, folder
        self.faults = self.ran = self.programs = 0
        for name in ("lib", "examples"):
            os.symlink(ROOT / name, folder / name)
        os.symlink(kiln, folder / "kiln")
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("KILN_", "LC_", "LANG"))}
        self.env.update(PATH=f"{folder}:{os.environ['PATH']}",
                        XDG_CACHE_HOME=str(folder / ".cache"))

    def fault(self, number, what):
        print(f"{self.path}:{number}: {what}")
        self.faults += 1

    def run(self, command):
        done = subprocess.run(["sh", "-c", command], cwd=self.folder,
                              env=self.env, check=False, text=True,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=100)
        return done.returncode, done.stdout

    def obey(self, number, command, wanted):
        plain = re.sub(r"^(\$ )?(build/\w+/src/cli/)?kiln", "kiln", command)
        code, printed = self.run(plain)
        self.ran += 1
        print(f"{plain}: exit {code}")
        fails = any("error:" in line for line in wanted)
        if (code != 0) != fails:
            self.fault(number, f"exit {code} of: {plain}\n{printed}")
        if not command.startswith("$"):
            return
        line = missing(wanted, printed)
        if line is not None:
            self.fault(number, f"{plain}\nprints no: {line}\nbut:\n{printed}")

    def fill(self, param, text):
        """An input of the number of elements that the program says."""
        count = re.search(param["name"] + r": *in *\w+\[(\d+)\]", text)
        bits = re.search(r"\d+", param["type"])
        (self.folder / ("in." + param["name"])).write_bytes(
            b"\1" * (int(count.group(1)) * int(bits.group()) // 8))

    def read(self, number, name, body):
        (self.folder / name).write_text("\n".join(body) + "\n")
        code, printed = self.run(f"kiln inspect {name} --json 2>&1")
        if code != 0:
            self.fault(number, f"no valid program:\n{printed}")
            return
        program = json.loads(printed)["program"]
        (self.folder / "ones").write_bytes(b"\1" * 4096)
        words = ["kiln run --device soft --json", name]
        for param in program["params"]:
            if param["role"] is None:
                words.append(f"--arg {param['name']}=3")
            elif param["counted"] and param["role"] == "in":
                self.fill(param, "\n".join(body))
                words.append(f"--in {param['name']}=in.{param['name']}")
            elif param["counted"]:
                words.append(f"--out {param['name']}=made.{param['name']}")
            else:
                words.append(f"--in {param['name']}=ones")
        code, printed = self.run(" ".join(words) + " 2>&1")
        print(f"{program['name']}: exit {code}")
        if code != 0:
            self.fault(number, f"{' '.join(words)}\n{printed}")
        self.programs += 1

    def block(self, number, before, body):
        named = re.search(r"`(\w+\.kiln)`:?$", before)
        if named and named.group(1) == "wrong.kiln":
            (self.folder / "wrong.kiln").write_text("\n".join(body) + "\n")
        elif named:
            self.read(number, named.group(1), body)
        elif COMMAND.match(body[0]):
            for command, wanted in commands(body):
                if is_command(command):
                    self.obey(number, command, wanted)
        elif any(re.match(r"program \w+\(", line) for line in body):
            self.read(number, "block.kiln", body)


def main():
    kiln, least = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    ran = faults = 0
    for path in sys.argv[3:]:
        text = (ROOT / path).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="kiln-page-") as folder:
            page = Page(kiln, path, pathlib.Path(folder))
            for number, before, body in blocks(text):
                page.block(number, before, body)
        ran += page.ran + page.programs
        faults += page.faults
    print(f"{ran} commands and programs, {faults} faults")
    if ran < least:
        print(f"there should be {least} or more")
    sys.exit(1 if faults or ran < least else 0)


if __name__ == "__main__":
    main()
