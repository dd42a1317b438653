#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/program-semantics.md (--check).

The tables of operators are those of include/kiln/program_operators.h; what is
no operator is said here.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LISTS = os.path.join(ROOT, "include/kiln/program_operators.h")
PAGE = os.path.join(ROOT, "docs/reference/program-semantics.md")

HEAD = """# What programs mean

Every operation has one answer for every operand, on every device; nothing is
undefined. The tables are made from `include/kiln/program_operators.h`. The
reference evaluator (`tests/support/program_evaluator.c`) says all of this
slowly and obviously, and programs that a generator writes are held to it, on
the software device and on GPUs, bit for bit.

The one thing that is open is the order of threads: where two of them touch an
element, one of them writes, and neither atomics nor barriers order them, either
may be the first (a *race*), and which bits a NaN has where nobody asks.

## Types and literals

Integers are two's complement. f32 and f64 are IEEE 754's, rounded to nearest
even after every operation, with subnormals; two operations are never joined
(`fma` is, where it is written). f16 and bf16 are computed as f32, by every
operation and by `fma`, and what that gives is rounded to the type. A bool in memory is one byte: 0 is false, everything
else true, and 1 is stored. How numbers are written, and which type they take,
is in [program-text.md](program-text.md).

## Casts

| from | to | what `T(x)` is |
|---|---|---|
| bool | a number | 1 for true, 0 for false |
| a number | bool | x != 0; true for NaN |
| an integer | an integer | the low bits; a signed one is extended by its sign |
| an integer | a float | the nearest one, halves to even; infinity beyond the greatest |
| a float | an integer | towards zero; the nearest number of the type where it is out of range; 0 for NaN |
| a float | a float | the nearest one, halves to even, in one step |

`bitcast_T(x)` keeps the bits, between types of one size and no bool. Those of a
NaN are 0x7fc00000 then (f16 0x7e00, bf16 0x7fc0, f64 0x7ff8000000000000).

## Memory

* An index may be of any integer type. It is extended to 64 bits, by its sign or
  by zeros, and taken as unsigned: a negative one is out of range.
* Out of range, in every memory and for constants too: a load is 0, a store does
  nothing, an atomic does nothing and its result is 0.
* Outputs start at zero, as do shared arrays for each block and private ones for
  each thread (those of a function for each call).
* `x[i] += y` loads, computes and stores; it is no atomic.
* `async_copy(to, a, from, b, n)` does `to[a + k] = from[b + k]` for k from 0 to
  n - 1; indices and n are signed 64-bit numbers, and a negative n is none.

## Statements

* Effects (stores, atomics, subgroup operations, products of matrices, calls of
  functions with effects) come in the order of the statements; each is a
  statement, or the whole right side of one. Expressions have none, and all of
  their operands are evaluated: of `&&`, `||` and `select` too.
* `for k in a..b step c`: a and b are evaluated once; k is a, a + c, ... while it
  is below b. It does not wrap around at the end of its type.
* A `while` that never ends does not end.
* `return` in the program ends the thread, in a function the call.
* `trap(tag, address)` ends the thread. The first one is told to whoever launched
  the program, with its block and thread; the others go on.

## Threads

* Counts and work sizes are computed once, before the program runs, by the
  operators below. A sum, difference, product or shift to the left that wraps
  around is an error there (OUT_OF_RANGE), as is a negative result; of a `select`
  only what is chosen is computed.
* There are as many as the work size says, along each axis. Blocks are full, and
  threads beyond the work size do nothing: they have returned before they begin.
* A barrier waits for all threads of the block that have not returned, a grid
  barrier for all of the grid, a subgroup barrier for those of the subgroup. What
  was written in front of it is read behind it. Rules P032 to P035 see to it that
  threads come to them together.
* A subgroup is 32 threads with consecutive `local_index`. One that has returned
  or is beyond the block takes no part.
"""

MATRICES = """
## Matrices of a subgroup

`matrix_multiply_accumulate(d, a, b)` is d += a b: a has 16 rows of 16 numbers, b
16 rows of 8 and d 16 rows of 8. Each of the 32 threads has a part of all three,
in private arrays: `d` f32[4], `a` f16[8] or bf16[8], `b` 4 of a's type. With g =
lane / 4 and t = lane % 4 * 2, the parts are those of the PTX instruction
mma.m16n8k16:

| elements | row | column |
|---|---|---|
| `a[0]`, `a[1]` | g | t, t + 1 |
| `a[2]`, `a[3]` | g + 8 | t, t + 1 |
| `a[4]`, `a[5]` | g | t + 8, t + 9 |
| `a[6]`, `a[7]` | g + 8 | t + 8, t + 9 |
| `b[0]`, `b[1]` | t, t + 1 | g |
| `b[2]`, `b[3]` | t + 8, t + 9 | g |
| `d[0]`, `d[1]` | g | t, t + 1 |
| `d[2]`, `d[3]` | g + 8 | t, t + 1 |

Each element of d becomes fma(a[row, k], b[k, column], d) for k = 0, 1, ... 15, in
this order, in f32. The part of a thread that takes no part is 0. This is the
strict meaning; with a budget it may be one instruction
([program-math.md](program-math.md)).
"""

TITLES = [
    ("UNARY_OPERATORS", "Operators of one operand",
     "| operator | operands | result | meaning |\n|---|---|---|---|\n"),
    ("BINARY_OPERATORS", "Operators of two operands",
     "Both are of one type, but for the count of a shift. `select(c, x, y)` is x\n"
     "where c is true, else y; `fma(x, y, z)` is x * y + z, rounded once,\n"
     "of f16 and bf16 to f32, and from there to the type.\n\n"
     "| operator | operands | result | meaning |\n|---|---|---|---|\n"),
    ("ATOMICS", "Atomics",
     "Of x, the element, and y; the result is x as it was. No other atomic comes\n"
     "between. Orderings are relaxed (the default), acquire, release, acq_rel and\n"
     "seq_cst, scopes block, device (the default) and system, as in the PTX memory\n"
     "consistency model.\n\n"
     "| atomic | elements | what is written |\n|---|---|---|\n"),
    ("SUBGROUPS", "Operations of a subgroup",
     "A reduction is `for d in 16, 8, 4, 2, 1: x = x op (x of lane ^ d)`, the lower\n"
     "lane's on the left; a scan `for d in 1, 2, 4, 8, 16: x = (x of lane - d) op x`\n"
     "in lanes from d on. A thread that takes no part holds what changes nothing.\n\n"
     "| operation | operands | result | meaning |\n|---|---|---|---|\n"),
    ("IDS", "What a thread knows of itself",
     "All are u32; those with three numbers take `.x`, `.y` or `.z`.\n\n"
     "| name | numbers | meaning |\n|---|---|---|\n"),
]
WORDS = {"ANY": "any type", "NUMBER": "numbers", "INTEGER": "integers",
         "SIGNED": "signed numbers", "FLOAT": "floats", "BOOL": "bool",
         "SAME": "the same", "U32": "u32", "UNSIGNED": "unsigned"}


def rows(text, name):
    """The fields of each row of a list; strings joined, words as they are."""
    body = re.search(r"#define KILN_PROGRAM_%s\(X\)((?:[^\n]*\\\n)*[^\n]*)"
                     % name, text).group(1).replace("\\\n", "\n")
    for row in re.findall(r"X\(((?:\"[^\"]*\"|[^\")])*)\)", body):
        fields = re.findall(r"((?:\"[^\"]*\"\s*)+|[^\s,\"]+)\s*(?:,|$)", row)
        yield ["".join(re.findall(r'"([^"]*)"', f)) if '"' in f else f.strip()
               for f in fields]


def cells(name, fields):
    spelling = "`%s`" % fields[1].replace("|", "\\|")
    rest = [WORDS.get(f, f) for f in fields[2:]]
    if name == "SUBGROUPS":
        if rest[2] == "1":
            spelling = "`%s(x, lane)`" % fields[1]
        del rest[2]
    if name == "IDS":
        rest[0] = "3" if rest[0] == "1" else "1"
    rest = [r.replace("in the fixed order below", "in the order above")
            for r in rest]
    return [spelling] + [r.replace("|", "\\|") for r in rest]


def page():
    with open(LISTS, encoding="utf-8") as file:
        text = file.read()
    out = HEAD
    for name, title, head in TITLES:
        out += "\n## %s\n\n%s" % (title, head)
        for fields in rows(text, name):
            out += "| %s |\n" % " | ".join(cells(name, fields))
        if name == "SUBGROUPS":
            out += MATRICES
    return out


def main():
    if "--check" in sys.argv:
        with open(PAGE, encoding="utf-8") as file:
            return 0 if file.read() == page() else 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
