#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Signals to the job, and what is left of it or beside it: promises of `gpushmem run`."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from run_case import GPUSHMEM, BOOT, MISHAP, CAN_UNSHARE, HANG_S, marked_processes, read_line, Case, main


class Signals(Case):
    def running(self, script, n=3, *options):
        """A job whose PEs have printed `ready`. If nothing else is said, they may take their time over a signal."""
        options = options or ("--grace", HANG_S)
        job = self.start("-n", n, *options, "sh", "-c", f"{script}\necho ready; while :; do sleep 0.05; done")
        self.assertEqual(self.wait_for_lines(job, n), ["ready"] * n)
        return job

    def test_forwarded_to_every_pe(self):
        for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
            with self.subTest(name):
                job = self.running(f"trap 'echo got {name}; exit 0' {name}")
                job.send_signal(getattr(signal, "SIG" + name))
                ends_job = name in ("TERM", "HUP")
                out, _ = self.finish(job, 128 + getattr(signal, "SIG" + name) if ends_job else 0)
                self.assertEqual(out, f"got {name}\n" * 3)

    def test_question_spares_programs_that_do_not_catch_it(self):
        # A PE before init, or a script around one. The last PE hears it, so the others have been passed by then.
        ask = "[ $GPUSHMEM_RUN_PE = 2 ] && trap 'echo heard' USR1"
        job = self.running(ask)
        job.send_signal(signal.SIGUSR1)
        self.assertEqual(self.wait_for_lines(job, 1), ["heard"])
        job.send_signal(signal.SIGTERM)
        _, err = self.finish(job, 143)
        self.assert_last_line(err, r"received signal 15 \(Terminated\); ended the 3 PEs")

    def test_question_reaches_programs_that_read_all_signals(self):
        job = self.start("-n", 2, sys.executable, "-c", """if True:
            import ctypes, os, signal
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            fd = ctypes.CDLL(None).signalfd(-1, b"\\xff" * 128, 0)
            os.write(1, b"%d\\n" % os.getpid())
            os.write(1, b"heard\\n" if os.read(fd, 128)[0] == signal.SIGUSR1 else b"something else\\n")""")
        self.wait_state(self.wait_for_lines(job, 2), "S")
        job.send_signal(signal.SIGUSR1)
        self.assertEqual(self.finish(job, 0)[0], "heard\n" * 2)

    def test_question_spares_programs_that_block_all_signals_for_an_instant(self):
        # As shells and C libraries do around a fork. The instant lasts until the last PE has been asked.
        asked = pathlib.Path(self.tmp, "asked")
        instant = """if True:
            import os, signal
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            os.write(1, b"ready\\n")
            while not os.path.exists("%s"):
                pass
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
            os.write(1, b"alive\\n")""" % asked
        last = f"trap 'touch {asked}; exit' USR1; echo ready; while :; do sleep 0.05; done"
        script = f"[ $GPUSHMEM_RUN_PE = 2 ] || exec \"$0\" -c \"$1\"; {last}"
        job = self.start("-n", 3, "sh", "-c", script, sys.executable, instant)
        self.assertEqual(self.wait_for_lines(job, 3), ["ready"] * 3)
        job.send_signal(signal.SIGUSR1)
        out, _ = self.finish(job, 0)
        asked.unlink()
        self.assertEqual(out, "alive\n" * 2)

    def test_interrupt_ends_pes_that_do_not_catch_it(self):
        job = self.start("-n", 3, "sh", "-c", "echo ready; exec sleep 60")
        self.wait_for_lines(job, 3)
        job.send_signal(signal.SIGINT)
        _, err = self.finish(job, 130)
        self.assert_last_line(err, r"the job ended on signal 2 \(Interrupt\)")

    def test_interrupt_that_is_caught_does_not_end_the_job(self):
        job = self.running("trap 'echo again' INT", 1)
        job.send_signal(signal.SIGINT)
        self.assertEqual(self.wait_for_lines(job, 1), ["again"])
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGINT)
        _, err = self.finish(job, 130)
        self.assert_last_line(err, r"received signal 2 \(Interrupt\); ended the PE")

    def test_terminate_kills_after_the_grace_period(self):
        job = self.running("trap '' TERM", 2, "--grace", "0.2")
        job.send_signal(signal.SIGTERM)
        _, err = self.finish(job, 143)
        self.assert_last_line(err, r"received signal 15 \(Terminated\); ended the 2 PEs")

    def test_stop_and_continue(self):
        job = self.start("-n", 2, "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(pid) for pid in self.wait_for_lines(job, 2)] + [job.pid]
        job.send_signal(signal.SIGTSTP)
        self.wait_state(pids, "T")
        job.send_signal(signal.SIGCONT)
        self.wait_state(pids, "S")
        job.send_signal(signal.SIGTERM)
        _, err = self.finish(job, 143)
        self.assertEqual(len(err.splitlines()), 1, err)  # nothing about PEs that were stopped

    def test_ignored_hangup_stays_ignored(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        job = self.start("-n", 2, "sh", "-c", "echo ready; sleep 0.7; echo alive", preexec_fn=ignore)
        self.wait_for_lines(job, 2)
        job.send_signal(signal.SIGHUP)
        out, _ = self.finish(job, 0)
        self.assertEqual(out, "alive\n" * 2)

    def test_pes_start_with_an_empty_signal_mask(self):
        out, _ = self.job("-n", 1, "grep", "SigBlk", "/proc/self/status")
        self.assertEqual(int(out.split()[1], 16), 0)


class Leftovers(Case):
    """tearDown does the checking."""

    def test_pe_is_killed_from_outside(self):
        job = self.start("-n", 4, "sh", "-c", "echo $$; exec sleep 60")
        victim = int(self.wait_for_lines(job, 4)[1])
        os.kill(victim, signal.SIGKILL)
        _, err = self.finish(job, 137)
        self.assert_last_line(err, rf"PE \d \(pid {victim}\) was killed by signal 9 \(Killed\); ended the other 3 PEs")

    def test_grandchildren_end_with_the_job(self):
        script = "sleep 60 & [ $GPUSHMEM_RUN_PE = 1 ] && sleep 0.2 && exit 4; wait"
        self.job("-n", 3, "sh", "-c", script, code=4)

    def test_grandchildren_of_a_successful_job(self):
        self.job("-n", 2, "sh", "-c", "sleep 60 >/dev/null 2>&1 & exit 0")

    def test_grandchildren_in_sessions_of_their_own(self):
        self.job("-n", 2, "sh", "-c", "setsid sh -c 'setsid sleep 60 & sleep 60' >/dev/null 2>&1 & sleep 0.2; exit 0")

    @unittest.skipUnless(CAN_UNSHARE, "no PID namespaces here")
    def test_where_proc_is_that_of_another_pid_namespace(self):
        script = "setsid sh -c 'setsid sleep 61 & sleep 61' >/dev/null 2>&1 & sleep 0.3; exit 0"
        inside = '"$0" run -n 2 sh -c "$1"; echo code $?; exec cat'  # the namespace lives as long as cat
        job = subprocess.Popen(["unshare", "-pf", "sh", "-c", inside, GPUSHMEM, script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=self.env)
        try:
            self.assertEqual(read_line(job.stdout), "code 0")
            names = [pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in marked_processes(self.mark.encode())]
            self.assertNotIn("sleep", names)
        finally:
            job.communicate()

    def test_orphans_are_buried_while_the_job_runs(self):
        script = """
            children() { for c in $(cat /proc/$PPID/task/*/children); do echo "$c $(grep State /proc/$c/status)"; done; }
            for i in $(seq 200); do (sleep 0.1 &); done
            for i in $(seq 600); do
                sleep 0.1
                [ $(children 2>/dev/null | wc -l) -gt 1 ] || exit 0
            done
            children; exit 1"""
        self.job("-n", 1, "sh", "-c", script)

    def test_pes_that_ignore_everything(self):
        script = "trap '' TERM INT HUP; [ $GPUSHMEM_RUN_PE = 0 ] && exit 1; while :; do sleep 0.1; done"
        self.job("-n", 3, "--grace", "0.1", "sh", "-c", script, code=1)

    def test_stopped_pes(self):
        job = self.start("-n", 2, "--grace", "5", "sh", "-c", "[ $GPUSHMEM_RUN_PE = 0 ] && sleep 0.3 && exit 1; kill -STOP $$")
        self.finish(job, 1)

    def test_launcher_is_killed(self):
        job = self.start("-n", 3, "sh", "-c", "echo ready; sleep 60 & wait")
        self.wait_for_lines(job, 3)
        job.kill()
        self.finish(job, -9)

    def test_launcher_is_killed_while_pes_are_connected(self):
        job = self.start("-n", 3, MISHAP, "hang", 0)
        self.assertEqual(self.wait_for_lines(job, 3), ["ready"] * 3)
        job.kill()
        self.finish(job, -9)

    def test_launcher_is_killed_with_all_its_descendants(self):
        job = self.start("-n", 2, "sh", "-c", "echo ready; sleep 60")
        self.wait_for_lines(job, 2)
        job.send_signal(signal.SIGSTOP)
        doomed, new = [], [job.pid]
        while new:
            doomed += new
            new = [int(pid) for parent in new for task in pathlib.Path(f"/proc/{parent}/task").glob("*/children")
                   for pid in task.read_text().split()]
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        self.finish(job, -9)

    def test_timeout(self):
        _, err = self.job("-n", 3, "--timeout", "0.4", "sleep", 60, code=124)
        self.assert_last_line(err, r"the job ran longer than 0.4 s \(--timeout\); ended the 3 PEs")

    def test_no_descriptors_of_the_launcher_reach_the_pes(self):
        out, _ = self.job("-n", 2, "-t", "sh", "-c", "[ $GPUSHMEM_RUN_PE = 0 ] || exit 0; ls -l /proc/$$/fd")
        fds = dict(re.findall(r"(\d+) -> (\S+)", out))
        for fd in ("0", "1", "2", "10", "255"):  # the last two are where a shell may keep its script
            fds.pop(fd, None)
        self.assertEqual(set(fds), {"64", "65"}, out)
        self.assertEqual(fds["64"], "/memfd:gpushmem-job")
        self.assertRegex(fds["65"], "^socket:")

    def test_descriptors_of_the_caller_reach_the_pes(self):
        reads, writes = os.pipe()
        os.write(writes, b"for PE 0\n")
        os.close(writes)
        out, _ = self.job("-n", 1, "sh", "-c", f"cat <&{reads}", pass_fds=(reads,))
        os.close(reads)
        self.assertIn("for PE 0", out)


class Neighbours(Case):
    """Processes that are not of the job, and PEs that leave the usual ways."""

    def test_children_from_before_exec_live_on(self):
        log = pathlib.Path(self.tmp, "log")
        script = 'exec > >(cat >"$0"); sleep 60 >/dev/null 2>&1 & echo $! >&2; exec "$@"'
        shell = subprocess.run(["bash", "-c", script, log, GPUSHMEM, "run", "-n", "2", "echo", "written"], env=self.env,
                               stderr=subprocess.PIPE, text=True, timeout=HANG_S)
        os.kill(int(shell.stderr), signal.SIGKILL)  # fails if the launcher has ended it
        deadline = time.monotonic() + HANG_S
        while log.read_text() != "written\n" * 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual((shell.returncode, log.read_text()), (0, "written\n" * 2))
        log.unlink()

    def test_launcher_as_process_1(self):
        if os.geteuid() != 0:
            self.skipTest("needs root for a process id namespace")
        done = subprocess.run(["unshare", "-pf", "--mount-proc", GPUSHMEM, "run", "-n", "2", "sh", "-c",
                               "(sleep 0.1 &); setsid sleep 60 & echo done"],
                              env=self.env, capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n" * 2, ""))

    def test_launcher_is_killed_with_grandchildren_in_sessions_of_their_own(self):
        job = self.start("-n", 2, "sh", "-c", "setsid sh -c 'echo $$; exec env -i sleep 60' & wait")
        pids = [int(pid) for pid in self.wait_for_lines(job, 2)]
        job.kill()
        self.finish(job, -9)
        deadline = time.monotonic() + HANG_S
        while any(os.path.exists(f"/proc/{pid}") for pid in pids):
            self.assertLess(time.monotonic(), deadline, "grandchildren live on")
            time.sleep(0.01)

    def test_pe_that_leaves_its_process_group(self):
        script = ("import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                  "os.setpgid(0, os.getpgid(os.getppid()))\nos.write(1, b'left\\n')\ntime.sleep(600)")
        out, _ = self.job("-n", 2, "--timeout", 3, "--grace", 0.1, sys.executable, "-c", script, code=124)
        self.assertEqual(out, "left\n" * 2)

    def test_stopped_pe_is_remarked(self):
        job = self.start("-n", 2, "sh", "-c", "[ $GPUSHMEM_RUN_PE = 0 ] || kill -STOP $$")
        line = read_line(job.stderr)
        self.assertRegex(line, r"^gpushmem run: PE 1 \(pid \d+\) was stopped by signal 19 \(.*\); kill -CONT \d+ lets it go on$")
        os.kill(int(line.split("-CONT ")[1].split()[0]), signal.SIGCONT)
        self.finish(job, 0)

    def keeper(self, job):
        """The keeper's process, as soon as it is there."""
        def is_keeper(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/comm").read_text() == "gpushmem-keeper\n"
            except OSError:
                return False  # ended in the meantime
        found = None
        while found is None and job.poll() is None:
            found = next(filter(is_keeper, marked_processes(self.mark.encode())), None)
        return found

    def test_keeper_is_killed_before_it_starts_a_pe(self):
        job = self.start("-n", 2, "sleep", 60)
        keeper = self.keeper(job)
        os.kill(keeper, signal.SIGSTOP)  # while the launcher prepares the job
        time.sleep(0.3)  # until it waits for the keeper's answer
        os.kill(keeper, signal.SIGKILL)
        _, err = self.finish(job, 1)
        self.assertRegex(err, "gpushmem-keeper, which starts and ends the PEs, was killed")

    def test_keeper_is_killed(self):
        job = self.start("-n", 2, "sh", "-c", "echo $PPID; exec sleep 60")
        keeper = {int(pid) for pid in self.wait_for_lines(job, 2)}
        self.assertEqual(len(keeper), 1)
        os.kill(keeper.pop(), signal.SIGKILL)
        _, err = self.finish(job, 1)
        self.assert_last_line(err, "the process gpushmem-keeper, .*, was killed; ended the (2 PEs|PE)")

    def test_keeper_is_stopped(self):
        ignoring = "trap '' TERM; "
        for script in ("", ignoring):
            with self.subTest(script):
                job = self.start("-n", 2, "--grace", 0.3, "sh", "-c", script + "echo $PPID; sleep 60; :")
                keeper = int(self.wait_for_lines(job, 2)[0])
                os.kill(keeper, signal.SIGSTOP)
                job.send_signal(signal.SIGTERM)
                _, err = self.finish(job, 143)
                self.assert_last_line(err, r"received signal 15 \(Terminated\); ended the 2 PEs")

    def test_keeper_is_stopped_again_and_again(self):
        job = self.start("-n", 2, "--grace", 0.1, "sh", "-c", "echo $PPID; exec sleep 60")
        keeper = int(self.wait_for_lines(job, 2)[0])
        script = "import os, sys\nwhile True: os.kill(int(sys.argv[1]), 19)"
        tyrant = subprocess.Popen([sys.executable, "-c", script, str(keeper)], stderr=subprocess.DEVNULL)
        try:
            self.wait_state([keeper], "T")
            job.send_signal(signal.SIGTERM)
            self.finish(job, 143)
        finally:
            tyrant.kill()
            tyrant.wait()

    def test_keeper_is_stopped_before_it_starts_a_pe(self):
        job = self.start("-n", 2, "--grace", 0.1, "sleep", 60)
        os.kill(self.keeper(job), signal.SIGSTOP)
        time.sleep(0.1)
        job.send_signal(signal.SIGTERM)
        _, err = self.finish(job, 143)
        self.assert_last_line(err, r"received signal 15 \(Terminated\); ended the 2 PEs")

    def test_closed_standard_descriptors(self):
        for fds in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):
            for options in ((), ("--tag-output",)):
                with self.subTest(fds=fds, options=options):
                    def close():
                        for fd in fds:
                            os.close(fd)
                    out, err = self.job("-n", 2, "--timeout", 20, *options, "sh", "-c", f"echo E >&2; {BOOT}", preexec_fn=close)
                    self.assertEqual(len(re.findall("pe . of 2.*: ok", out)), 0 if 1 in fds else 2)
                    self.assertEqual(err.count("E\n"), 0 if 2 in fds else 2, err)

    def test_long_name_in_the_environment(self):
        self.env["PMIX_" + 300 * "N"] = self.env["PMIX_SHORT"] = "outer"
        out, _ = self.job("-n", 1, "--timeout", 20, "env")
        self.assertNotIn("outer", out)

    def test_user_without_a_home(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become a user without a name")
        os.chmod(self.tmp, 0o777)
        del self.env["HOME"]
        nameless = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
        done = subprocess.run([*nameless, GPUSHMEM, "run", "-n", "2", BOOT], env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 2), done.stderr)


if __name__ == "__main__":
    main()
