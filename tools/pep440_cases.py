#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks Python's `packaging` what versions and specifiers mean.

Writes tests/unit/compat/pep440_cases.tsv, which a test compares with what
kiln/compat.h answers, so that the test itself needs no `packaging`. With
--live PROGRAM, writes cases of another seed to a temporary file and runs the
test program on them; exits with 77 where `packaging` 26 or newer is missing.

Rows, with tabs between: V version normal-form|- prerelease; O a b order;
S spec version with-prereleases without by-default; I spec valid.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUTPUT = "tests/unit/compat/pep440_cases.tsv"
SKIP = 77

try:
    import packaging
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version
    HAVE = int(packaging.__version__.split(".")[0]) >= 26
except (ImportError, ValueError):
    HAVE = False

PRE = ["a", "b", "c", "rc", "alpha", "beta", "pre", "preview"]
POST = ["post", "rev", "r"]
SEP = ["", "", "", ".", "-", "_"]
OPS = ["==", "!=", "<=", ">=", "<", ">", "~=", "==="]


def number(rng):
    pick = rng.random()
    if pick < 0.85:
        return str(rng.choice([0, 0, 1, 1, 2, 3, 9, 10, 12, 13]))
    if pick < 0.95:
        return "0" * rng.randint(1, 2) + str(rng.randint(0, 12))
    return str(rng.randint(0, 10**rng.randint(1, 30)))


def any_case(rng, word):
    return word.upper() if rng.random() < 0.15 else word


def release(rng):
    return ".".join(number(rng) for _ in range(rng.choice([1, 2, 2, 2, 3, 4])))


def suffixes(rng):
    text = ""
    if rng.random() < 0.3:
        text += rng.choice(SEP) + any_case(rng, rng.choice(PRE))
        text += rng.choice(SEP) + rng.choice(["", number(rng), number(rng)])
    if rng.random() < 0.25:
        text += rng.choice(["-" + number(rng),
                            rng.choice(SEP) + any_case(rng, rng.choice(POST)) +
                            rng.choice(SEP) +
                            rng.choice(["", number(rng), number(rng)])])
    if rng.random() < 0.25:
        text += rng.choice(SEP) + "dev" + rng.choice(SEP)
        text += rng.choice(["", number(rng), number(rng)])
    return text


def local(rng):
    parts = [rng.choice(["ubuntu", "1", "01", "cu12", "ABC", "0", "10", "a"])
             for _ in range(rng.randint(1, 3))]
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice(".-_") + part
    return "+" + text


def spoil(rng, text):
    """One character put in, taken out or changed."""
    at = rng.randint(0, len(text))
    junk = rng.choice(list("0123456789.-_+!*avx =<>~,") + ["\t", "dev", "rc"])
    way = rng.random()
    if way < 0.4:
        return text[:at] + junk + text[at:]
    if way < 0.7:
        return text[:at] + text[at + 1:]
    return text[:at] + junk + text[at + 1:]


def version(rng, with_local=0.2):
    text = rng.choice(["", "", "", "", "v"])
    if rng.random() < 0.12:
        text += rng.choice(["0", "1", "2"]) + "!"
    text += release(rng) + suffixes(rng)
    if rng.random() < with_local:
        text += local(rng)
    if rng.random() < 0.05:
        text = rng.choice([" ", "\t", "\n"]) + text + rng.choice(["", " "])
    return text


def clause(rng):
    op = rng.choice(OPS)
    gap = rng.choice(["", "", "", " "])
    if op in ("==", "!=") and rng.random() < 0.4:
        return op + gap + release(rng) + ".*"
    return op + gap + version(rng, 0.2 if op in ("==", "!=", "===") else 0.02)


def near(rng, spec):
    """A version like one that the specifier names."""
    text = spec.split(",")[0].lstrip("=<>!~ \t").replace(".*", "").strip()
    way = rng.random()
    if way < 0.2:
        return text
    if way < 0.4:
        return text.split("+")[0] + local(rng)
    if way < 0.7:
        return text.split("+")[0] + rng.choice(
            [".0", "a1", "rc2", ".post1", ".dev0", "a1.dev1", ".post0.dev2"])
    return spoil(rng, text)


def parsed(text):
    try:
        return Version(text)
    except InvalidVersion:
        return None


def spec_row(spec, text):
    try:
        specs = SpecifierSet(spec)
    except InvalidSpecifier:
        return ["I", spec, "0"]
    if parsed(text) is None:
        return ["I", spec, "1"]
    default = bool(specs.prereleases)
    return ["S", spec, text] + [
        "%d" % specs.contains(text, prereleases=wanted)
        for wanted in (True, False, default)]


def cases(seed, count):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        text = version(rng)
        if rng.random() < 0.3:
            text = spoil(rng, text)
        known = parsed(text)
        rows.append(["V", text, str(known) if known is not None else "-",
                     "%d" % (known is not None and known.is_prerelease)])
    while len(rows) < 2 * count:
        texts = [version(rng), version(rng)]
        if rng.random() < 0.5:
            texts[1] = near(rng, "==" + texts[0])
        pair = [parsed(text) for text in texts]
        if None in pair:
            continue
        rows.append(["O"] + texts +
                    ["%d" % ((pair[0] > pair[1]) - (pair[0] < pair[1]))])
    while len(rows) < 4 * count:
        spec = ",".join(clause(rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
        if rng.random() < 0.1:
            spec = spoil(rng, spec)
        text = near(rng, spec) if rng.random() < 0.7 else version(rng)
        rows.append(spec_row(spec, text))
    return rows


def escape(text):
    for char, name in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n")):
        text = text.replace(char, name)
    return text


def write(file, rows):
    for row in rows:
        file.write("\t".join(escape(cell) for cell in row) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--live", metavar="PROGRAM")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int)
    args = parser.parse_args()
    if not HAVE:
        print("skipped: no `packaging` 26 or newer in this Python")
        return SKIP
    if args.live is None:
        with open(os.path.join(ROOT, OUTPUT), "w", encoding="utf-8") as file:
            write(file, cases(args.seed or 440, args.count or 1000))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cases.tsv")
        with open(path, "w", encoding="utf-8") as file:
            write(file, cases(args.seed or 441, args.count or 20000))
        return subprocess.call([args.live, path])


if __name__ == "__main__":
    sys.exit(main())
