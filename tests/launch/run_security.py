#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who may connect, and what is a secret: promises of `gpushmem run`."""
import os
import re
import signal
import subprocess
import sys

from run_case import GPUSHMEM, BOOT, EVERYWHERE, MISHAP, HANG_S, Case, main


class Security(Case):
    """Other users of the machine: they know the port, and may know more."""

    CONNECT = """
import os, socket, subprocess, sys
host, port = os.environ["PMIX_SERVER_URI2"].rsplit("/", 1)[1].split(":")
def connect(first):
    s = socket.create_connection((host, int(port)))
    s.sendall(first)
    return s
"""

    def as_nobody(self, *command):
        return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *map(str, command)]

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("only root can act as another user")

    def test_silent_connections_hold_up_nobody(self):
        script = self.CONNECT + "held = [connect(b'') for _ in range(20)]\nsys.exit(subprocess.call(sys.argv[1:]))"
        out, _ = self.job("-n", 2, "--timeout", 20, sys.executable, "-c", script, BOOT)
        self.assertEqual(len(out.splitlines()), 2)

    def test_connection_of_another_user_is_closed(self):
        self.need_root()
        stranger = self.CONNECT + """
s = connect(b'x')
s.settimeout(20)
try:
    print("open" if s.recv(1) else "closed")
except ConnectionResetError:
    print("closed")"""
        self.assertEqual(self.job("-n", 1, *self.as_nobody(sys.executable, "-c", stranger)), ("closed\n", ""))

    def test_another_user_cannot_join_or_end_a_job_whose_name_it_knows(self):
        self.need_root()
        os.chmod(self.tmp, 0o755)
        script = '"$@" && echo joined || echo refused; exec ' + BOOT
        out, err = self.job("-n", 1, "--timeout", 20, "sh", "-c", script, "sh", *self.as_nobody(MISHAP, "abort", 0))
        self.assertEqual(re.sub("pe 0 of 1 .*: ok", "ok", out), "refused\nok\n", err)

    def test_name_of_the_job_is_random_and_secret(self):
        script = """
import glob, os, stat
directory, name = os.environ["PMIX_SERVER_TMPDIR"], os.environ["PMIX_NAMESPACE"].removeprefix("gpushmem-")
public = [path for place in ("/tmp", "/run", "/dev/shm", os.environ["TMPDIR"]) for path in os.listdir(place)]
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/comm") + ["/proc/net/unix"]:
    try:
        public.append(open(path, errors="replace").read())
    except OSError:
        pass
print(sum(name in text for text in public), oct(stat.S_IMODE(os.stat(directory).st_mode)), name)"""
        names = set()
        for _ in range(2):
            out, _ = self.job("-n", 1, sys.executable, "-c", script)
            found, mode, name = out.split()
            self.assertEqual((found, mode), ("0", "0o700"))
            self.assertRegex(name, "^[0-9a-f]{32}$")
            names.add(name)
        self.assertEqual(len(names), 2)

    def test_secret_name_of_the_job_is_shown_by_no_command(self):
        def stat(*arguments, code=0):
            done = subprocess.run([GPUSHMEM, "stat", *arguments], env=self.env, capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertNotIn(secret, done.stdout + done.stderr)
            return done.stdout + done.stderr
        # The transport to oneself has counters; mapped memory has none.
        script = f'echo "$PMIX_NAMESPACE"; exec {EVERYWHERE} forever'
        job = self.start("-n", 1, "-x", "GPUSHMEM_TRANSPORTS=loop", "sh", "-c", script)
        secret, ready = self.wait_for_lines(job, 2)
        self.assertEqual(ready, "ready")
        name = re.search(rf"^(\S+) +1 +1 +gpushmem run, process {job.pid}$", stat(), re.M)[1]
        for operand in (name, str(job.pid)):
            self.assertIn(f'{{job="{name}",pe="0"', stat("--prometheus", operand))
            for option in ("--waits", "--once", "--peers"):
                self.assertRegex(stat(option, operand), "(?m)^0 ")
        self.assertIn("is a secret; `gpushmem stat` lists the names", stat("--once", secret, code=1))
        job.send_signal(signal.SIGUSR1)
        job.send_signal(signal.SIGTERM)
        _, err = self.finish(job, 143)
        self.assertNotIn(secret, err)

    def test_wrong_name_is_refused(self):
        script = f"PMIX_NAMESPACE=gpushmem-0 {MISHAP} abort 0 2>/dev/null; [ $? = 1 ] && exec {BOOT}"
        out, _ = self.job("-n", 1, "--timeout", 20, "sh", "-c", script)
        self.assertRegex(out, "^pe 0 of 1 .*: ok$")


if __name__ == "__main__":
    main()
