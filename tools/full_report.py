# SPDX-License-Identifier: Apache-2.0
"""tools: what the parts of tools/full left, as states, and one report of them.

A part leaves build/full/PART.json. A state counts for a tree if its `tree` is
the same: a hash of every file but the evidence, so that it can be told without
git, on a machine that was sent the tree alone.
"""

import hashlib
import json
import os
import re
import subprocess

import skips

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GREEN, NOT_GREEN, SKIPPED = "green", "not green", "skipped"
NO_SOURCES = "KILN_SOURCES"
# What builds and runs leave, as .gitignore has it; the evidence and the note of
# what is linted are written by these runs themselves.
LEFT_OUT = re.compile(r"(build|build-.*|out|docs/evidence|tests/layout/LINTED|"
                      r"(.*/)?(__pycache__|\.git|.*\.(o|so|a|pyc)))$")


# ---- Which tree ----

def tree_hash(root=ROOT):
    """A hash of every file's path and text."""
    digest = hashlib.sha256()
    for folder, names, files in os.walk(root):
        def path_of(name, folder=folder):
            return os.path.relpath(os.path.join(folder, name), root)
        names[:] = sorted(name for name in names
                          if not LEFT_OUT.match(path_of(name)))
        for name in sorted(files):
            if LEFT_OUT.match(path_of(name)):
                continue
            path = os.path.join(folder, name)
            digest.update(path_of(name).encode() + b"\0")
            if os.path.islink(path):
                digest.update(os.readlink(path).encode())
            else:
                with open(path, "rb") as file:
                    digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:20]


def git(*words, root=ROOT):
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit(root=ROOT):
    """The commit, from the file that travelled with the tree, or from git."""
    note = os.path.join(root, "build/commit.txt")
    if os.path.exists(note):
        with open(note, encoding="utf-8") as file:
            return file.read().strip()
    changes = git("status", "--porcelain", root=root)
    return (git("rev-parse", "HEAD", root=root) or "unknown") + (
        " with changes" if changes else "")


def changed_files(one, other, root=ROOT):
    """Which files two commits have differently, as words."""
    one, other = one.split(" ")[0], other.split(" ")[0]
    if one == other:
        return "files that were not committed"
    names = git("diff", "--name-only", one, other, "--", ".",
                ":!docs/evidence", root=root).splitlines()
    return skips.names_text(names) or "files unknown here"


# ---- States ----

def state_path(folder, name):
    return os.path.join(folder, name + ".json")


def write_state(folder, state):
    os.makedirs(folder, exist_ok=True)
    path = state_path(folder, state["part"])
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def read_states(folder):
    """The states of a folder; a file that is none is left out, as is one that
    another run beside this one takes away."""
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.endswith(".json"):
            continue
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                state = json.load(file)
        except (ValueError, FileNotFoundError):
            continue
        if isinstance(state, dict) and {"part", "tree", "verdict"} <= set(
                state):
            found.append(state)
    return found


def skips_in(state):
    return [skips.Skip(*one) for one in state.get("skips", [])]


def why_not_green(state):
    """Why a part is not green, as texts; nothing if it is."""
    if state["verdict"] == SKIPPED:
        yield "skipped: " + state["result"]
    elif state["verdict"] != GREEN:
        yield state["verdict"]
    if state.get("reduced"):
        yield "reduced: " + state["reduced"]
    if skips.unexplained(skips_in(state)):
        yield "skips without a reason: " + skips.names_text(
            skips.unexplained(skips_in(state)))
    without = {one.test for one in skips_in(state)
               if one.reason.startswith(NO_SOURCES)}
    if without:
        yield "%d tests lack KILN_SOURCES" % len(without)
    if state.get("leftovers"):
        yield "left running: " + ", ".join(state["leftovers"])


def is_done(state, tree):
    """Whether --resume need not run a part again."""
    return state is not None and state["tree"] == tree and not [
        *why_not_green(state)]


# ---- Merging ----

def best_state(states, tree):
    """Of several states of one part: those of this tree first; of them one
    that is not green before one that is, so that nothing is hidden, and what
    was skipped last; then the newest."""
    ranks = {GREEN: 1, SKIPPED: 0}
    return max(states, key=lambda one: (
        one["tree"] == tree, ranks.get(one["verdict"], 2),
        one.get("finished", "")), default=None)


def merge(folders, names, tree):
    """{part: its state or None}, and the tree that they are judged for: this
    one if a part is of it, else that of the newest."""
    states = [one for folder in folders for one in read_states(folder)]
    if states and tree not in [one["tree"] for one in states]:
        tree = max(states, key=lambda one: one.get("finished", ""))["tree"]
    return {name: best_state([one for one in states if one["part"] == name],
                             tree) for name in names}, tree


def problems(states, tree, allow_other_commits=False):
    """Why the whole is not green, as texts."""
    for name, state in states.items():
        if state is None:
            yield "%s was not run" % name
            continue
        for why in why_not_green(state):
            yield "%s: %s" % (name, why)
    if allow_other_commits:
        return
    for name, state in states.items():
        if state is not None and state["tree"] != tree:
            yield "%s is of another commit" % name


# ---- The report ----

def reference_commit(states, tree):
    for state in states.values():
        if state is not None and state["tree"] == tree:
            return state["commit"]
    return "unknown"


def row_of(part, state):
    if state is None:
        return "| `%s` | %s | **not run** | | | |" % (part.name, part.what)
    why = [*why_not_green(state)]
    return "| `%s` | %s | %s | %s | %.0f of %d | %s |" % (
        part.name, part.what, GREEN if not why else "**%s**" % "; ".join(why),
        state["result"] if state["verdict"] != SKIPPED else "",
        state["seconds"] / 60, part.minutes, state["machine"])


def skip_rows(states):
    """The skips of all parts, a row for each reason."""
    every = [one for state in states.values() if state is not None
             for one in skips_in(state)]
    yield "%s were skipped." % skips.counts(every)
    yield ""
    if every:
        yield "| tests | why | which |"
        yield "|---|---|---|"
    for reason, names in skips.by_reason(every):
        text = reason if len(reason) < 110 else reason[:107] + "…"
        yield "| %d | %s | %s |" % (len(names), text.replace("|", "/"),
                                    skips.names_text(names, 4))


def other_commits(states, tree):
    """A line for each commit that some parts are of instead."""
    mine = reference_commit(states, tree)
    others = {}
    for name, state in states.items():
        if state is not None and state["tree"] != tree:
            others.setdefault(state["commit"], []).append(name)
    for one, names in sorted(others.items()):
        yield "* of another commit, %s: %s; since then changed: %s" % (
            one, ", ".join(names), changed_files(one, mine))


def report_lines(parts, states, tree, date, allow_other_commits=False):
    bad = [*problems(states, tree, allow_other_commits)]
    yield "# Full run of %s" % date
    yield ""
    yield "Made by `tools/full`: every test under every sanitizer with every " \
        "fault point, fuzzing, and what else CI leaves out."
    yield ""
    yield "* verdict: %s" % ("**green**" if not bad else "**not green**")
    yield "* commit %s" % reference_commit(states, tree)
    yield from other_commits(states, tree)
    yield from ("* " + text for text in sorted({
        text for state in states.values() if state is not None
        for text in state.get("tools", [])}))
    yield ""
    yield "| part | what | verdict | result | minutes, of expected | machine |"
    yield "|---|---|---|---|---|---|"
    for part in parts:
        yield row_of(part, states[part.name])
    yield ""
    for name, state in states.items():
        yield from ("* %s: %s" % (name, text)
                    for text in (state or {}).get("details", []))
    yield ""
    yield from skip_rows(states)
