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


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


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


def main():
    kiln = sys.argv[1]
    commands = table(kiln)
    problems = [] if len(commands) > 8 else ["the help lists no commands"]
    for shell, check in (("bash", bash), ("zsh", zsh), ("fish", fish)):
        script = output(kiln, "completion", shell)
        problems += check(script, commands)
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
