#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who may get at a job: promises of `gpushmem run`."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from run_case import GPUSHMEM, BOOT, EVERYWHERE, MISHAP, HANG_S, marked_processes, Case, main

# What anybody may try who can run programs on this machine: connect to whatever listens and say anything, also so that the
# connection is gone before it is accepted; open what processes hold; send signals; look for names. Ends by itself.
STRANGER = r"""
import ctypes, os, random, re, signal, socket, struct, sys, time
own, end, got_in = os.getpgid(0), time.monotonic() + float(sys.argv[1]), []
def listening():
    for family, table in ((socket.AF_INET, "/proc/net/tcp"), (socket.AF_INET6, "/proc/net/tcp6")):
        for line in open(table).read().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                yield family, int(words[1].rsplit(":", 1)[1], 16)
def jobs():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if "gpushmem" in open(f"/proc/{pid}/comm").read() or "launch_" in open(f"/proc/{pid}/cmdline").read():
                if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
                    yield int(pid)
        except OSError:
            pass
while time.monotonic() < end:
    for family, port in listening():
        try:
            s = socket.socket(family)
            s.settimeout(0.2)
            s.connect(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
            s.sendall(random.randbytes(random.choice((1, 64, 5000))))
            if random.random() < 0.5:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        except OSError:
            pass
    for pid in jobs():
        for what in ("fd", "environ", "mem", "maps", "map_files"):
            try:
                path = f"/proc/{pid}/{what}"
                seen = os.listdir(path) if what in ("fd", "map_files") else open(path, "rb").read(1)
                if seen:  # of a zombie there is nothing to see
                    got_in.append(f"{path} {seen}")
            except OSError:
                pass
        try:
            for fd in range(80):
                open(f"/proc/{pid}/fd/{fd}", "r+b")
                got_in.append(f"/proc/{pid}/fd/{fd}")
        except OSError:
            pass
        for number in (0, signal.SIGUSR1, signal.SIGKILL):
            try:
                os.kill(pid, number)
                got_in.append(f"signal {number} to {pid}")
            except OSError:
                pass
print(*got_in[:5], sep="\n")
sys.exit(bool(got_in))
"""


def as_nobody(*command):
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *map(str, command)]


@unittest.skipUnless(os.geteuid() == 0, "only root can act as another user")
class Security(Case):
    """Other users of the machine, with all that ls, ps and /proc show them."""
    PROCESSES, SECONDS = 4, 4  # by hand: 16 of them for 60 s

    def forever(self, n):
        job = self.start("-n", n, "-x", "GPUSHMEM_HEAP_SIZE=1M", EVERYWHERE, "forever")
        self.addCleanup(job.kill)
        self.assertEqual(self.wait_for_lines(job, n), ["ready"] * n)
        return job

    def end(self, job):
        job.send_signal(signal.SIGTERM)
        self.finish(job, 143)

    def processes_of(self, job):
        """Launcher, keeper and PEs."""
        return list({*marked_processes(self.mark.encode()), job.pid})

    def test_nothing_listens_and_nothing_has_a_name(self):
        job = self.forever(3)
        sockets = set()
        for pid in self.processes_of(job):
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                target = os.readlink(fd)
                sockets |= set(re.findall(r"^socket:\[(\d+)\]$", target))
                if target.startswith("/") and not target.startswith(("/dev/", "/memfd:", "/proc/", "/sys/")):
                    self.assertNotIn("gpushmem-", target)
        self.assertGreaterEqual(len(sockets), 6)  # a line to each PE has two ends
        for table in ("tcp", "tcp6", "udp", "udp6"):
            inodes = {line.split()[9] for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]}
            self.assertEqual(inodes & sockets, set(), table)
        for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
            words = line.split()
            self.assertFalse(words[6] in sockets and len(words) > 7, f"a socket with a name: {line}")
        self.assertEqual(os.listdir(self.tmp), [])
        self.end(job)

    def test_all_are_killed_at_once(self):
        job = self.forever(3)
        for pid in self.processes_of(job):
            os.kill(pid, signal.SIGSTOP)
        for pid in self.processes_of(job):
            os.kill(pid, signal.SIGKILL)
        self.finish(job, -9)  # tearDown looks for what is left

    def test_strangers_harm_nobody(self):
        os.chmod(self.tmp, 0o777)
        theirs = [subprocess.Popen(as_nobody(sys.executable, "-c", STRANGER, self.SECONDS), stdout=subprocess.PIPE, text=True)
                  for _ in range(self.PROCESSES)]
        running, rounds = self.forever(2), 0
        end = time.monotonic() + self.SECONDS
        while time.monotonic() < end:
            out, err = self.job("-n", 3, BOOT)
            self.assertEqual((len(out.splitlines()), err), (3, ""))
            other = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", GPUSHMEM, "run", "-n", "2", BOOT]
            done = subprocess.run(other, env=self.env, capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 2), done.stderr)
            rounds += 1
        for stranger in theirs:
            out, _ = stranger.communicate(timeout=HANG_S)
            self.assertEqual((stranger.returncode, out), (0, "\n"), out)
        self.assertGreater(rounds, 1)
        self.end(running)

    def test_pe_that_becomes_another_user_is_refused(self):
        script = '"$@" && echo joined || echo refused; exec ' + BOOT
        out, err = self.job("-n", 1, "--timeout", 20, "sh", "-c", script, "sh", *as_nobody(MISHAP, "abort", 0))
        self.assertEqual(re.sub("pe 0 of 1 .*: ok", "ok", out), "refused\nok\n", err)
        self.assertRegex(err, "gpushmem run was started by user 0 and this process is of user 65534")

    def test_what_another_user_says_on_a_line_is_not_heard(self):
        # A PE has passed its line on, by su. Words of that user: a log line, and the end of the job.
        say = """if True:
            import os, socket, struct
            line = int(os.environ["GPUSHMEM_RUN_JOB"].split()[1].split(":")[0])
            s = socket.socket(fileno=line)
            s.sendall(struct.pack("iiii", 0, 0, 0, 0) + b"WARN: not heard")
            s.sendall(struct.pack("iiii", 2, 7, 0, 0) + b"not heard")
            s.sendall(b"x")
            s.sendall(os.urandom(4000))
            print("said")"""
        for _ in range(3):
            out, err = self.job("-n", 1, "sh", "-c", '"$@"; exec ' + BOOT, "sh", *as_nobody(sys.executable, "-c", say))
            self.assertRegex(out, "(?s)said.*: ok$")
            self.assertEqual(err, "")
        # The same words of the job's own user are heard.
        _, err = self.job("-n", 1, "sh", "-c", '"$@"; sleep 20', "sh", sys.executable, "-c", say, code=7)
        self.assertIn("gpushmem[0] WARN: not heard", err)
        self.assertIn("aborted the job with status 7: not heard", err)

    def test_names_of_jobs_tell_them_apart(self):
        names = {re.search(r"job (run-[0-9a-f]{16}) ", self.job("-n", 1, BOOT)[0])[1] for _ in range(3)}
        self.assertEqual(len(names), 3)

    def test_job_is_shown_by_its_name(self):
        job = self.start("-n", 1, "-x", "GPUSHMEM_TRANSPORTS=loop", EVERYWHERE, "forever")
        self.assertEqual(self.wait_for_lines(job, 1), ["ready"])
        listed = subprocess.run([GPUSHMEM, "stat"], env=self.env, capture_output=True, text=True, timeout=HANG_S).stdout
        name = re.search(rf"^(\S+) +1 +1 +gpushmem run, process {job.pid}$", listed, re.M)[1]
        for operand in (name, str(job.pid)):
            for option, pattern in (("--prometheus", rf'{{job="{name}",pe="0"'), ("--waits", "(?m)^0 "), ("--once", "(?m)^0 ")):
                done = subprocess.run([GPUSHMEM, "stat", option, operand], env=self.env, capture_output=True, text=True, timeout=HANG_S)
                self.assertRegex(done.stdout, pattern)
        self.end(job)


if __name__ == "__main__":
    main()
