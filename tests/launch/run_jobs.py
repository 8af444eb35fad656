#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where PEs run, what they hear of trouble, and whole programs: promises of `gpushmem run`."""
import os
import re
import signal
import subprocess
import sys
import unittest

from run_case import GPUSHMEM, BOOT, EVERYWHERE, MISHAP, MPIRUN, HANG_S, read_line, Case, main


class Placement(Case):
    def test_bind_core(self):
        cores = len(os.sched_getaffinity(0))
        out, _ = self.job("-n", cores, "-t", "--bind", "core", "grep", "Cpus_allowed_list", "/proc/self/status")
        lists = [line.split()[-1] for line in out.splitlines()]
        self.assertEqual(len(lists), cores)
        if cores > 1:
            self.assertGreater(len(set(lists)), 1, "all PEs on one core")

    def test_bind_core_within_the_affinity_mask(self):
        mine = max(os.sched_getaffinity(0))
        out, err = self.job("-n", 2, "--bind", "core", "--report-bindings", "grep", "Cpus_allowed_list", "/proc/self/status",
                            preexec_fn=lambda: os.sched_setaffinity(0, {mine}))
        self.assertEqual([line.split()[-1] for line in out.splitlines()], [str(mine)] * 2)
        self.assertEqual(re.sub(r"\d+\)", "P)", err), "".join(f"gpushmem run: PE {pe} (pid P) runs on processors {mine}\n" for pe in (0, 1)))

    def test_pes_have_their_shares_of_the_cores(self):
        mine = os.sched_getaffinity(0)
        show = "import os; os.write(1, (' '.join(map(str, sorted(os.sched_getaffinity(0)))) + '\\n').encode())"
        for options in ((), ("--bind", "share")):
            with self.subTest(options):
                out, err = self.job("-n", 2, *options, "--report-bindings", sys.executable, "-c", show)
                first, second = ({int(cpu) for cpu in line.split()} for line in out.splitlines())
                if "not pinned" in err: # the CPUs are the threads of a core, or there are not two cores for each
                    self.assertEqual([first, second], [mine, mine])
                else:
                    self.assertFalse(first & second)
                    self.assertEqual(first | second, mine)
        for options, why in ((("--bind", "share"), "there are more PEs than cores"),
                             ((), "there are fewer than two cores for each PE (--bind share)")):
            out, err = self.job("-n", len(mine) + 1, *options, "--report-bindings", sys.executable, "-c", show)
            self.assertEqual({out.splitlines()[i] for i in range(len(mine) + 1)}, {" ".join(map(str, sorted(mine)))})
            self.assertEqual(err.count(f" is not pinned: {why}\n"), len(mine) + 1)
        for options, why in ((("-n", 1), "all processors are its own"), (("-n", 2, "--bind", "none"), "--bind none")):
            out, err = self.job(*options, "--report-bindings", sys.executable, "-c", show)
            self.assertEqual(set(out.splitlines()), {" ".join(map(str, sorted(mine)))})
            self.assertIn(f" is not pinned: {why}\n", err)

    def test_bind_socket_and_numa(self):
        mine = os.sched_getaffinity(0)
        for unit in ("socket", "numa"):
            with self.subTest(unit):
                out, _ = self.job("-n", 1, "--bind", unit, sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))")
                bound = {int(cpu) for cpu in out.split()}
                self.assertTrue(bound and bound <= mine, out)

    def test_more_cores_than_there_are(self):
        _, err = self.job("--bind", "core", "--cores", 1000, "true", code=1)
        self.assert_last_line(err, r"--bind: a PE needs 1000 cores, and this process may use \d+")

    def test_more_pes_than_cores(self):
        n = 2 * len(os.sched_getaffinity(0)) + 1
        out, _ = self.job("-n", n, "--bind", "core", BOOT, 1, n)
        self.assertEqual(len(out.splitlines()), n)

    def test_pretended_nodes(self):
        for n, nodes, sizes in ((4, 2, {2}), (5, 2, {2, 3}), (6, 3, {2}), (3, 3, {1}), (7, 3, {2, 3})):
            with self.subTest(n=n, nodes=nodes):
                out, _ = self.job("-n", n, "--nodes", nodes, BOOT)
                found = {int(size) for size in re.findall(r"node \d+ of (\d+) .*: ok", out)}
                self.assertEqual(found, sizes)
                self.assertEqual(len(out.splitlines()), n)
                self.assertEqual(len(re.findall("node 0 of", out)), nodes)


class Trouble(Case):
    """Bad things seen by the PEs through the bootstrap."""

    def test_survivors_hear_of_a_death(self):
        out, _ = self.job("-n", 4, "--on-failure", "continue", MISHAP, "kill", 2, code=137)
        self.assertEqual(sorted(out.splitlines()), [f"pe {pe} heard of the death of PE 2" for pe in (0, 1, 3)])

    def test_fence_returns_when_a_pe_dies(self):
        out, _ = self.job("-n", 4, "--on-failure", "continue", MISHAP, "fence", 1, code=137)
        self.assertEqual(len(re.findall(r"pe \d: fence returned -12: .*PE 1 has failed", out)), 3)

    def test_fence_gives_up_when_asked_to(self):
        job = self.start("-n", 3, MISHAP, "absent", 1)
        for line in self.wait_for_lines(job, 2):
            self.assertRegex(line, r"pe [02]: fence returned -13: .* timed out after 300 ms .*: not all of the 3 PEs")
        job.send_signal(signal.SIGUSR1)
        self.finish(job, 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become a user that has no other process")
    def test_few_processes_and_threads(self):
        user = 61000 + os.getpid() % 4000
        os.chown(self.tmp, user, user)
        for limit in (3, 5, 6, 7, 8):
            command = ["setpriv", f"--reuid={user}", "--clear-groups", "prlimit", f"--nproc={limit}"]
            command += [GPUSHMEM, "run", "-n", "2", EVERYWHERE]
            result = subprocess.run(command, env=self.env | {"HOME": "/"}, capture_output=True, text=True, timeout=HANG_S)
            if limit == 3 or result.returncode != 0:  # the more there are the more depends on who is first
                self.assertIn("ulimit -u", result.stderr, limit)

    def test_few_open_files(self):
        for limit in (4, 8, 10, 13):
            result = subprocess.run(["prlimit", f"--nofile={limit}", GPUSHMEM, "run", "-n", "2", "true"], env=self.env,
                                    capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(result.returncode, 1, limit)
            self.assertRegex(result.stderr, r"Too many open files \(2 PEs need up to 148: raise the limit, ulimit -n\)\n", limit)
        for limit in range(14, 24):  # from some number on the PEs start, and then it is their memory that finds no room
            result = subprocess.run(["prlimit", f"--nofile={limit}", GPUSHMEM, "run", "-n", "3", EVERYWHERE], env=self.env,
                                    capture_output=True, text=True, timeout=HANG_S)
            self.assertTrue(result.returncode == 0 or "ulimit -n" in result.stderr, f"{limit}: {result.stderr}")

    def test_abort_from_the_news_of_a_death(self):
        _, err = self.job("-n", 3, "--on-failure", "continue", MISHAP, "revenge", 1, code=43)
        self.assert_last_line(err, r"PE [02] \(pid \d+\) aborted the job with status 43: what happened.*; ended the other PE")

    def test_abort(self):
        _, err = self.job("-n", 4, MISHAP, "abort", 1, code=42)
        self.assert_last_line(err, r"PE 1 \(pid \d+\) aborted the job with status 42: the sky is falling; ended the other 3 PEs")

    def test_pe_that_leaves_without_finalize(self):
        job = self.start("-n", 3, MISHAP, "leave", 2)
        self.assert_last_line(read_line(job.stderr), r"PE 2 \(pid \d+\) ended without finalize, for which the other 2 PEs may be waiting")
        job.send_signal(signal.SIGUSR1)
        _, err = self.finish(job, 0)
        self.assertEqual(err, "")

    def test_timeout_of_connected_pes(self):
        self.job("-n", 3, "--timeout", "0.5", MISHAP, "hang", 0, code=124)

    def test_bad_blobs(self):
        for kind, sentence in (("short", "is damaged .5 bytes"), ("length", "is damaged"), ("place", "is damaged"),
                               ("other", "is damaged"), ("none", "published nothing in round 1")):
            with self.subTest(kind):
                out, _ = self.job("-n", 2, MISHAP, "blob:" + kind, 1)
                self.assertRegex(out, f"^get returned -9: .*{sentence}")

    @unittest.skipUnless(MPIRUN, "no mpirun here (Debian package openmpi-bin)")
    def test_bad_blobs_by_pmix(self):
        for kind, sentence in (("short", "published 5 bytes, less than the header"), ("version", "data of version 77"),
                               ("round", "data of PE 1, round 9"), ("length", "but 8 arrived"),
                               ("type", "not bytes"), ("none", "did not publish its data")):
            with self.subTest(kind):
                done = subprocess.run([*MPIRUN, "-n", "2", MISHAP, "blob:" + kind, "1"], env=self.env, capture_output=True,
                                      text=True, timeout=HANG_S)
                self.assertRegex(done.stdout, f"(?m)^get returned -9: .*{sentence}")

    def test_server_that_is_advertised_but_gone(self):
        for pmix in ({"PMIX_NAMESPACE": "gone"}, {"PMIX_NAMESPACE": "gone", "PMIX_RANK": "0"},
                     {"PMIX_NAMESPACE": "gone", "PMIX_RANK": "0", "PMIX_SERVER_URI2": "gone.0;tcp4://127.0.0.1:1"}):
            done = subprocess.run([BOOT], env={**self.env, **pmix}, capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("a launcher started this process, but its PMIx server does not answer", done.stderr)

    def test_descriptors_that_a_wrapper_has_closed(self):
        wrapper = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], close_fds=%s).returncode)"
        out, _ = self.job("-n", 2, sys.executable, "-c", wrapper % False, BOOT)
        self.assertEqual(len(re.findall(": ok$", out, re.M)), 2)
        _, err = self.job("-n", 2, sys.executable, "-c", wrapper % True, BOOT, code=1)
        self.assertIn("is closed: by a process in between", err)
        self.assertIn("close_fds=False", err)

    def test_descriptors_that_are_others_now(self):
        # Nothing is written to what took the line's number, and nothing is read from what took the segment's.
        script = """
            IFS=': ' read -r segment _ line _ <<<"$GPUSHMEM_RUN_JOB"
            eval "exec $segment<&- $line<&-"
            eval "exec $segment<>'$TMPDIR/taken' $line<>'$TMPDIR/taken'"
            "$0" && exit 1
            test -s "$TMPDIR/taken" && exit 1
            rm "$TMPDIR/taken"
            """
        _, err = self.job("-n", 1, "bash", "-c", script, BOOT)
        self.assertIn("is closed: by a process in between", err)

    def test_a_pe_is_one_process_at_a_time(self):
        script = '"$0" 1 2 && "$0" 1 2'  # one after the other
        out, _ = self.job("-n", 2, "sh", "-c", script, BOOT)
        self.assertEqual(len(re.findall(": ok$", out, re.M)), 4)
        script = '"$0" hang 9 | { read ready; "$0" hang 9; pkill -g 0 -f "hang 9"; }'
        _, err = self.job("-n", 1, "sh", "-c", script, MISHAP, code=143)
        self.assertRegex(err, r"process \d+ is PE 0 already: a PE is one process")

    def test_no_launcher_is_a_job_of_one(self):
        done = subprocess.run([BOOT, "3", "1"], env=self.env, capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^pe 0 of 1 node 0 of 1 .*: ok$")

    def test_several_jobs_of_one_are_refused(self):
        torch = {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
        for told in ({"SLURM_STEP_NUM_TASKS": "4"}, {"PMI_SIZE": "2"}, {"OMPI_COMM_WORLD_SIZE": "3"},
                     {"GPUSHMEM_RUN_SIZE": "2"}, torch):
            name, size = next(iter(told.items()))
            with self.subTest(name):
                done = subprocess.run([EVERYWHERE, "1"], env={**self.env, **told}, capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, f"{name} says that a launcher started {size} processes.*GPUSHMEM_BOOTSTRAP=single")
                done = subprocess.run([EVERYWHERE, "1"], env={**self.env, **told, "GPUSHMEM_BOOTSTRAP": "single"},
                                      capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "pe 0 of 1: ok\n"))

    def test_what_says_nothing_of_other_processes_is_a_job_of_one(self):
        for told in ({"SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "7"}, {"PMI_SIZE": "1"},
                     {"PMI_SIZE": "many"}, {"OMPI_COMM_WORLD_SIZE": ""}, {"WORLD_SIZE": "8"}):
            with self.subTest(str(told)):
                done = subprocess.run([EVERYWHERE, "1"], env={**self.env, **told}, capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "pe 0 of 1: ok\n"))

    def test_pmix_is_wanted_and_there_is_none(self):
        done = subprocess.run([EVERYWHERE, "1"], env={**self.env, "GPUSHMEM_BOOTSTRAP": "pmix"}, capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("GPUSHMEM_BOOTSTRAP=pmix, but no launcher with a PMIx server", done.stderr)


class Scale(Case):
    def test_64_pes(self):
        out, _ = self.job("-n", 64, BOOT, 1, 64)
        self.assertEqual(sorted(int(pe) for pe in re.findall(r"^pe (\d+) of 64 .*: ok$", out, re.M)), list(range(64)))

    def test_64_pes_tagged_one_dies(self):
        out, err = self.job("-n", 64, "-t", "--on-failure", "continue", MISHAP, "kill", 63, code=137)
        self.assertEqual(len(re.findall(r"^\[(\d+)\] pe \1 heard of the death of PE 63$", out, re.M)), 63)


class Library(Case):
    """Whole programs with symmetric heaps. Where possible, with a /dev/shm and a directory for temporary
    files of their own that must be empty again."""

    # A build below /tmp must not be covered: then /mnt is the directory for temporary files.
    TMP = "/mnt" if os.path.realpath(GPUSHMEM).startswith("/tmp/") else "/tmp"
    EMPTY = f"/dev/shm:\n\n{TMP}:\n"
    COVER = f"mount -t tmpfs none /dev/shm && mount -t tmpfs none {TMP} || exit 99; export TMPDIR={TMP}"
    # What is left behind. A killed launcher's keeper comes after it.
    LIST = f"""
        for i in $(seq {10 * HANG_S}); do
            [ -n "$(find /dev/shm {TMP} -mindepth 1)" ] || break
            sleep 0.1
        done
        ls -A /dev/shm {TMP} >&2"""
    PRIVATE = f"""
        {COVER}
        sh -c 'echo $$ >&2; exec "$@"' sh "$@" &
        wait $!
        code=$?
        {LIST}
        exit $code"""

    def start_private(self, *arguments):
        """Returns the job and the launcher's process id, or the job and None."""
        if os.geteuid() != 0:
            return self.start(*arguments), None
        job = subprocess.Popen(["unshare", "-m", "sh", "-c", self.PRIVATE, "sh", GPUSHMEM, "run", *map(str, arguments)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        return job, int(read_line(job.stderr))

    def finish_private(self, job, code):
        """Returns stdout and stderr without the final listing, which must show nothing."""
        out, err = self.finish(job, code)
        if os.geteuid() != 0:
            return out, err
        self.assertTrue(err.endswith(self.EMPTY), f"left behind in /dev/shm or {self.TMP}:\n" + err)
        return out, err[:-len(self.EMPTY)]

    def private_job(self, *arguments, code=0):
        return self.finish_private(self.start_private(*arguments)[0], code)

    def test_from_init_to_finalize_three_times(self):
        out, err = self.private_job("-n", 4, EVERYWHERE, 3)
        self.assertEqual(sorted(out.splitlines()), [f"pe {pe} of 4: ok" for pe in range(4)])
        self.assertEqual(err, "")

    def test_more_pes_than_cores(self):
        n = 4 * len(os.sched_getaffinity(0))
        out, _ = self.private_job("-n", n, "-x", "GPUSHMEM_HEAP_SIZE=4M", EVERYWHERE, 1)
        self.assertEqual(len(out.splitlines()), n)

    def test_pe_killed_in_the_middle_of_puts(self):
        job, _ = self.start_private("-n", 4, "sh", "-c", f"[ $GPUSHMEM_RUN_PE = 2 ] && echo $$; exec {EVERYWHERE} forever")
        victim, *ready = sorted(self.wait_for_lines(job, 5))
        self.assertEqual(ready, ["ready"] * 4)
        os.kill(int(victim), signal.SIGKILL)
        out, err = self.finish_private(job, 137)
        self.assertEqual(out, "")
        self.assert_last_line(err, rf"PE 2 \(pid {victim}\) was killed by signal 9 \(Killed\); ended the other 3 PEs")

    def test_global_exit(self):
        self.assertEqual(self.private_job("-n", 3, EVERYWHERE, "exit", 0), ("last words\n", ""))
        out, err = self.private_job("-n", 3, EVERYWHERE, "exit", 5, code=5)
        self.assert_last_line(err, r"PE 2 \(pid \d+\) aborted the job with status 5: gpushmem_global_exit.*; ended the other 2 PEs")
        self.assertEqual(out, "last words\n")

    def test_launcher_killed_in_the_middle_of_puts(self):
        if os.geteuid() != 0:
            self.skipTest("needs root for a private /dev/shm")
        job, launcher = self.start_private("-n", 3, EVERYWHERE, "forever")
        self.assertEqual(self.wait_for_lines(job, 3), ["ready"] * 3)
        os.kill(launcher, signal.SIGKILL)
        out, _ = self.finish_private(job, 137)
        self.assertEqual(out, "")

    def test_sentence_of_all_pes_is_printed_once(self):
        for options in ((), ("-t",)):
            with self.subTest(options):
                _, err = self.job("-n", 16, *options, "--on-failure", "continue",
                                  "-x", "GPUSHMEM_HEAP_SIZE=8T", "-x", "GPUSHMEM_NO=1",
                                  "sh", "-c", f"{EVERYWHERE} 1 2>&1 >/dev/null | grep -v '^pe ' >&2", code=0)
                self.assertEqual(err.count("GPUSHMEM_NO:"), 16, "standard error is another one: " + err)
                _, err = self.job("-n", 16, *options, "--on-failure", "continue",
                                  "-x", "GPUSHMEM_HEAP_SIZE=8T", "-x", "GPUSHMEM_NO=1",
                                  EVERYWHERE, 1, code=1)
                for kind in ("WARN config: GPUSHMEM_NO:", "ERROR init: GPUSHMEM_HEAP_SIZE"):
                    lists = re.findall(rf"^gpushmem\[(.*)\] {kind}", err, re.M)
                    self.assertLess(len(lists), 8, err)  # 1, unless some PEs are late by much
                    pes = [pe for part in ",".join(lists).split(",") for low, high in [(part + "-" + part).split("-")[:2]]
                           for pe in range(int(low), int(high) + 1)]
                    self.assertEqual(sorted(pes), list(range(16)))

    def test_missing_pes_of_other_nodes(self):
        out, err = self.job("-n", 2, "--nodes", 2, "-x", "GPUSHMEM_TRANSPORTS=p2p", EVERYWHERE, 1, code=1)
        self.assertEqual(out, "")
        self.assertRegex(err, r"init: PE [01] on \S+ is reached by none of GPUSHMEM_TRANSPORTS=p2p")

    def test_start_of_64_pes(self):
        out, _ = self.job("-n", 64, "-x", "GPUSHMEM_HEAP_SIZE=1M", EVERYWHERE, 1)
        self.assertEqual(len(out.splitlines()), 64)


if __name__ == "__main__":
    main()
