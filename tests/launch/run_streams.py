#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Output and input of the PEs: promises of `gpushmem run`."""
import fcntl
import os
import pathlib
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
import time

from run_case import GPUSHMEM, HANG_S, marked_processes, Case, main


class Output(Case):
    def test_whole_lines_with_the_pe(self):
        script = "for i in 1 2 3; do printf 'a '; sleep 0.02; printf \"b $i\\n\"; done; echo err >&2; printf 'no newline'"
        out, err = self.job("-n", 3, "--tag-output", "sh", "-c", script)
        for pe in range(3):
            mine = [line for line in out.splitlines() if line.startswith(f"[{pe}] ")]
            self.assertEqual(mine, [f"[{pe}] a b {i}" for i in (1, 2, 3)] + [f"[{pe}] no newline"])
        self.assertEqual(len(out.splitlines()), 12)
        self.assertEqual(sorted(err.splitlines()), [f"[{pe}] err" for pe in range(3)])

    def test_much_output(self):
        out, _ = self.job("-n", 4, "-t", "sh", "-c", "seq -f 'line %g of a long text' 20000")
        lines = out.splitlines()
        self.assertEqual(len(lines), 80000)
        for pe in range(4):
            mine = [line for line in lines if line.startswith(f"[{pe}] ")]
            self.assertEqual(mine, [f"[{pe}] line {i} of a long text" for i in range(1, 20001)])

    def test_long_lines_of_both_streams_in_one_pipe(self):
        script = """
import os, sys
for i in range(100):
    for fd in 1, 2:
        os.write(fd, b"%d" % fd * 6000 + b"\\n")"""
        out, _ = self.job("-n", 3, "-t", sys.executable, "-c", script, stderr=subprocess.STDOUT)
        lines = out.splitlines()
        self.assertEqual(len(lines), 600)
        self.assertEqual([line[:20] for line in lines if not re.fullmatch(r"\[[012]\] (1{6000}|2{6000})", line)], [])

    def test_message_of_the_launcher_comes_between_lines(self):
        script = """
            lines() { seq -f '%05000g' 90 >&2; }
            lines
            [ $GPUSHMEM_RUN_PE = 1 ] && sleep 0.3 && touch $TMPDIR/full && exit 7
            while [ ! -e $TMPDIR/full ]; do sleep 0.02; done
            while [ -e $TMPDIR/full ]; do sleep 0.02; done
            lines"""
        job = self.start("-n", 2, "-t", "--on-failure", "continue", "sh", "-c", script, stderr=subprocess.STDOUT)
        full = pathlib.Path(self.tmp, "full")
        while not full.exists():
            time.sleep(0.02)
        time.sleep(0.2)  # the pipe is full, with half a line at its end, and the launcher has something to say
        full.unlink()
        out, _ = self.finish(job, 7)
        lines = out.splitlines()
        self.assertEqual(len([line for line in lines if re.fullmatch(r"\[[01]\] \d{5000}", line)]), 270)
        self.assertEqual(len([line for line in lines if line.startswith("gpushmem run: PE 1 ")]), 2)

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            _, err = self.job("-n", 2, "-t", "echo", "lost", stdout=full, code=1)
            self.assert_last_line(err, "some output of the PEs is lost, it could not be written: No space left on device")
            done = subprocess.run([GPUSHMEM, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "gpushmem: cannot write the output: No space left on device\n"))

    def test_limit_of_file_sizes(self):
        limit, name = 64 << 20, os.path.join(self.tmp, "out")
        with open(name, "ab") as out:
            out.truncate(limit - 4)  # takes no room
            job = self.start("-n", 2, "-t", "echo", "hello", stdout=out,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            _, err = job.communicate(timeout=HANG_S)
        os.remove(name)
        self.assertEqual(job.returncode, 1)
        self.assert_last_line(err, "some output of the PEs is lost, it could not be written: File too large")

    def test_no_room_for_the_data_of_the_job(self):
        job = self.start("-n", 2, "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        _, err = job.communicate(timeout=HANG_S)
        self.assertEqual(job.returncode, 1)
        self.assertRegex(err, r"cannot make the job's segment: .*: raise it, ulimit -f\)")

    def test_small_stack(self):
        out, _ = self.job("-n", 2, "-t", "echo", "hello", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (64 << 10,) * 2))
        self.assertEqual(sorted(out.splitlines()), ["[0] hello", "[1] hello"])

    def test_file_of_each_pe(self):
        name = os.path.join(self.tmp, "out")
        for _ in range(2):  # the second job begins anew
            out, _ = self.job("-n", 3, "--output-filename", name, "sh", "-c", "echo out $GPUSHMEM_RUN_PE; echo err >&2; echo end")
            self.assertEqual(out, "")
        for pe in range(3):
            self.assertEqual(pathlib.Path(f"{name}.{pe}").read_text(), f"out {pe}\nerr\nend\n")
            os.remove(f"{name}.{pe}")
        _, err = self.job("-n", 2, "--output-filename", "/no/such/file", "true", code=1)
        self.assert_last_line(err, r"cannot write /no/such/file.0 \(--output-filename\): No such file or directory")

    def test_slow_reader(self):
        job = self.start("-n", 2, "-t", "sh", "-c", "seq 200000", stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        out, _ = job.communicate(timeout=HANG_S)
        self.assertEqual(len(out.splitlines()), 400000)

    def test_nobody_reads_what_the_library_says(self):
        flood = '''if True:
            import os, socket, struct
            line = socket.socket(fileno=int(os.environ["GPUSHMEM_RUN_JOB"].split()[1].split(":")[0]))
            for i in range(10000000):
                try:
                    line.send(struct.pack("iiii", 0, 0, 0, 0) + b"WARN: %d " % i + 1000 * b"x")
                except OSError:
                    pass'''
        for options in ((), ("-t",)):
            with self.subTest(options):
                job = self.start("-n", 2, *options, "--grace", 0.2, sys.executable, "-c", flood)
                while struct.unpack("i", fcntl.ioctl(job.stderr, termios.FIONREAD, b"1234"))[0] < 40000:
                    time.sleep(0.02)
                time.sleep(0.5)
                status = pathlib.Path(f"/proc/{job.pid}/status").read_text()
                self.assertLess(int(re.search(r"VmRSS:\s+(\d+)", status)[1]), 32 * 1024, "KiB of lines that nobody reads")
                job.send_signal(signal.SIGTERM)
                deadline = time.monotonic() + HANG_S
                while marked_processes(self.mark.encode()) != [job.pid]:
                    self.assertLess(time.monotonic(), deadline, "PEs live on")
                    time.sleep(0.02)
                job.send_signal(signal.SIGTERM)  # it waits for the reader alone
                self.assertEqual(job.wait(HANG_S), -signal.SIGTERM)
                for pipe in (job.stdout, job.stderr):
                    pipe.close()

    def test_reader_that_goes_away(self):
        job = self.start("-n", 2, "-t", "sh", "-c", "exec yes")
        self.wait_for_lines(job, 3)
        job.stdout.close()
        job.wait(timeout=HANG_S)
        job.stderr.close()
        self.assertEqual(job.returncode, 128 + signal.SIGPIPE)

    def test_output_of_a_pe_that_is_killed(self):
        out, _ = self.job("-n", 2, "-t", "sh", "-c", "echo last words; [ $GPUSHMEM_RUN_PE = 1 ] && kill -9 $$; sleep 60", code=137)
        self.assertIn("[1] last words\n", out)

    def test_untagged_output_is_untouched(self):
        out, _ = self.job("printf", "a\\tb")
        self.assertEqual(out, "a\tb")


class Input(Case):
    def test_pipe_goes_to_pe_0(self):
        job = self.start("-n", 3, "-t", "cat", stdin=subprocess.PIPE)
        out, _ = job.communicate("one\ntwo\n", timeout=HANG_S)
        self.assertEqual(out, "[0] one\n[0] two\n")

    def test_terminal_goes_to_pe_0(self):
        ours, theirs = pty.openpty()
        job = self.start("-n", 2, "-t", "cat", stdin=theirs, start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        os.write(ours, b"typed\n")
        self.assertEqual(self.wait_for_lines(job, 1), ["[0] typed"])
        os.write(ours, b"\x04")  # end of file
        self.finish(job, 0)
        os.close(ours)

    def test_pseudo_terminal_of_pe_0(self):
        script = """
            if [ $GPUSHMEM_RUN_PE = 1 ]; then test -t 1 || echo no terminal; exit; fi
            stty size; tty </dev/tty; read line; echo "read $line"; cat; exit 3"""
        job = self.start("-n", 2, "--pty", "--on-failure", "continue", "sh", "-c", script, stdin=subprocess.PIPE)
        out, _ = job.communicate("typed\n", timeout=HANG_S)
        self.assertEqual(job.returncode, 3)
        lines = out.replace("\r", "").splitlines()
        self.assertIn("0 0", lines)
        self.assertIn("no terminal", lines)
        self.assertIn("read typed", lines)
        self.assertIn("/dev/tty", lines)

    def test_pseudo_terminal_takes_over_a_terminal(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        before = termios.tcgetattr(theirs)
        job = self.start("-n", 2, "--pty", "sh", "-c", "[ $GPUSHMEM_RUN_PE = 0 ] && stty size; echo ready; exec sleep 60", stdin=theirs, start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        lines = [line.rstrip("\r") for line in self.wait_for_lines(job, 3)]
        self.assertEqual(sorted(lines), ["33 77", "ready", "ready"])
        self.assertFalse(termios.tcgetattr(theirs)[3] & termios.ICANON)
        os.write(ours, b"\x03")
        _, err = self.finish(job, 130)
        self.assert_last_line(err, r"PE 0 \(pid \d+\) was killed by signal 2 \(Interrupt\); ended the other PE")
        self.assertEqual(termios.tcgetattr(theirs), before)
        os.close(theirs)
        os.close(ours)

    def test_pseudo_terminal_ends_with_its_pe(self):
        ours, theirs = pty.openpty()
        before = termios.tcgetattr(theirs)
        job = self.start("-n", 2, "--pty", "sh", "-c", "[ $GPUSHMEM_RUN_PE = 0 ] && exit; echo ready; exec sleep 60", stdin=theirs,
                         start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.wait_for_lines(job, 1)
        deadline = time.monotonic() + HANG_S
        while termios.tcgetattr(theirs) != before:
            self.assertLess(time.monotonic(), deadline, "the terminal is not set back")
            time.sleep(0.01)
        os.write(ours, b"\x03")  # is the launcher's again
        self.finish(job, 130)
        os.close(theirs)
        os.close(ours)

    def test_terminal_that_stops_background_writers(self):
        ours, theirs = pty.openpty()
        settings = termios.tcgetattr(theirs)
        settings[3] |= termios.TOSTOP
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        job = self.start("-n", 2, "--timeout", 20, "echo", "written", stdin=theirs, stdout=theirs, start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.finish(job, 0)
        seen = b""
        while len(seen) < 2 * len(b"written\r\n"):  # the kernel passes it on in its own time
            seen += os.read(ours, 4096)
        self.assertEqual(seen, b"written\r\n" * 2)
        os.close(theirs)
        os.close(ours)

    def test_interrupt_from_the_terminal(self):
        ours, theirs = pty.openpty()
        job = self.start("-n", 2, "sh", "-c", "echo ready; exec sleep 60", stdin=theirs, start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.wait_for_lines(job, 2)
        os.write(ours, b"\x03")
        self.finish(job, 130)
        os.close(ours)


if __name__ == "__main__":
    main()
