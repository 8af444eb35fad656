#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that nobody launched: what a start by unique id promises, one test per promise.

Run by CTest, one class per CTest test; by hand: PEER=build/dev/bin/uniqueid_peer uniqueid.py [Class[.test]].
"""
import glob
import hashlib
import hmac
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

PEER = os.environ.get("PEER", "uniqueid_peer")
BOOT = os.environ.get("BOOT", "launch_boot")
HANG_S = 60  # only against hangs, never a promise
GREETING, HELLO, CONFIRMATION = 32, 92, 32  # bytes


def changed_id(id_bytes, offset, data):
    """With a checksum that is right: of the whole with zero in its place."""
    changed = bytearray(id_bytes)
    changed[offset:offset + len(data)] = data
    changed[112:116] = bytes(4)
    changed[112:116] = hashlib.sha256(bytes(changed)).digest()[:4]
    return bytes(changed)


class Case(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.mkdtemp(prefix="uniqueid.", dir="/tmp")
        self.file = os.path.join(self.tmp, "id")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("PMIX_", "GPUSHMEM_RUN"))}
        self.env.update(GPUSHMEM_BOOTSTRAP_INTERFACE="lo", GPUSHMEM_HEAP_SIZE="1M", GPUSHMEM_HEAP_KIND="host",
                        GPUSHMEM_TRANSPORTS="p2p", TMPDIR=self.tmp)
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.wait()
            for pipe in (job.stdin, job.stdout, job.stderr):
                pipe.close()
        shutil.rmtree(self.tmp, ignore_errors=True)

    def peer(self, rank, n, *command, file=None, **settings):
        job = subprocess.Popen([PEER, file or self.file, str(rank), str(n), *map(str, command)], text=True,
                               env={**self.env, **settings}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.jobs.append(job)
        return job

    def peers(self, n, *command, **settings):
        return [self.peer(rank, n, *command, **settings) for rank in range(n)]

    def finish(self, jobs, code=0):
        """Everything they printed."""
        outputs = []
        for job in jobs:
            out, err = job.communicate(timeout=HANG_S)
            self.assertEqual(job.returncode, code, out + err)
            outputs.append(out + err)
        return outputs

    def all_say(self, jobs, *words):
        for output in self.finish(jobs, 3):
            for word in words:
                self.assertIn(word, output)

    def id(self):
        """The id, once it is there."""
        deadline = time.monotonic() + HANG_S
        while not os.path.exists(self.file + ".0") and time.monotonic() < deadline:
            time.sleep(0.005)
        with open(self.file + ".0", "rb") as file:
            return file.read()

    def where(self):
        """Address of the meeting: the first in the id."""
        version, port, raw = struct.unpack_from("=BxH16s", self.id(), 32)
        if version == 6:
            return socket.inet_ntop(socket.AF_INET6, raw), port
        return socket.inet_ntop(socket.AF_INET, raw[:4]), port

    def write_id(self, data):
        with open(self.file + ".0", "wb") as file:
            file.write(data)


class Start(Case):
    def check(self, n, *command, **settings):
        outputs = self.finish(self.peers(n, *command, **settings))
        for rank, output in enumerate(outputs):
            self.assertIn(f"pe {rank} of {n}, {rank} of {n} on its node: ok", output)
        return outputs

    def test_one_pe(self):
        self.check(1, "ring")

    def test_two_pes_and_nothing_else_to_read(self):
        for output in self.check(2, "ring"):
            self.assertEqual(output.count("\n"), 1, output)

    def test_five_pes(self):
        self.check(5, "ring")

    def test_32_pes_are_a_tree_of_three_levels(self):
        self.check(32, "ring")

    def test_again_and_again_with_a_new_id(self):
        self.check(3, "ring", 10)

    def test_in_another_thread_than_main(self):
        self.check(2, "thread")

    def test_by_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        self.check(3, "ring", GPUSHMEM_BOOTSTRAP_INTERFACE="::1")
        self.assertEqual(self.where()[0], "::1")

    def test_interface_by_address(self):
        self.check(2, "ring", GPUSHMEM_BOOTSTRAP_INTERFACE="127.0.0.1")
        self.assertEqual(self.where()[0], "127.0.0.1")

    def test_launchers_environment_is_ignored(self):
        self.check(2, "ring", PMIX_NAMESPACE="nobody", PMIX_RANK="7", PMIX_SERVER_URI2="nobody.0;tcp4://127.0.0.1:1")

    def test_the_process_that_makes_the_id_is_no_pe(self):
        host = self.peer(0, 0, "host")
        self.id()
        self.check(2, "ring")
        host.stdin.close()
        self.assertEqual(host.wait(HANG_S), 0)

    def test_two_jobs_at_once(self):
        first = self.peers(3, "ring", 3, file=self.file + "a")
        second = self.peers(3, "ring", 3, file=self.file + "b")
        self.finish(first + second)

    def test_nodes_are_told_apart_by_name(self):
        jobs = [self.peer(rank, 4, "ring", GPUSHMEM_TEST_BOOTSTRAP_NODE=str(rank // 2)) for rank in range(4)]
        for output in self.finish(jobs, 3):  # no transport between them
            self.assertIn("add ofi, or verbs where there are RDMA devices", output)

    def test_with_closed_standard_streams(self):
        """What the program prints, or reads, is nothing of the library's."""
        env = {**self.env, "PATH": os.environ["PATH"]}
        command = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', PEER, self.file]
        jobs = [subprocess.Popen([*command, str(rank), "2", "print"], env=env, text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
        self.jobs += jobs
        self.finish(jobs)

    def test_no_file_is_left(self):
        """Nor a descriptor or a thread, which the peers look for themselves."""
        self.check(2, "ring", 3)
        self.assertEqual([name for name in os.listdir(self.tmp) if not name.startswith("id.")], [])


class Scale(Case):
    def test_exchange_through_the_tree(self):
        """Bytes of each PE at each PE, of sizes that differ, through a tree of three levels."""
        n = int(os.environ.get("UNIQUEID_SCALE", 80))
        self.peer(0, 0, "host")
        self.id()
        jobs = []
        for rank in range(n):
            env = {**self.env, "GPUSHMEM_TEST_ID": self.file + ".0", "GPUSHMEM_TEST_RANK": str(rank)}
            env["GPUSHMEM_TEST_SIZE"] = str(n)
            jobs.append(subprocess.Popen([BOOT, "1"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, env=env))
        self.jobs += jobs
        for rank, output in enumerate(self.finish(jobs)):
            self.assertIn(f"pe {rank} of {n} node {rank} of {n} job uid-", output)


class Mistakes(Case):
    """Each one sentence at all PEs, and no hang."""

    def host(self):
        """Where the PEs meet: one that a busy machine starts late is told there what PE 0 has ended with."""
        self.peer(0, 0, "host")
        self.id()

    def test_a_pe_does_not_come(self):
        jobs = [self.peer(rank, 5, "ring", GPUSHMEM_BOOTSTRAP_TIMEOUT_MS="700") for rank in (0, 2, 4)]
        self.all_say(jobs, "PEs 1 and 3 of 5 did not come within 0.7 s", "GPUSHMEM_BOOTSTRAP_TIMEOUT_MS")

    def test_one_that_comes_too_late_is_told_the_same(self):
        jobs = [self.peer(rank, 3, "ring", GPUSHMEM_BOOTSTRAP_TIMEOUT_MS="500") for rank in (1, 2)]
        self.peer(0, 0, "host", GPUSHMEM_BOOTSTRAP_TIMEOUT_MS="500")
        self.all_say(jobs, "PE 0 of 3 did not come within 0.5 s")
        self.all_say([self.peer(0, 3, "ring")], "PE 0 of 3 did not come within 0.5 s")

    def test_wrong_number_of_pes(self):
        self.host()
        jobs = [self.peer(0, 3, "ring"), self.peer(2, 4, "ring")]
        time.sleep(2.2)  # longer than those that have come wait for others
        jobs.append(self.peer(1, 3, "ring"))
        for output in self.finish(jobs, 3):
            self.assertRegex(output, r"PE \d says that the job has \d PEs, PE \d says \d: all pass the same n_pes")

    def test_impossible_number_of_pes(self):
        for n in (0, -3, 2000000000):
            self.all_say([self.peer(0, n, "ring")], f"the job has {n} PEs: n_pes is from 1 to")
            os.remove(self.file + ".0")

    def test_rank_out_of_range(self):
        for wrong in (3, -1):
            self.host()
            self.all_say([self.peer(0, 3, "ring"), self.peer(1, 3, "ring"), self.peer(wrong, 3, "ring")],
                         f"says that it is PE {wrong} of 3: ranks go from 0 to 2")
            os.remove(self.file + ".0")

    def test_a_rank_twice(self):
        self.host()
        self.all_say([self.peer(0, 3, "ring"), self.peer(1, 3, "ring"), self.peer(1, 3, "ring")],
                     "two processes say that they are PE 1", "each needs a rank of its own")

    def test_used_id(self):
        self.finish(self.peers(2, "ring"))
        self.all_say(self.peers(2, "ring"), "nobody listens at 127.0.0.1:", "each is good for one start")

    def test_id_of_another_job(self):
        """One that is over, whose port another one has."""
        self.peer(0, 0, "host")
        self.write_id(changed_id(self.id(), 8, b"otherjob"))
        self.all_say(self.peers(2, "ring"), "another job listens")

    def test_not_an_id(self):
        self.write_id(bytes(128))
        self.all_say(self.peers(2, "ring"), "the unique id is all zero")
        self.write_id(random.Random(1).randbytes(128))
        self.all_say(self.peers(2, "ring"), "are no unique id")

    def test_damaged_id_and_another_version(self):
        self.peer(0, 0, "host")
        good = self.id()
        self.write_id(good[:40] + bytes([good[40] ^ 4]) + good[41:])
        self.all_say(self.peers(2, "ring"), "the unique id is damaged")
        self.write_id(good[:4] + struct.pack("=H", 9) + good[6:])
        self.all_say(self.peers(2, "ring"), "the unique id has version 9, this library reads version 1")

    def test_interface_that_is_not_there(self):
        self.all_say([self.peer(0, 2, "ring", GPUSHMEM_BOOTSTRAP_INTERFACE="nosuch0")],
                     "GPUSHMEM_BOOTSTRAP_INTERFACE=nosuch0: 'nosuch0' is neither an interface")

    def test_interface_of_a_name_that_is_too_long(self):
        self.all_say([self.peer(0, 2, "ring", GPUSHMEM_BOOTSTRAP_INTERFACE="x" * 3000)], "is neither an interface")

    def test_a_pe_dies_before_all_have_come(self):
        jobs = [self.peer(0, 3, "ring"), self.peer(1, 3, "ring")]
        sockets = 0
        while sockets < 2:  # it has been greeted, and listens itself
            time.sleep(0.01)
            links = glob.glob(f"/proc/{jobs[1].pid}/fd/*")
            sockets = sum(os.readlink(link).startswith("socket:") for link in links if os.path.islink(link))
        time.sleep(0.3)
        jobs[1].kill()
        self.all_say(jobs[:1], "PE 1 ended, or gave up, before all of the 3 PEs had come")

    def test_the_process_that_made_the_id_ends(self):
        host = self.peer(0, 0, "host")
        self.id()
        jobs = [self.peer(0, 3, "ring"), self.peer(1, 3, "ring")]
        time.sleep(0.3)
        host.kill()
        for output in self.finish(jobs, 3):
            self.assertRegex(output, "the process that made the unique id ended before all PEs had come|nobody listens at")


    def test_more_pes_than_descriptors(self):
        """One process has too few: a sentence at those that it could take."""
        host = self.peer(0, 0, "host")
        self.id()
        resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (32, 32))
        jobs = self.peers(40, "ring", GPUSHMEM_BOOTSTRAP_TIMEOUT_MS="5000")
        outputs = self.finish(jobs, 3)
        told = [output for output in outputs if "raise that (ulimit -n)" in output]
        self.assertGreater(len(told), 10, outputs)

    def test_a_pe_that_has_no_descriptors(self):
        # LeakSanitizer wants a descriptor, too.
        jobs = [self.peer(0, 1, "starve", ASAN_OPTIONS="detect_leaks=0")]
        self.all_say(jobs, "Too many open files", "ulimit -n")

    def test_a_stopped_pe_is_waited_for(self):
        jobs = self.peers(3, "ring")
        jobs[1].send_signal(signal.SIGSTOP)
        time.sleep(1)
        jobs[1].send_signal(signal.SIGCONT)
        for output in self.finish(jobs):
            self.assertIn("ok", output)

    def test_the_process_that_made_the_id_is_stopped(self):
        host = self.peer(0, 0, "host")
        self.id()
        host.send_signal(signal.SIGSTOP)
        self.all_say([self.peer(1, 2, "ring", GPUSHMEM_BOOTSTRAP_TIMEOUT_MS="700")],
                     "the process that made the unique id should be, somebody listens and does not answer: is that process stopped")

    def test_an_init_that_fails_leaves_the_process_alone(self):
        """Where it fails before, and after, the PEs have met."""
        self.all_say([self.peer(0, 2, "survive", GPUSHMEM_BOOTSTRAP_TIMEOUT_MS="300")], "survived")
        os.remove(self.file + ".0")
        jobs = [self.peer(0, 2, "survive"), self.peer(1, 2, "survive", GPUSHMEM_HEAP_SIZE="2M")]
        self.all_say(jobs, "survived")


class Strangers(Case):
    """Whoever does not know the secret gets nothing, and holds up nobody."""

    def setUp(self):
        super().setUp()
        self.env["GPUSHMEM_BOOTSTRAP_INTERFACE"] = "127.0.0.1"  # alone: nobody finds another way
        self.host = self.peer(0, 0, "host")
        self.address = self.where()
        self.sockets = []

    def tearDown(self):
        for stranger in self.sockets:
            stranger.close()
        super().tearDown()

    def connect(self):
        stranger = socket.create_connection(self.address, HANG_S)
        self.sockets.append(stranger)
        return stranger

    def closed(self, stranger):
        """Until the other side closes: what came before."""
        data = b""
        try:
            while more := stranger.recv(4096):
                data += more
        except ConnectionResetError:
            pass
        return data

    def start(self):
        for output in self.finish(self.peers(2, "ring")):
            self.assertIn("ok", output)

    def test_silent_ones(self):
        for _ in range(50):
            self.connect()
        self.start()

    def test_more_silent_ones_than_are_kept(self):
        for _ in range(600):
            self.connect()
        self.start()

    def test_more_silent_ones_than_there_are_descriptors(self):
        """Those that said nothing make room for those that know the secret."""
        resource.prlimit(self.host.pid, resource.RLIMIT_NOFILE, (32, 32))
        for _ in range(100):
            try:
                self.connect()
            except ConnectionError:  # of those, the process could not take one more
                pass
        self.start()

    def test_garbage(self):
        noise = random.Random(2)
        for size in (1, 20, 92, 200, 100000):
            try:
                self.connect().sendall(noise.randbytes(size))
            except ConnectionError:
                pass
        self.assertEqual(len(self.closed(self.sockets[3])), GREETING)
        self.start()

    def test_half_messages(self):
        for size in (1, 8, 91):
            self.connect().sendall(b"HLLO"[:size].ljust(size, b"\0"))
        gone = self.connect()
        gone.sendall(b"HLLO")
        gone.close()
        self.start()

    def test_wrong_secret_gets_no_answer(self):
        stranger = self.connect()
        greeting = stranger.recv(GREETING, socket.MSG_WAITALL)
        self.assertNotIn(self.id()[16:32], greeting)
        stranger.sendall(struct.pack("=II16siiii20s32s", 0x4f4c4c48, 1, bytes(16), 1, 0, 2, 0, bytes(20), bytes(32)))
        self.assertEqual(self.closed(stranger), b"")
        self.start()

    def test_what_was_recorded_is_of_no_use(self):
        """A hello that was good once, on another connection."""
        heard = []
        proxy = socket.create_server(("127.0.0.1", 0))
        good = self.id()
        self.write_id(changed_id(good, 34, struct.pack("=H", proxy.getsockname()[1])))
        job = self.peer(0, 1, "ring")
        inside, _ = proxy.accept()
        self.sockets += [inside, proxy]
        outside = self.connect()
        inside.sendall(outside.recv(GREETING, socket.MSG_WAITALL))
        heard.append(inside.recv(HELLO, socket.MSG_WAITALL))
        inside.close()
        outside.close()
        proxy.close()
        job.kill()
        again = self.connect()
        again.recv(GREETING, socket.MSG_WAITALL)
        again.sendall(heard[0])
        self.assertEqual(self.closed(again), b"")
        self.write_id(good)
        self.start()

    def hello(self, greeting, purpose, pe, n):
        """As one who has the id would say it."""
        said = struct.pack("=II16siiii20s", 0x4f4c4c48, 1, bytes(16), purpose, pe, n, 0, bytes(20))
        return said + hmac.digest(self.id()[16:32], b"caller\0\0" + greeting + said, "sha256")

    def ports_of(self, pid):
        """Where a process listens."""
        sockets = set()
        for link in glob.glob(f"/proc/{pid}/fd/*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:
                pass
        with open("/proc/net/tcp") as table:
            rows = [row.split() for row in table.readlines()[1:]]
        return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]

    def test_the_id_opens_the_meeting_and_nothing_afterwards(self):
        stranger = self.connect()
        stranger.sendall(self.hello(stranger.recv(GREETING, socket.MSG_WAITALL), 1, 7, 8))
        self.assertEqual(len(stranger.recv(CONFIRMATION, socket.MSG_WAITALL)), CONFIRMATION)
        self.host.kill()
        os.remove(self.file + ".0")
        jobs = self.peers(2, "stay")
        for job in jobs:
            self.assertIn("here", job.stdout.readline())
        ports = self.ports_of(jobs[0].pid) + self.ports_of(jobs[1].pid)
        self.assertGreaterEqual(len(ports), 2)
        for port in ports:
            self.address = ("127.0.0.1", port)
            stranger = self.connect()
            stranger.sendall(self.hello(stranger.recv(GREETING, socket.MSG_WAITALL), 3, 1, 2))
            self.assertEqual(self.closed(stranger), b"")

    def test_who_listens_without_the_secret_is_found_out(self):
        """A process that took the port, and answers nonsense."""
        liar = socket.create_server(("127.0.0.1", 0))
        self.sockets.append(liar)
        greeting = self.connect().recv(GREETING, socket.MSG_WAITALL)
        self.write_id(changed_id(self.id(), 34, struct.pack("=H", liar.getsockname()[1])))
        job = self.peer(0, 1, "ring")
        victim, _ = liar.accept()
        self.sockets.append(victim)
        victim.sendall(greeting)
        victim.recv(HELLO, socket.MSG_WAITALL)
        victim.sendall(bytes(CONFIRMATION))
        self.all_say([job], "does not know the secret of the unique id")


class Losses(Case):
    def stay(self, n, **settings):
        jobs = self.peers(n, "stay", **settings)
        for job in jobs:
            self.assertIn("here", job.stdout.readline())
        return jobs

    def order(self, job, line):
        job.stdin.write(line + "\n")
        job.stdin.flush()

    def test_killed_pe_ends_the_job(self):
        jobs = self.stay(4)
        jobs[2].kill()
        for rank in (0, 1, 3):
            out, err = jobs[rank].communicate(timeout=HANG_S)
            self.assertEqual(jobs[rank].returncode, -signal.SIGTERM, out + err)
            self.assertIn("PE 2 failed: its process ended without gpushmem_finalize", err)

    def test_killed_pe_is_named_to_those_that_live_on(self):
        """Two, one after the other: also PE 0, which the others are connected to."""
        jobs = self.stay(5, GPUSHMEM_ON_PE_FAILURE="notify")
        left = [0, 1, 2, 3, 4]
        for victim in (0, 3):
            jobs[victim].kill()
            left.remove(victim)
            for rank in left:
                self.assertIn(f"PE {victim} failed", jobs[rank].stdout.readline())

    def test_who_can_open_no_more_files_takes_nobody_for_dead(self):
        """PE 20 loses its parent, PE 1, and has no descriptor to call another one with."""
        jobs = self.stay(21, GPUSHMEM_ON_PE_FAILURE="notify")
        full = jobs[20]
        limit = resource.prlimit(full.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(full.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
        jobs[1].kill()
        self.assertIn("PE 1 failed", full.stdout.readline())
        time.sleep(0.3)
        resource.prlimit(full.pid, resource.RLIMIT_NOFILE, limit)
        time.sleep(0.3)
        jobs[5].kill()
        self.assertIn("PE 5 failed", full.stdout.readline())

    def test_forked_children_hide_no_death(self):
        jobs = self.stay(3, GPUSHMEM_ON_PE_FAILURE="notify")
        self.order(jobs[1], "fork")
        time.sleep(0.2)
        jobs[1].kill()
        for rank in (0, 2):
            self.assertIn("PE 1 failed", jobs[rank].stdout.readline())

    def test_leaving_without_finalize_is_a_failure(self):
        jobs = self.stay(3)
        self.order(jobs[1], "leave")
        for rank in (0, 2):
            _, err = jobs[rank].communicate(timeout=HANG_S)
            self.assertIn("PE 1 failed: its process ended without gpushmem_finalize", err)

    def end_of_nvshmem(self, status, *orders):
        """PE 1 of three, which a framework's extension has initialised once more."""
        jobs = self.stay(3)
        for job in jobs:
            self.order(job, "nvshmem")
        for job in jobs:
            self.assertIn("joined again", job.stdout.readline())
        for order in (*orders, f"end {status}"):
            self.order(jobs[1], order)
        self.assertEqual(jobs[1].wait(HANG_S), -signal.SIGABRT if orders else status % 256)
        return jobs[0], jobs[2]

    def has_left(self, jobs):
        time.sleep(0.5)
        self.assertEqual([job.poll() for job in jobs], [None, None])
        self.order(jobs[0], "exit 17")
        for job in jobs:
            _, err = job.communicate(timeout=HANG_S)
            self.assertEqual(job.returncode, 17)
            self.assertNotIn("PE 1 failed", err)

    def has_failed(self, jobs):
        for job in jobs:
            _, err = job.communicate(timeout=HANG_S)
            self.assertEqual(job.returncode, -signal.SIGTERM, err)
            self.assertIn("PE 1 failed: its process ended without gpushmem_finalize", err)

    def test_programs_of_nvshmem_may_end_without_finalize(self):
        self.has_left(self.end_of_nvshmem(0))

    def test_a_status_that_parents_read_as_0_is_0(self):
        self.has_left(self.end_of_nvshmem(256))

    def test_programs_of_nvshmem_that_end_with_an_error_have_failed(self):
        self.has_failed(self.end_of_nvshmem(1))

    def test_programs_of_nvshmem_that_crash_at_exit_have_failed(self):
        """In a handler, which may communicate and finalize, too."""
        self.has_failed(self.end_of_nvshmem(0, "crash"))

    def test_global_exit_ends_all_with_its_status(self):
        jobs = self.stay(4)
        self.order(jobs[3], "exit 17")
        for job in jobs:
            job.communicate(timeout=HANG_S)
            self.assertEqual(job.returncode, 17)


class Nodes(Case):
    """Every two PEs are on a node of their own, as far as the library knows, and reach each other by NICs in software."""

    def setUp(self):
        super().setUp()
        self.env.update(LD_PRELOAD=os.environ["SOFTHCA"], GPUSHMEM_TRANSPORTS="p2p,verbs",
                        GPUSHMEM_SOFTHCA_DIR=f"/dev/shm/{os.path.basename(self.tmp)}", GPUSHMEM_SOFTHCA_DEVICES="2",
                        GPUSHMEM_VERBS_TIMEOUT="31",  # the NIC never says that a PE is dead
                        ASAN_OPTIONS="verify_asan_link_order=0", GPUSHMEM_ON_PE_FAILURE="notify")

    def tearDown(self):
        super().tearDown()
        shutil.rmtree(self.env["GPUSHMEM_SOFTHCA_DIR"], ignore_errors=True)

    def spread(self, n, per_node, *command):
        return [self.peer(rank, n, *command, GPUSHMEM_TEST_BOOTSTRAP_NODE=f"node{rank // per_node}") for rank in range(n)]

    def test_two_nodes(self):
        for rank, output in enumerate(self.finish(self.spread(4, 2, "ring", 2))):
            self.assertIn(f"pe {rank} of 4, {rank % 2} of 2 on its node: ok", output)

    def test_who_ends_after_a_barrier_leaves_nobody_in_it(self):
        self.env["GPUSHMEM_WAIT_TIMEOUT_MS"] = "20000"
        for _ in range(5):
            self.file += "x"
            self.finish(self.spread(4, 1, "barrier"))

    def test_deaths_on_other_nodes_are_told_by_tcp_alone(self):
        """Those who called the dead one call another: also the second and third death are known to all that are left."""
        jobs = self.spread(5, 1, "stay")
        for job in jobs:
            self.assertIn("here", job.stdout.readline())
        left = [0, 1, 2, 3, 4]
        for victim in (0, 1, 4):
            jobs[victim].kill()
            left.remove(victim)
            for rank in left:
                self.assertIn(f"PE {victim} failed", jobs[rank].stdout.readline())

    def stay(self, n, command="stay"):
        jobs = self.spread(n, 1, command)
        for job in jobs:
            self.assertIn("here", job.stdout.readline())
        return jobs

    def test_who_is_called_with_the_last_descriptor_is_not_dead(self):
        """PE 1 has the descriptor of its connection with PE 0, and no other one, to take PE 2's call."""
        jobs = self.stay(3)
        used = {int(name) for name in os.listdir(f"/proc/{jobs[1].pid}/fd")}
        limit = resource.prlimit(jobs[1].pid, resource.RLIMIT_NOFILE)
        resource.prlimit(jobs[1].pid, resource.RLIMIT_NOFILE, (min(set(range(limit[1])) - used), limit[1]))
        jobs[0].kill()
        for rank in (1, 2):
            self.assertIn("PE 0 failed", jobs[rank].stdout.readline())
        time.sleep(0.3)
        resource.prlimit(jobs[1].pid, resource.RLIMIT_NOFILE, limit)
        jobs[2].kill()
        _, err = jobs[2].communicate(timeout=HANG_S)
        self.assertNotIn("PE 1 failed", err)
        self.assertIn("PE 2 failed", jobs[1].stdout.readline())

    def test_who_was_stopped_is_called_again(self):
        """PE 2 has nobody but PE 1 to call when PE 0 dies, and gives up its first call after 2 s."""
        jobs = self.stay(3)
        jobs[1].send_signal(signal.SIGSTOP)
        jobs[0].kill()
        self.assertIn("PE 0 failed", jobs[2].stdout.readline())
        time.sleep(2.2)
        jobs[1].send_signal(signal.SIGCONT)
        self.assertIn("PE 0 failed", jobs[1].stdout.readline())
        time.sleep(0.5)
        jobs[1].kill()
        self.assertIn("PE 1 failed", jobs[2].stdout.readline())

    def die_together(self, jobs, *victims):
        """At one moment: none of them notices anything of the others. Returns who is left."""
        for victim in victims:
            jobs[victim].send_signal(signal.SIGSTOP)
        for victim in victims:
            jobs[victim].kill()
        return [job for rank, job in enumerate(jobs) if rank not in victims]

    def all_name(self, left, *victims):
        for job in left:
            named = set()
            while not named >= set(victims):
                named.update(int(pe) for pe in re.findall(r"peers: PE (\d+) failed", job.stderr.readline()))
            self.assertEqual(named, set(victims))

    def test_who_die_together_are_all_named(self):
        """PE 5 was connected with PE 0 alone; PE 17 with PE 1."""
        for n, victims in (8, (0, 5)), (19, (1, 17)), (8, (0, 3, 4, 5, 6, 7)):
            with self.subTest(victims=victims):
                self.file += "x"
                jobs = self.stay(n)
                left = self.die_together(jobs, *victims)
                self.all_name(left, *victims)

    def test_who_leaves_at_once_waits_for_no_other_that_died(self):
        """PE 5 is not known to have died when the others begin to leave."""
        jobs = self.stay(8, "flee")
        left = self.die_together(jobs, 0, 5)
        for job in left:
            out, err = job.communicate(timeout=HANG_S)
            self.assertRegex(out, r"left: .*PE (0|5)")
            self.assertEqual({int(pe) for pe in re.findall(r"peers: PE (\d+) failed", err)}, {0, 5})

    def test_who_was_stopped_dies_before_it_calls(self):
        """PE 3 is there when the roll is called, and dies later."""
        jobs = self.stay(4)
        jobs[3].send_signal(signal.SIGSTOP)
        jobs[0].kill()
        time.sleep(0.5)
        jobs[3].kill()
        self.all_name(jobs[1:3], 0, 3)

    def test_a_dead_pes_port_is_not_free(self):
        """Nobody can listen there, so as to look like a PE that is stopped."""
        jobs = self.stay(4)
        (port,) = Strangers.ports_of(self, jobs[3].pid)
        self.die_together(jobs, 0, 3)
        jobs[3].wait()
        with socket.socket() as squatter, self.assertRaises(OSError):
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            squatter.bind(("127.0.0.1", port))
            squatter.listen()
        self.all_name(jobs[1:3], 0, 3)

    def test_who_die_together_end_the_job(self):
        """What a PE names first is one of them; others end as the job does."""
        self.env["GPUSHMEM_ON_PE_FAILURE"] = "abort"
        for n, victims in (8, (0, 5)), (19, (1, 17)), (8, (0, 3, 4, 5, 6, 7)):
            with self.subTest(victims=victims):
                self.file += "x"
                for output in self.finish(self.die_together(self.stay(n), *victims), -signal.SIGTERM):
                    self.assertIn(int(re.search(r"peers: PE (\d+) failed", output)[1]), victims, output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
