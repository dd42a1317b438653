#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Costs are counted, and nothing that a command started outlives it."""

import contextlib
import io
import os
import signal
import sys
import tempfile
import time
import unittest

import tools_path  # noqa: F401
import measure

BURN = "import time\nwhile time.process_time() < %g: pass\n"


class Costs(unittest.TestCase):
    def test_load_of_others_does_not_count(self):
        alone = measure.Cost(wall=100, cpu=180, idle=20, speed=1)
        busy = measure.Cost(wall=300, cpu=180, idle=0, speed=1)
        self.assertAlmostEqual(measure.judged_minutes(alone, core_count=2),
                               100 / 60)
        self.assertAlmostEqual(measure.judged_minutes(busy, core_count=2),
                               90 / 60)

    def test_sleep_counts_on_two_cores(self):
        asleep = measure.Cost(wall=120, cpu=0, idle=240, speed=1)
        self.assertAlmostEqual(measure.judged_minutes(asleep, core_count=2), 2)
        self.assertEqual(measure.judged_minutes(asleep, core_count=8), 0)
        self.assertEqual(measure.judged_minutes(asleep, True, core_count=2), 0)

    def test_a_slow_core_is_excused(self):
        slow = measure.Cost(wall=0, cpu=240, idle=0, speed=0.5)
        self.assertAlmostEqual(measure.judged_minutes(slow), 1)

    def test_the_time_of_processes_is_counted(self):
        meter = measure.Meter()
        with tempfile.NamedTemporaryFile() as log:
            code = measure.run([sys.executable, "-c", BURN % 0.4], log.name,
                               quiet=True)
        cost = meter.cost()
        self.assertEqual(code, 0)
        self.assertGreater(cost.cpu, 0.35)
        self.assertTrue(0.5 <= cost.speed <= 1)


class Processes(unittest.TestCase):
    def setUp(self):
        self.log = tempfile.NamedTemporaryFile()
        measure.adopt_orphans()

    def tearDown(self):
        self.log.close()
        measure.end_leftovers()

    def test_output_and_exit_code(self):
        code = measure.run(["sh", "-c", "echo $WORD; exit 3"], self.log.name,
                           quiet=True, WORD="said")
        self.assertEqual(code, 3)
        self.assertEqual(self.log.read(), b"said\n")

    def test_a_command_that_is_not_there(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(measure.run(["/no/such"], self.log.name), 127)
        self.assertIn(b"/no/such", self.log.read())

    def test_a_limit_ends_a_command(self):
        started = time.monotonic()
        code = measure.run(["sh", "-c", "sleep 60 & sleep 60"], self.log.name,
                           limit=0.2, quiet=True)
        self.assertEqual(code, 124)
        self.assertLess(time.monotonic() - started, 30)
        self.assertIn(b"stopped after", self.log.read())

    def test_what_stays_in_the_group_is_ended(self):
        measure.run(["sh", "-c", "sleep 60 & echo $!"], self.log.name,
                    quiet=True)
        left = int(self.log.read())
        measure.end_leftovers()
        with self.assertRaises(ProcessLookupError):
            os.kill(left, 0)

    def test_what_left_the_group_is_found_and_ended(self):
        program = ("import os, time\nif os.fork() == 0:\n  os.setsid()\n"
                   "  os.close(1)\n  os.close(2)\n  time.sleep(60)\n")
        measure.run([sys.executable, "-c", program], self.log.name, quiet=True)
        names = measure.end_leftovers()
        self.assertEqual(len(names), 1, names)
        self.assertEqual(measure.children(), [])

    def test_a_signal_ends_the_command_too(self):
        measure.stop_on_signals()
        self.addCleanup(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        self.addCleanup(signal.signal, signal.SIGHUP, signal.SIG_DFL)
        with self.assertRaises(KeyboardInterrupt):
            measure.run(["sh", "-c", "sleep 0.3; kill -TERM %d; sleep 60" %
                         os.getpid()], self.log.name, quiet=True)
        self.assertEqual(measure.end_leftovers(), [])


if __name__ == "__main__":
    unittest.main()
