#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""GPUSHMEM_TRACE in jobs: what the file has, and what becomes of it when something goes wrong.

    GPUSHMEM=build/dev/bin/gpushmem HEAT=... HELLO=... VICTIM=... SYNC=... SOFTHCA=libgpushmem_softhca.so SOURCE=.
        trace.py [Class[.test]]
"""
import collections
import json
import os
import subprocess
import tempfile
import unittest

GPUSHMEM, HEAT, HELLO, VICTIM, SYNC = (os.environ.get(name, "") for name in ("GPUSHMEM", "HEAT", "HELLO", "VICTIM", "SYNC"))
PICTURE = os.path.join(os.environ.get("SOURCE", "."), "examples/10-heat/input.pgm")


class Trace:
    """A file that loads, and is as viewers want it."""

    def __init__(self, case, path):
        with open(path, encoding="utf-8") as file:
            self.document = json.load(file)
        self.events = [e for e in self.document["traceEvents"] if e["ph"] != "M"]
        meta = [e for e in self.document["traceEvents"] if e["ph"] == "M"]
        self.pes = {e["pid"]: e["args"]["name"] for e in meta if e["name"] == "process_name"}
        self.tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in meta if e["name"] == "thread_name"}
        self.slices = collections.defaultdict(list)
        last = {}
        for e in self.events:
            track = e["pid"], e["tid"]
            case.assertIn(e["ph"], "Xstf")
            case.assertIn(track, self.tracks, "a track without a name")
            case.assertIn(e["pid"], self.pes)
            case.assertGreaterEqual(e["ts"], last.get(track, 0), f"time goes back on {self.tracks[track]}")
            last[track] = e["ts"]
            if e["ph"] == "X":
                case.assertGreaterEqual(e["dur"], 0)
                self.slices[track].append(e)
        for track, slices in self.slices.items():
            self.check_nesting(case, self.tracks[track], slices)

    @staticmethod
    def check_nesting(case, name, slices):
        open_ends = []
        for e in slices:
            begin, end = e["ts"], e["ts"] + e["dur"]
            while open_ends and open_ends[-1] <= begin + 0.0015:  # times have three decimals
                open_ends.pop()
            if open_ends:
                case.assertLessEqual(end, open_ends[-1] + 0.0015, f"slices of {name} overlap")
            open_ends.append(end)

    def named(self, pe, word):
        """The tracks of a PE with that word in their names: {name: slices}"""
        return {name: self.slices[track] for track, name in self.tracks.items() if track[0] == pe and word in name}


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="trace.")
        self.file = os.path.join(self.folder.name, "t.json")

    def tearDown(self):
        self.folder.cleanup()

    def run_job(self, *command, **environment):
        settings = {"GPUSHMEM_TRACE": self.file, "GPUSHMEM_TRANSPORTS": "p2p", "GPUSHMEM_HEAP_KIND": "host",
                    "GPUSHMEM_HEAP_SIZE": "64M", **environment}
        return subprocess.run([GPUSHMEM, "run", *command], capture_output=True, text=True, timeout=100,
                              env={**os.environ, **settings})

    def parts(self):
        return sorted(name for name in os.listdir(self.folder.name) if name.endswith(".part"))

    def heat(self, *options, **environment):
        return self.run_job(*options, HEAT, "--steps", "6", "--check", "--image", PICTURE, "--out",
                            os.path.join(self.folder.name, "h.pgm"), **environment)

    def over_a_nic(self, **environment):
        return {"LD_PRELOAD": os.environ["SOFTHCA"], "GPUSHMEM_SOFTHCA_DEVICES": "2", "GPUSHMEM_SOFTHCA_QUIET": "1",
                "GPUSHMEM_SOFTHCA_DIR": self.folder.name, "GPUSHMEM_TRANSPORTS": "verbs", **environment}

    def test_heat_over_a_nic_of_two_nodes(self):
        result = self.heat("-n", "4", "--nodes", "2", **self.over_a_nic())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("equal to the serial run", result.stdout)
        self.assertEqual(self.parts(), [])
        trace = Trace(self, self.file)
        self.assertEqual(sorted(trace.pes), [0, 1, 2, 3])
        for pe in trace.pes:
            for word in ("host thread 0", "proxy thread 0", "ring ", "queue of default context to PE"):
                self.assertTrue(trace.named(pe, word), f"PE {pe} has no track '{word}'")
            calls = {e["name"] for e in trace.named(pe, "host thread 0")["host thread 0"]}
            self.assertLessEqual({"gpushmem_malloc", "gpushmem_barrier_all", "quiet"}, calls)
            barriers = [e for e in trace.named(pe, "host thread 0")["host thread 0"] if e["name"] == "gpushmem_barrier_all"]
            self.assertEqual([e["args"] for e in barriers if e["args"]], [], "a barrier moves no bytes")
        self.check_commands(trace)
        self.check_clocks(trace)

    def check_commands(self, trace):
        """Each command of a kernel is in its ring, an arrow leads from there by the proxy to its queue."""
        arrows = collections.defaultdict(dict)
        for e in trace.events:
            if e["ph"] in "stf":
                arrows[e["id"]][e["ph"]] = e
        self.assertTrue(arrows)
        for ends in arrows.values():
            names = [trace.tracks[ends[ph]["pid"], ends[ph]["tid"]] for ph in "stf"]
            self.assertRegex(" > ".join(names), r"^ring \d+ > proxy thread 0 > queue of proxy thread 0 to PE \d, verbs$")
            for ph, name in zip("stf", ("put with signal", "read ring", "put with signal")):
                at = ends[ph]
                around = [e for e in trace.slices[at["pid"], at["tid"]]
                          if e["ts"] - 0.0015 <= at["ts"] <= e["ts"] + e["dur"] + 0.0015]
                self.assertIn(name, [e["name"] for e in around], f"an arrow ends nowhere on {names}")
            self.assertLessEqual(ends["s"]["ts"], ends["f"]["ts"])
        # 4 bands: 6 neighbours, each of which is sent to in all steps but perhaps the last
        self.assertGreaterEqual(len(arrows), 6 * 5)

    def check_clocks(self, trace):
        """The nodes are pretended: their clocks are one, which the bounds must contain."""
        nodes = {n["first_pe"]: n for n in trace.document["otherData"]["nodes"]}
        self.assertEqual(sorted(nodes), [0, 2])
        self.assertGreaterEqual(nodes[2]["within_ns"], 0)
        self.assertLessEqual(abs(nodes[2]["clock_ahead_ns"]), nodes[2]["within_ns"] + 1)

    def test_kernels_on_cpu_threads_are_slices_of_their_stream(self):
        result = self.heat("-n", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        trace = Trace(self, self.file)
        for pe in (0, 1):
            streams = trace.named(pe, "kernels, ")
            self.assertEqual(list(streams), ["kernels, default stream"])
            kernels = streams["kernels, default stream"]
            self.assertTrue(kernels and all(e["args"]["threads"] >= 1 for e in kernels))
            self.assertTrue(all("," not in e["name"] and "NULL" not in e["name"] for e in kernels), kernels[0])
            waits = trace.named(pe, "host thread 0")["host thread 0"]
            self.assertGreaterEqual(waits[-1]["ts"], kernels[0]["ts"])

    def test_heat_by_ring_and_proxy_on_mapped_memory(self):
        result = self.heat("-n", "2", GPUSHMEM_P2P="0", GPUSHMEM_TRACE_RECORDS="100")
        self.assertEqual(result.returncode, 0, result.stderr)
        trace = Trace(self, self.file)
        read = sum(e["args"]["commands"] for e in trace.named(0, "proxy thread")["proxy thread 0"] if e["name"] == "read ring")
        in_rings = sum(e["args"]["commands"] for slices in trace.named(0, "ring ").values() for e in slices
                       if e["name"] == "commands")
        self.assertGreaterEqual(read, 5)
        self.assertEqual(read, in_rings)

    def test_little_room(self):
        result = self.run_job("-n", "2", SYNC, GPUSHMEM_TRACE_RECORDS="64")
        self.assertEqual(result.returncode, 0, result.stderr)
        trace = Trace(self, self.file)
        self.assertGreater(trace.document["otherData"]["dropped"], 0)
        self.assertRegex(result.stderr, r"the oldest \d+ of \d+ records were dropped \(GPUSHMEM_TRACE_RECORDS\)")

    def test_killed_pe(self):
        result = self.run_job("-n", "3", VICTIM, "1", GPUSHMEM_ON_PE_FAILURE="abort")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"gpushmem run: the trace of 3 of 3 PEs is in .*t\.json; \d of them ended without "
                                        "gpushmem_finalize")
        trace = Trace(self, self.file)
        self.assertEqual(sorted(trace.pes), [0, 1, 2])
        self.assertIn("ended without gpushmem_finalize", trace.pes[1])
        self.assertTrue(trace.named(1, "host thread 0")["host thread 0"])
        self.assertEqual(self.parts(), [])

    def test_folder_that_is_not_there(self):
        self.file = os.path.join(self.folder.name, "no", "t.json")
        result = self.run_job("-n", "2", SYNC)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("WARN trace: there is no trace of this PE, because GPUSHMEM_TRACE=", result.stderr)
        self.assertIn("No such file or directory; name a file in a directory that this user may write", result.stderr)

    def test_parts_that_somebody_took_away(self):
        # PE 0 makes its part before it waits for PE 1.
        result = self.run_job("-n", "2", "sh", "-c", f'[ "$GPUSHMEM_RUN_PE" = 0 ] || {{ until rm "$GPUSHMEM_TRACE".0.*.part 2> '
                              f'/dev/null; do sleep 0.01; done; unset GPUSHMEM_TRACE; }}; exec {SYNC}')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("gpushmem[0] WARN trace: the trace is lost: somebody has deleted", result.stderr)
        self.assertIn("t.json.*.part; name a file in a folder", result.stderr)
        self.assertFalse(os.path.exists(self.file))

    def test_two_jobs_with_one_file(self):
        # The inner job runs while the outer one has its parts; both end well.
        inner = f'{GPUSHMEM} run -n 2 {HELLO} > inner.txt 2>&1'
        clean = "for v in $(env | sed -n 's/^\\(PMIX[A-Z0-9_]*\\)=.*/\\1/p'); do unset $v; done; unset GPUSHMEM_RUN_PID"
        wait = 'until ls "$GPUSHMEM_TRACE".0.*.part > /dev/null 2>&1; do sleep 0.01; done'
        result = self.run_job("-n", "2", "sh", "-c", f'[ "$GPUSHMEM_RUN_PE" = 0 ] || ({wait}; {clean}; cd {self.folder.name}; {inner}); '
                              f'exec {HELLO}')
        with open(os.path.join(self.folder.name, "inner.txt"), encoding="utf-8") as file:
            said = file.read()
        self.assertEqual(result.returncode, 0, result.stderr + said)
        self.assertEqual(self.parts(), [])
        traces = sorted(name for name in os.listdir(self.folder.name) if name.endswith(".json"))
        self.assertEqual(len(traces), 2, (traces, result.stderr, said))
        for name in traces:
            self.assertEqual(sorted(Trace(self, os.path.join(self.folder.name, name)).pes), [0, 1])
        self.assertIn("; there are parts of 1 other job, too: ", said)
        self.assertIn("has been written since that job began", result.stderr)

    def test_parts_of_killed_jobs(self):
        # Two jobs of one PE, which nobody has started: what they leave is there until somebody joins it.
        settings = {**os.environ, "GPUSHMEM_TRACE": self.file, "GPUSHMEM_TRANSPORTS": "p2p", "GPUSHMEM_HEAP_KIND": "host",
                    "GPUSHMEM_HEAP_SIZE": "64M"}
        for count in 1, 2:
            result = subprocess.run([VICTIM, "0"], capture_output=True, text=True, timeout=100, env=settings)
            self.assertEqual(result.returncode, -9, result.stderr)
            self.assertEqual(len(self.parts()), count)
        result = self.merge("merge", "t.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("the trace of 1 of 1 PEs is in t."), 2, result.stdout)
        self.assertEqual(result.stdout.count("1 of them ended without gpushmem_finalize"), 2, result.stdout)
        self.assertEqual(self.parts(), [])
        traces = [name for name in os.listdir(self.folder.name) if name.endswith(".json")]
        self.assertEqual(len(traces), 2, traces)
        for name in traces:
            self.assertIn("ended without gpushmem_finalize", Trace(self, os.path.join(self.folder.name, name)).pes[0])
        self.assertEqual(self.merge("merge", "t.json").returncode, 1)

    def test_one_pe_without_a_trace(self):
        result = self.run_job("-n", "2", "sh", "-c", f'[ "$GPUSHMEM_RUN_PE" = 0 ] || unset GPUSHMEM_TRACE; exec {SYNC}')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("here are 1 of 2, that of PE 1 is not there", result.stderr)
        self.assertEqual(sorted(Trace(self, self.file).pes), [0])

    def merge(self, *arguments):
        return subprocess.run([GPUSHMEM, "trace", *arguments], capture_output=True, text=True, cwd=self.folder.name)

    def test_merge(self):
        self.assertEqual(self.merge().returncode, 2)
        self.assertEqual(self.merge("merge").returncode, 2)
        self.assertEqual(self.merge("merge", "a", "b").returncode, 2)
        self.assertEqual(self.merge("merge", "").returncode, 2)
        result = self.merge("merge", "t.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there are no parts t.json.*.part", result.stderr)
        result = self.merge("merge", "no/t.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be looked for: No such file or directory", result.stderr)
        with open(self.file + ".0.part", "w", encoding="utf-8") as file:
            file.write("something else")
        result = self.merge("merge", "t.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("t.json.0.part: it is no part of a trace", result.stderr)
        self.assertEqual(self.parts(), ["t.json.0.part"])


if __name__ == "__main__":
    unittest.main()
