#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds completion scripts against the help: completion.py KILN.

Both come from one table; this sees that no shell's script lost an option, a
command or a quote on the way. Where a shell is installed it reads its script.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile


def output(*command, folder=None):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True, cwd=folder).stdout


def output_alone(*command):
    """In a folder without files, which shells would offer."""
    with tempfile.TemporaryDirectory() as folder:
        return output(*command, folder=folder)


def table(kiln):
    """Command to its options, as --help shows them: (name, takes a value)."""
    found = {}
    for line in output(kiln, "help").splitlines():
        match = re.match(r"  (\w+) +\S", line)
        if match:
            rows = output(kiln, "help", "--markdown", match.group(1))
            found[match.group(1)] = re.findall(r"^\| `--([\w-]+)([^`]*)`", rows,
                                               re.M)
    return found


def section(script, command):
    match = re.search(r"^    %s\)$(.*?);;$" % command, script, re.M | re.S)
    return match.group(1) if match else ""


def bash(script, commands):
    for command, options in commands.items():
        match = re.search(r"^    %s\)$(.*?)^      fi;;$" % command, script,
                          re.M | re.S)
        text = match.group(1) if match else ""
        words = set(re.findall(r"--[\w-]+", text))
        for name, value in options:
            if "--" + name not in words:
                yield "bash: %s has no --%s" % (command, name)
            if value and not re.search(r"^ +(?:-o\|)?--%s\) " % name, text,
                                       re.M):
                yield "bash: %s --%s takes no value" % (command, name)


def zsh(script, commands):
    for command, options in commands.items():
        words = shlex.split(section(script, command).replace("\\\n", " "))
        if words[:1] != ["_arguments"]:
            yield "zsh: %s has no _arguments" % command
            continue
        for name, value in options:
            begin = re.compile(r"\*?--%s(=-?)?\[" % re.escape(name))
            found = [w for w in words[1:] if begin.match(w)]
            if len(found) != 1:
                yield "zsh: %s has --%s %d times" % (command, name, len(found))
            elif bool(value) != bool(re.search(r"(?<!\\)\]::?[^:]+:",
                                               found[0])):
                yield "zsh: %s --%s: %s" % (command, name, found[0])


def fish(script, commands):
    lines = [shlex.split(line.replace("\\'", "'\\''"))
             for line in script.splitlines() if line.startswith("complete")]
    for command, options in commands.items():
        if not any(line[3:5] == ["-n", "__kiln_bare"] and command in line
                   for line in lines):
            yield "fish: %s is not there" % command
        own = [line for line in lines if "__kiln_in " + command in line]
        for name, value in options:
            found = [line for line in own
                     if "-l" in line and line[line.index("-l") + 1] == name]
            if len(found) != 1:
                yield "fish: %s has --%s %d times" % (command, name,
                                                      len(found))
                continue
            takes = "-x" in found[0] or "-r" in found[0]
            # One that may go without its value must not ask for it.
            if takes != (bool(value) and not value.strip(" ").startswith("[")):
                yield "fish: %s --%s: %s" % (command, name, found[0])


# What completes each command's operands: files and programs of the library,
# or files alone.
PROGRAMS = ("run", "bench", "inspect", "compile")
FILES = ("graph", "link")


def entries(kiln):
    return [line.split()[0] for line in output(kiln, "lib", "list").splitlines()]


def ask_bash(script, *words):
    """What bash offers for the last of the words, as readline parts them."""
    ask = script + """
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_kiln
printf '%%s\\n' "${COMPREPLY[@]}"
""" % " ".join(shlex.quote(word) for word in words)
    return output_alone("bash", "-c", ask).split()


def bash_programs(script, names):
    whole = ["lib:" + name for name in names]
    some = [name for name in names if name.startswith("s")]
    for command in PROGRAMS:
        asked = ["kiln", command]
        for words, want in (
                (asked + ["lib"], whole), (asked + ["lib:"], whole),
                (asked + ["lib:s"], ["lib:" + name for name in some]),
                (asked + ["lib", ":"], names),
                (asked + ["lib", ":", "s"], some)):
            have = ask_bash(script, *words)
            if have != want:
                yield "bash: %s offers %s" % (" ".join(words), have)
        if "lib:sort" not in ask_bash(script, *asked, ""):
            yield "bash: %s offers no programs" % command
    for command in FILES:
        if ask_bash(script, "kiln", command, "lib:"):
            yield "bash: %s offers programs" % command


def zsh_programs(script, names):
    if "library=(%s)" % " ".join("lib:" + name for name in names) not in script:
        yield "zsh: the library is not there"
    for command in PROGRAMS + FILES:
        offers = "'*:file:_kiln_programs'" in section(script, command)
        if offers != (command in PROGRAMS):
            yield "zsh: %s: programs %s" % (command, offers)


def fish_programs(script, names):
    whole = ["lib:" + name for name in names]
    for command in PROGRAMS + FILES:
        line = "complete -c kiln -n '__kiln_in %s' -a '%s'" % (
            command, " ".join(whole))
        if (line in script.splitlines()) != (command in PROGRAMS):
            yield "fish: %s: programs" % command
        if shutil.which("fish") is None:
            continue
        have = output_alone("fish", "-N", "-c", script +
                            "\ncomplete -C 'kiln %s lib:s'" % command).split()
        want = [name for name in whole if name.startswith("lib:s")]
        if have != (want if command in PROGRAMS else []):
            yield "fish: %s offers %s" % (command, have)


def main():
    kiln = sys.argv[1]
    commands = table(kiln)
    problems = [] if len(commands) > 8 else ["the help lists no commands"]
    names = entries(kiln)
    for shell, check, programs in (("bash", bash, bash_programs),
                                   ("zsh", zsh, zsh_programs),
                                   ("fish", fish, fish_programs)):
        script = output(kiln, "completion", shell)
        problems += check(script, commands)
        if shell != "bash" or shutil.which("bash"):
            problems += programs(script, names)
        if shutil.which(shell) is None:
            print("%s is not installed: its script is compared, not read" %
                  shell)
            continue
        read = subprocess.run([shell, "-n"], input=script, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        if read.returncode != 0 or read.stdout:
            problems.append("%s -n: %s" % (shell, read.stdout))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
