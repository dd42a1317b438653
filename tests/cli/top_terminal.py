#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `kiln top` in a terminal and looks at what it leaves there.

    top_terminal.py KILN [--sees TEXT]

Pages follow each other, `q` and Ctrl-C end them with exit code 0, a signal
from outside ends the command by that signal, and each time the terminal's
settings are what they were and its first page is back. A page is as large as
the terminal, also after that has changed. With --sees, TEXT is on each page.
"""
import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

ENTER = b"\x1b[?1049h\x1b[?25l"
LEAVE = b"\x1b[?25h\x1b[?1049l"
WAIT_S = 30


def size_to(descriptor, rows, columns):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ,
                struct.pack("HHHH", rows, columns, 0, 0))


class Top:
    """One run in a terminal of its own."""

    def __init__(self, kiln, *options, rows=40, columns=120,
                 hang_up=signal.SIG_DFL):
        self.outer, self.inner = pty.openpty()
        size_to(self.outer, rows, columns)
        self.found = termios.tcgetattr(self.inner)
        self.text = b""
        # A process group that the terminal's signals reach.
        self.process = subprocess.Popen(
            [kiln, "top", *options], stdin=self.inner, stdout=self.inner,
            stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm"},
            preexec_fn=lambda: signal.signal(signal.SIGHUP, hang_up))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.outer], [], [], 0.05)
            if ready:
                self.text += os.read(self.outer, 65536)
            elif self.process.poll() is not None:
                return

    def until_pages(self, count):
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and self.text.count(b"\x1b[J") < count:
            self.read(0.05)
        assert self.text.count(b"\x1b[J") >= count, self.text

    def finish(self, code):
        end = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0.2)
        stray = self.process.stderr.read()
        self.process.stderr.close()
        assert self.process.returncode == code, (self.process.returncode, stray)
        assert stray == b"", stray
        assert termios.tcgetattr(self.inner) == self.found, "settings differ"
        assert self.text.startswith(ENTER), self.text[:40]
        assert self.text.rstrip().endswith(LEAVE), self.text[-40:]
        assert self.text.count(ENTER) == self.text.count(LEAVE) == 1
        os.close(self.inner)
        os.close(self.outer)


def pages_of(text):
    body = text[len(ENTER):-len(LEAVE)]
    return [re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", page).split(b"\n")
            for page in body.split(b"\x1b[J")]


def ends_by_key(kiln, key, sees):
    top = Top(kiln, "--interval", "0.1")
    top.until_pages(3)
    os.write(top.outer, key)
    top.finish(0)
    assert top.text.count(sees.encode()) >= 3, (sees, top.text)


def ends_by_signal(kiln, number):
    top = Top(kiln)
    top.until_pages(1)
    top.process.send_signal(number)
    top.finish(-number)


def ignores_what_it_was_told_to(kiln):
    top = Top(kiln, "--interval", "0.1", hang_up=signal.SIG_IGN)
    top.until_pages(1)
    top.process.send_signal(signal.SIGHUP)
    top.until_pages(top.text.count(b"\x1b[J") + 3)
    os.write(top.outer, b"q")
    top.finish(0)


def counts_its_pages(kiln):
    top = Top(kiln, "--interval", "0.1", "--count", "2")
    top.finish(0)
    assert top.text.count(b"\x1b[J") == 2


def fits_the_terminal(kiln):
    top = Top(kiln, "--interval", "60", rows=2, columns=30)
    top.until_pages(1)
    time.sleep(0.2)
    size_to(top.outer, 3, 20)
    top.process.send_signal(signal.SIGWINCH)
    top.until_pages(2)
    os.write(top.outer, b"q")
    top.finish(0)
    first, second = pages_of(top.text)[:2]
    assert len(first) == 2 and max(map(len, first)) <= 30, first
    assert len(second) == 3 and max(map(len, second)) <= 20, second


def without_a_terminal(kiln):
    done = subprocess.run([kiln, "top"], stdin=subprocess.DEVNULL,
                          capture_output=True, check=True)
    assert b"\x1b" not in done.stdout, done.stdout
    assert done.stdout.startswith(b"kiln top "), done.stdout


def on_a_dumb_one(kiln):
    outer, inner = pty.openpty()
    done = subprocess.run([kiln, "top"], stdin=inner, stdout=inner,
                          env={**os.environ, "TERM": "dumb"}, check=True)
    text = os.read(outer, 65536)
    assert done.returncode == 0 and b"\x1b" not in text, text
    os.close(inner)
    os.close(outer)


def has_terminals():
    try:
        for descriptor in pty.openpty():
            os.close(descriptor)
        return True
    except OSError as error:
        print("skipped: this system gives no pseudo-terminal: %s" % error)
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kiln")
    parser.add_argument("--sees", default="kiln top")
    options = parser.parse_args()
    kiln = os.path.abspath(options.kiln)
    if not has_terminals():
        return 77
    for key in (b"q", b"\x03"):
        ends_by_key(kiln, key, options.sees)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        ends_by_signal(kiln, number)
    ignores_what_it_was_told_to(kiln)
    counts_its_pages(kiln)
    fits_the_terminal(kiln)
    without_a_terminal(kiln)
    on_a_dumb_one(kiln)
    print("kiln top: the terminal is left as it was found, 10 ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
