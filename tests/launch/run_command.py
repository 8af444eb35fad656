#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the user types, and with what status it ends: promises of `gpushmem run`."""
import os
import pathlib
import re
import signal
import subprocess

from run_case import GPUSHMEM, BOOT, Case, main


class ExitStatus(Case):
    def test_all_pes_succeed(self):
        out, err = self.job("-n", 3, "true")
        self.assertEqual((out, err), ("", ""))

    def test_program_without_pmix_is_no_error(self):
        out, _ = self.job("-n", 2, "hostname")
        self.assertEqual(len(out.splitlines()), 2)

    def test_code_of_the_failing_pe(self):
        _, err = self.job("-n", 4, "sh", "-c", "[ $GPUSHMEM_RUN_PE = 2 ] && exit 9; exec sleep 60", code=9)
        self.assert_last_line(err, r"PE 2 \(pid \d+\) exited with code 9; ended the other 3 PEs")

    def test_first_failure_counts(self):
        script = "[ $GPUSHMEM_RUN_PE = 0 ] && exit 5; trap 'exit 6' TERM; sleep 60 & wait"
        self.job("-n", 3, "sh", "-c", script, code=5)

    def test_signal_of_the_failing_pe(self):
        for number, name in ((signal.SIGKILL, "Killed"), (signal.SIGSEGV, "Segmentation fault"), (signal.SIGABRT, "Aborted")):
            script = f"ulimit -c 0; [ $GPUSHMEM_RUN_PE = 1 ] && kill -{int(number)} $$; exec sleep 60"
            _, err = self.job("-n", 2, "sh", "-c", script, code=128 + number)
            self.assert_last_line(err, rf"PE 1 \(pid \d+\) was killed by signal {int(number)} \({name}.*\); ended the other PE")

    def test_single_pe(self):
        _, err = self.job("sh", "-c", "exit 3", code=3)
        self.assert_last_line(err, r"PE 0 \(pid \d+\) exited with code 3")

    def test_quiet(self):
        _, err = self.job("-q", "-n", 2, "false", code=1)
        self.assertEqual(err, "")

    def test_continue_on_failure(self):
        script = "[ $GPUSHMEM_RUN_PE = 1 ] && exit 7; sleep 0.3; echo went on"
        out, err = self.job("-n", 3, "--on-failure", "continue", "sh", "-c", script, code=7)
        self.assertEqual(out, "went on\n" * 2)
        self.assert_last_line(err, r"PE 1 \(pid \d+\) exited with code 7; the other 2 PEs ran to the end")


    def test_launcher_and_library_agree_on_failure(self):
        # Who is to be ended waits for that; who is not gives the launcher time for the mistake.
        show = "[ $GPUSHMEM_RUN_PE = 0 ] && exit 3; sleep %s; echo ${GPUSHMEM_ON_PE_FAILURE-unset}"
        for options, out in ((("--on-failure", "continue"), "notify\n"),
                             (("--on-failure", "continue", "-x", "GPUSHMEM_ON_PE_FAILURE=abort"), "abort\n"),
                             (("-x", "GPUSHMEM_ON_PE_FAILURE=notify"), "notify\n"),
                             (("-x", "GPUSHMEM_ON_PE_FAILURE=abort"), ""),
                             (("-x", "GPUSHMEM_ON_PE_FAILURE=notify", "--on-failure", "abort"), "")):
            with self.subTest(options):
                self.assertEqual(self.job("-n", 2, *options, "sh", "-c", show % (0.3 if out else 60), code=3)[0], out)


class CommandLine(Case):
    def assert_refused(self, pattern, *arguments, code=2):
        out, err = self.job(*arguments, code=code)
        self.assertEqual(out, "")
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assert_last_line(err, pattern)

    def test_bad_command_lines(self):
        self.assert_refused("no program given.*")
        self.assert_refused("no program given.*", "-n", 4)
        for number in ("0", "-1", "x", "4x", "", "99999"):
            self.assert_refused(rf"-n '{number}' is not a number from 1 to \d+", "-n", number, "true")
        self.assert_refused("unknown option '--frobnicate'; see .*", "--frobnicate", "true")
        self.assert_refused(r"unknown option '--timout'; did you mean --timeout\? See .*", "--timout", "3", "true")
        self.assert_refused(r"unknown option '--timout=3'; did you mean --timeout\? See .*", "--timout=3", "true")
        self.assert_refused("unknown option '-Z'.*", "-Z", "true")
        self.assert_refused("unknown option '-Z'.*", "-tZ", "true")
        self.assert_refused("option '-n' needs a value.*", "-n")
        self.assert_refused("option '--np' needs a value.*", "--np")
        self.assert_refused("option '--quiet=1' takes no value.*", "--quiet=1", "true")
        self.assert_refused("--timeout 'soon' is not a number.*", "--timeout", "soon", "true")
        self.assert_refused("--timeout 'nan' is not a number.*", "--timeout", "nan", "true")
        self.assert_refused(r"--bind 'sock' is not one of none\|share\|core\|numa\|socket", "--bind", "sock", "true")
        self.assert_refused("--cores 2 needs --bind core", "--cores", 2, "true")
        self.assert_refused("--tag-output and --output-filename exclude each other.*", "-t", "--output-filename", "x", "true")
        self.assert_refused("no program given after ':'", "true", ":", "-n", 2)
        self.assert_refused(r"-n '0' is not a number from 1 to \d+", "true", ":", "-n", 0, "true")
        self.assert_refused("5000 PEs are more than 4096", "-n", 2500, "true", ":", "-n", 2500, "true")
        self.assert_refused(r"-n 'x' is not a number from 1 to \d+", "-np", "x", "true")
        self.assert_refused("--wdir '/no/such' is no directory to start in: No such file or directory", "--wdir", "/no/such", "true")
        self.assert_refused("--on-failure 'cry' is not one of abort\|continue", "--on-failure", "cry", "true")
        self.assert_refused("--nodes 3 is more than the 2 PEs of -n", "-n", 2, "--nodes", 3, "true")
        self.assert_refused("-x '=1' has no variable name.*", "-x", "=1", "true")
        self.assert_refused("-x NOT_SET_AT_ALL: .*", "-x", "NOT_SET_AT_ALL", "true")

    def test_np_as_mpirun_has_it(self):
        self.assertEqual(self.job("-np", 3, "echo", "x")[0], "x\n" * 3)

    def test_options_of_other_launchers_that_mean_something_here(self):
        for options in (("--oversubscribe", "--allow-run-as-root", "-np", 3), ("-n", 3, "-ppn", 3),
                        ("--ntasks=3", "-npernode", 3), ("-np", 3, "--ppn=8", "-q"),
                        ("--ntasks", 3, "--bind-to", "none"), ("-q", "-n3", "--bind-to=core")):
            with self.subTest(options):
                self.assertEqual(self.job(*options, "echo", "-ppn")[0], "-ppn\n" * 3)
        self.assertEqual(self.job("-wd", "/", "pwd")[0], "/\n")
        self.assertEqual(self.job("--label", "echo", "x")[0], "[0] x\n")
        self.assert_refused(r"--bind 'sock' is not one of .*", "--bind-to", "sock", "true")

    def test_options_of_other_launchers_that_need_them(self):
        for options, ours in ((("--hostfile", "x"), ""), (("-hostfile", "x"), ""), (("-H", "a,b"), ""), (("--partition=x",), ""),
                              (("--map-by", "core"), "--bind core.*--cores K"), (("--map-by=core",), "--bind core.*"),
                              (("-n", 2, "--mca", "a", "b"), "-x VAR=VALUE.*"), (("-c", 4), "--bind core --cores K")):
            with self.subTest(options):
                name = re.escape(str(options[-1 if len(options) == 1 else 2 if options[0] == "-n" else 0]).split("=")[0])
                has = f", and has for it: {ours}" if ours else ""
                self.assert_refused(f"{name} is an option of mpirun or srun; gpushmem run starts the PEs of one machine{has}. "
                                    "For several machines use srun --mpi=pmix, mpirun or prterun .*", *options, "true")
        self.assertEqual(self.job("echo", "--map-by", "core")[0], "--map-by core\n")

    def test_several_programs_are_one_job(self):
        out, _ = self.job("-n", 1, BOOT, ":", "-n", 2, "sh", "-c", f"echo second $1; exec {BOOT}", "sh", "argument", ":",
                          "sh", "-c", f"exec {BOOT}")
        self.assertEqual(sorted(int(pe) for pe in re.findall(r"pe (\d) of 4 node \d of 4 .*: ok", out)), [0, 1, 2, 3])
        self.assertEqual(out.count("second argument\n"), 2)

    def test_colon_at_the_end_is_an_argument(self):
        self.assertEqual(self.job("echo", ":")[0], ":\n")

    def test_failure_in_the_second_program(self):
        script = "[ $GPUSHMEM_RUN_PE = 3 ] && exit 5; exec sleep 60"
        _, err = self.job("-n", 2, "sleep", 60, ":", "-n", 2, "sh", "-c", script, code=5)
        self.assert_last_line(err, r"PE 3 \(pid \d+\) exited with code 5; ended the other 3 PEs")

    def test_missing_second_program(self):
        self.assert_refused("there is no program 'no-such-program' in PATH", "true", ":", "no-such-program", code=127)

    def test_directory(self):
        script = pathlib.Path(self.tmp, "here")
        script.write_text("#!/bin/sh\npwd -P\n")
        script.chmod(0o755)
        out, _ = self.job("-n", 1, "--wdir", self.tmp, "./here", ":", "--wdir", "/", "pwd", ":", "pwd")
        self.assertEqual(sorted(out.split()), sorted(os.path.realpath(d) for d in (self.tmp, "/", ".")))
        self.assert_refused("cannot start './here': No such file or directory", "--wdir", "/", "./here", code=127)
        script.unlink()

    def test_wrappers_know_their_pe(self):
        script = "echo $GPUSHMEM_RUN_PE/$GPUSHMEM_RUN_SIZE $GPUSHMEM_RUN_LOCAL_PE/$GPUSHMEM_RUN_LOCAL_SIZE"
        out, _ = self.job("-n", 5, "--nodes", 2, "sh", "-c", script)
        self.assertEqual(sorted(out.splitlines()), ["0/5 0/3", "1/5 1/3", "2/5 2/3", "3/5 0/2", "4/5 1/2"])

    def test_unknown_command(self):
        done = subprocess.run([GPUSHMEM, "frobnicate"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown command 'frobnicate'; `gpushmem help`", done.stderr)
        for typed, meant in (("docter", "doctor"), ("rum", "run"), ("STAT", "stat")):
            done = subprocess.run([GPUSHMEM, typed], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"unknown command '{typed}'; did you mean {meant}? ", done.stderr)

    def test_help_of_a_command(self):
        for name in ("run", "doctor"):
            texts = [subprocess.run([GPUSHMEM] + words, capture_output=True, text=True).stdout
                     for words in (["help", name], [name, "--help"])]
            self.assertIn(f"usage: gpushmem {name}", texts[0])
            self.assertEqual(*texts)
        done = subprocess.run([GPUSHMEM, "help", "rum"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("did you mean run?", done.stderr)

    def test_what_is_repeated_is_printable(self):
        escaped = r"\\x1b\[31mx\\x0a\\x9b"
        typed = b"\x1b[31mx\n\x9b"
        self.assert_refused(f"unknown option '--{escaped}'; .*", os.fsdecode(b"--" + typed), "true")
        self.assert_refused(r"unknown option '-\\x1b'; .*", "-\033", "true")
        self.assert_refused(f"-n '{escaped}' is not a number .*", "-n", os.fsdecode(typed), "true")
        self.assert_refused(f"--bind '{escaped}' is not one of .*", "--bind", os.fsdecode(typed), "true")
        self.assert_refused(f"there is no program '{escaped}' in PATH", os.fsdecode(typed), code=127)
        done = subprocess.run([GPUSHMEM, typed], capture_output=True)
        self.assertRegex(done.stderr.decode(), f"^gpushmem: unknown command '{escaped}'; .*\n$")

    def test_help(self):
        out, _ = self.job("--help")
        for option in ("-n", "--tag-output", "-x", "--timeout", "--nodes", "--bind", "--on-failure", "--grace", "--quiet",
                       "--wdir", "--output-filename", "--cores", "--report-bindings", "--pty", "-np"):
            self.assertIn(option, out)

    def test_options_of_the_program_are_its_own(self):
        out, _ = self.job("echo", "-n", "5", "--help")
        self.assertEqual(out, "5 --help")

    def test_missing_program(self):
        self.assert_refused("there is no program 'no-such-program' in PATH", "-n", 2, "no-such-program", code=127)
        self.assert_refused("cannot start './no-such-program': No such file or directory", "./no-such-program", code=127)

    def test_program_that_cannot_be_executed(self):
        self.assert_refused("cannot start '/etc/passwd': Permission denied", "/etc/passwd", code=126)
        self.assert_refused("cannot start '/tmp': Is a directory", "/tmp", code=126)

    def test_script_without_its_interpreter(self):
        script = pathlib.Path(self.tmp, "script")
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.assert_refused(".*interpreter or loader that it names is missing.*", "-n", 2, script, code=126)
        script.unlink()

    def test_variables(self):
        out, _ = self.job("-n", 2, "-x", "A=1", "-x", "B=x=y", "-x", "LAUNCH_TEST_MARK", "sh", "-c", "echo $A $B")
        self.assertEqual(out, "1 x=y\n" * 2)

    def test_directory_that_cannot_be_written_gives_way_to_tmp(self):
        for directory in ["/no/such/directory", "/proc"]:
            self.env["TMPDIR"] = directory
            out, _ = self.job("-n", 2, BOOT, 1, 2)
            self.assertEqual(len(re.findall("pe . of 2 .* ok", out)), 2)

    def test_inside_another_job(self):
        out, _ = self.job("-n", 1, GPUSHMEM, "run", "-n", 2, BOOT, 1, 2)
        self.assertEqual(len(re.findall("pe . of 2 .* ok", out)), 2)


if __name__ == "__main__":
    main()
