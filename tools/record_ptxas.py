#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools: asks ptxas which spellings of instructions it takes.

    tools/record_ptxas.py [--ptxas PTXAS] [--check] [--show WORD]

Writes the verdicts into tests/unit/soft/ptxas_forms.txt, behind the patterns
that stand there. --check writes nothing and fails where one differs from what
ptxas says now; --show prints the spellings of the patterns that contain WORD,
with what ptxas says to each. Exit code 77 without ptxas.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests/unit/soft/ptxas_forms.txt"
TARGET = "sm_90"
HEAD = """.version 9.0
.target %s
.address_size 64
.visible .entry k(.param .align 16 .b8 pa[64])
{
.reg .pred %%p<9>; .reg .b16 %%h<9>; .reg .b32 %%r<20>; .reg .b64 %%rd<20>;
.reg .f32 %%f<20>; .reg .f64 %%fd<20>; .reg .b128 %%q<9>;
.param .align 16 .b8 cpa[64];
""" % TARGET
# So that ptxas never comes to make code.
TAIL = "mov.u32 %r1, %f1;\nret;\n}\n"
WIDTH = 78
REGISTERS = {"pred": "p", "b128": "q", "f32": "f", "f64": "fd", "b64": "rd",
             "u64": "rd", "s64": "rd", "b8": "h", "u8": "h", "s8": "h",
             "b16": "h", "u16": "h", "s16": "h", "f16": "h", "bf16": "h",
             "e4m3x2": "h", "e5m2x2": "h", "b32": "r", "u32": "r", "s32": "r",
             "f16x2": "r", "bf16x2": "r", "u16x2": "r", "s16x2": "r",
             "tf32": "r"}


def expand(pattern):
    """All texts of a pattern with {a,b} alternatives, the last one fastest."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [pattern[:found.start()] + choice + rest
            for choice in found.group(1).split(",")
            for rest in expand(pattern[found.end():])]


def spelling(form, operands):
    """The instruction, with registers as the types want."""
    words = form.split(".")[1:]
    types = [word for word in words if word in REGISTERS]
    last = REGISTERS[types[-1]] if types else "r"
    first = REGISTERS[types[-2 if len(types) > 1 else -1]] if types else "r"
    count = next((int(word[1:]) for word in words
                  if re.fullmatch("v[248]", word)), 1)

    def some(base, start):
        names = ["%%%s%d" % (base, start + i) for i in range(count)]
        return names[0] if count == 1 else "{%s}" % ",".join(names)

    at = "[%rd1]"
    if any(word.startswith("param") for word in words):
        at = "[cpa]" if form.startswith("st") else "[pa]"
    for name, text in (("$d", some(last, 1)), ("$b", some(last, 2)),
                       ("$c", some(last, 3)), ("$t", some(first, 1)),
                       ("$a", at)):
        operands = operands.replace(name, text)
    return "%s %s" % (form, operands) if operands != ";" else form + ";"


def ask(ptxas, lines):
    """What ptxas says against each line; None where it says nothing."""
    said = [None] * len(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "forms.ptx"
        left = list(range(len(lines)))
        while left:
            path.write_text(HEAD + "".join(lines[i] + "\n" for i in left)
                            + TAIL)
            done = subprocess.run(
                [ptxas, "-arch", TARGET, "-o", "/dev/null", str(path)],
                capture_output=True, text=True, check=False)
            base = HEAD.count("\n")
            stopped = False
            for line, text in re.findall(
                    r"line (\d+); (?:error|fatal)\s*: (.*)",
                    done.stdout + done.stderr):
                at = int(line) - base - 1
                if at >= len(left):
                    continue
                if said[left[at]] is None:
                    said[left[at]] = text
                    # A text that cannot be parsed hides what comes behind.
                    stopped = stopped or "Parsing error" in text
            if not stopped:
                if "forms.ptx, line %d" % (base + len(left) + 1) not in \
                        done.stdout + done.stderr:
                    sys.exit("ptxas did not come to the end: "
                             + (done.stdout + done.stderr)[-500:])
                break
            left = [i for i in left if said[i] is None]
    return said


def packed(verdicts):
    """A digit for each four, `*N` for repetitions."""
    digits = ""
    for i in range(0, len(verdicts), 4):
        four = verdicts[i:i + 4]
        four += [False] * (4 - len(four))
        digits += "%x" % sum(8 >> k for k in range(4) if four[k])
    return re.sub(r"(.)\1{4,}",
                  lambda m: "%s*%d." % (m.group(1), len(m.group(0))), digits)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     allow_abbrev=False)
    parser.add_argument("--ptxas", default=shutil.which("ptxas"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show")
    arguments = parser.parse_args()
    if not arguments.ptxas:
        print("skipped: there is no ptxas")
        return 77
    out, count, differing = [], 0, 0
    kept = []
    lines = FILE.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("form "):
            if not line.startswith("= "):
                out.append(line)
            continue
        pattern, operands = [part.strip() for part in line[5:].split(" | ")]
        if arguments.show and arguments.show not in line:
            continue
        forms = expand(pattern)
        said = ask(arguments.ptxas,
                   [spelling(form, operands) for form in forms])
        if arguments.show:
            for form, text in zip(forms, said):
                print("%s: %s" % (spelling(form, operands), text or "taken"))
            continue
        count += len(forms)
        text = packed([one is None for one in said])
        rows = ["= " + text[i:i + WIDTH] for i in range(0, len(text), WIDTH)]
        kept = lines[number + 1:number + 1 + len(rows)]
        differing += kept != rows
        out += [line] + rows
    if arguments.show:
        return 0
    if arguments.check:
        print("%d spellings, %d patterns differ" % (count, differing))
        return 1 if differing else 0
    FILE.write_text("\n".join(out) + "\n", encoding="utf-8")
    print("%d spellings" % count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
