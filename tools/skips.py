#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools: which tests were skipped, and why.

    skips.py RESULTS.xml...

Reads what `ctest --output-junit` wrote and prints one line for each reason: how
many tests it took, and their names. A reason is what the test printed:

    skip: no nvcc               or `skipped: …`, with `rule: ` before it or not
    1..0 # SKIP no driver       the whole program, as TAP has it
    ok 3 - name # SKIP why      one case of it
    [  SKIPPED ] name           a case of cmocka; what it printed last is why

The exit code is 1 if a test or a case was skipped that gave no reason.
"""

import collections
import os
import re
import sys
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAID = re.compile(r"^(?:[\w./-]+: )?skip(?:ped)?: *(.*\S)", re.I)
TAP_CASE = re.compile(r"^(?:not )?ok \d+ (?:- )?(.*?) *# SKIP\b *(.*)", re.I)
TAP_WHOLE = re.compile(r"^1\.\.0 # SKIP\b *(.*)", re.I)
RUN = re.compile(r"^\[ RUN +\] (\S+)")
RUN_END = re.compile(r"^\[ +(OK|FAILED|ERROR|SKIPPED) +\] (\S+)")
NAMES_SHOWN = 6

# Of one skip: the test, the case in it ("" for all of it), why ("" if unsaid).
Skip = collections.namedtuple("Skip", "test case reason")
Results = collections.namedtuple("Results", "ran failed skips")


def plain(reason):
    """A reason without this machine's folder."""
    return reason.replace(ROOT + os.sep, "").replace(ROOT, ".").strip()


def cases_of(lines):
    """(case, reason) of each skip that an output tells of; "" for the whole."""
    running, said = None, ""
    for line in lines:
        line = line.rstrip()
        begins, ends = RUN.match(line), RUN_END.match(line)
        if begins:
            running, said = begins.group(1), ""
        elif ends and running == ends.group(2):
            if ends.group(1) == "SKIPPED":
                told = SAID.match(said)
                yield running, told.group(1) if told else said
            running = None
        elif running:
            said = line.strip() or said
        elif TAP_WHOLE.match(line):
            yield "", TAP_WHOLE.match(line).group(1)
        elif TAP_CASE.match(line):
            yield TAP_CASE.match(line).groups()
        elif SAID.match(line):
            yield "", SAID.match(line).group(1)


def skips_of(test, output, is_whole):
    """[Skip] of one test by what it printed."""
    found = [Skip(test, case, plain(why))
             for case, why in cases_of(output.splitlines())]
    if not is_whole:
        # What it says of itself though it ran: a part that it left out.
        return [one if one.case else one._replace(case="(in part)")
                for one in found]
    whole = [one for one in found if not one.case] or found
    return [Skip(test, "", whole[0].reason if whole else "")]


def read_results(path):
    """Results of one run of ctest."""
    ran, failed, skips = 0, [], []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        mark = case.find("skipped")
        if status == "disabled":
            skips.append(Skip(name, "", "disabled in its CMakeLists.txt"))
            continue
        is_whole = mark is not None and mark.get("message", "").startswith(
            "SKIP_")
        ran += not is_whole
        if status == "fail" or (mark is not None and not is_whole):
            failed.append(name)
        skips += skips_of(name, output, is_whole)
    return Results(ran, failed, skips)


def unexplained(skips):
    return sorted({one.test + (": " + one.case if one.case else "")
                   for one in skips if not one.reason})


def counts(skips):
    """"3 tests and 2 cases of others"."""
    tests = len({one.test for one in skips if not one.case})
    cases = len({one for one in skips if one.case})
    words = ["%d test%s" % (tests, "" if tests == 1 else "s")]
    if cases:
        words.append("%d case%s of others" % (cases, "" if cases == 1 else "s"))
    return " and ".join(words)


def cases_text(cases):
    cases = sorted(cases - {"", "(in part)"})
    if not cases:
        return ""
    return ": " + cases[0] if len(cases) == 1 else ": %d cases" % len(cases)


def by_reason(skips):
    """[(reason, [name])], the reason with the most first. A test that was
    skipped in several runs for one reason is one; of cases, the test's name
    and how many."""
    tests = collections.defaultdict(dict)
    for one in skips:
        tests[one.reason].setdefault(one.test, set()).add(one.case)
    found = []
    for reason, named in tests.items():
        found.append((reason, [name + cases_text(cases)
                               for name, cases in sorted(named.items())]))
    return sorted(found, key=lambda row: (-len(row[1]), row[0]))


def names_text(names, shown=NAMES_SHOWN):
    if len(names) <= shown:
        return ", ".join(names)
    return "%s and %d more" % (", ".join(names[:shown - 1]),
                               len(names) - shown + 1)


def summary(skips):
    """The lines that a person reads."""
    if not skips:
        return ["Skipped: nothing"]
    lines = ["Skipped: %s" % counts(skips)]
    for reason, names in by_reason(skips):
        lines.append("%4d  %s: %s" % (
            len(names), reason or "**gave no reason**", names_text(names)))
    if unexplained(skips):
        lines.append('Fix: print "skip: REASON" before exit code 77 or skip()')
    return lines


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        return 2
    skips = [one for path in sys.argv[1:] for one in read_results(path).skips]
    print("\n".join(summary(skips)))
    return 1 if unexplained(skips) else 0


if __name__ == "__main__":
    sys.exit(main())
