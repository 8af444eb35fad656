# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of `gpushmem run` share: each promise is a test in one of run_*.py.

Run by CTest, one class per CTest test; by hand: GPUSHMEM=build/dev/bin/gpushmem BOOT=... MISHAP=... run_FILE.py [Class[.test]].
Every test gets a TMPDIR of its own that must be empty at the end, and no process it started may be left.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

GPUSHMEM = os.environ.get("GPUSHMEM", "gpushmem")
BOOT = os.environ.get("BOOT", "launch_boot")
EVERYWHERE = os.environ.get("EVERYWHERE", "launch_everywhere")
MISHAP = os.environ.get("MISHAP", "launch_mishap")
MPIRUN = [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe"] if shutil.which("mpirun") else None
CAN_UNSHARE = subprocess.run(["unshare", "-pf", "true"], stderr=subprocess.DEVNULL).returncode == 0
HANG_S = 60  # only against hangs, never a promise


def marked_processes(mark):
    """Processes (not zombies) whose environment holds the mark."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                found.append(int(path.parts[2]))
        except OSError:
            pass  # ended in the meantime
    return found


def read_line(stream):
    """A line as soon as it is there, and nothing beyond it: communicate() knows nothing of what the stream would keep."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(stream.fileno(), 1)):
        line += byte
    return line.decode().rstrip("\n")


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.mkdtemp(prefix="launch.", dir="/tmp")
        self.mark = uuid.uuid4().hex
        self.env = dict(os.environ, TMPDIR=self.tmp, LAUNCH_TEST_MARK=self.mark)

    def tearDown(self):
        deadline = time.monotonic() + HANG_S
        while (left := marked_processes(self.mark.encode())) and time.monotonic() < deadline:
            time.sleep(0.02)
        files = os.listdir(self.tmp)
        shutil.rmtree(self.tmp, ignore_errors=True)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes left behind")
        self.assertEqual(files, [], "files left behind")

    def start(self, *arguments, **options):
        """Starts a job. Its signals must not be ignored, whatever the caller's shell does."""
        def default_signals():
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
        settings = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env,
                        preexec_fn=default_signals)
        settings.update(options)
        return subprocess.Popen([GPUSHMEM, "run", *map(str, arguments)], **settings)

    def finish(self, job, code):
        """Waits for the end, checks the exit code, returns (stdout, stderr)."""
        out, err = job.communicate(timeout=HANG_S)
        self.assertEqual(job.returncode, code, f"stdout: {out}\nstderr: {err}")
        return out, err

    def job(self, *arguments, code=0, **options):
        return self.finish(self.start(*arguments, **options), code)

    def wait_for_lines(self, job, n):
        """The first n lines of output, as soon as they are there."""
        return [read_line(job.stdout) for _ in range(n)]

    def wait_state(self, pids, state):
        def states():
            return [pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[0] for p in pids]
        deadline = time.monotonic() + HANG_S
        while states() != [state] * len(pids):
            self.assertLess(time.monotonic(), deadline, f"states are {states()}, want {state}")
            time.sleep(0.02)

    def assert_last_line(self, err, pattern):
        self.assertRegex(err.splitlines()[-1], "^gpushmem run: " + pattern + "$")


def main():
    unittest.main(verbosity=2, argv=sys.argv)
