#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `gpushmem perf` says and draws of files that --json has written: slower and faster ones, and files that are none.

    PERF_PROGRAM=build/dev/bin/gpushmem-perf compare.py [Class[.test]]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

sys.path.append(str(pathlib.Path(__file__).parents[1] / "launch/cli"))
import terminal

PERF = os.environ["PERF_PROGRAM"]
SVG = "{http://www.w3.org/2000/svg}"


def row(test="put-lat", size=8, us=1.0, spread=0.01, **more):
    bandwidth = test.endswith("-bw") or test == "memcpy"
    return {"test": test, "issuer": "host", "transport": "p2p", "path": "direct", "memory": "H H", "pes": 2, "pairs": 1,
            "bidirectional": False, "size_bytes": size, "latency_us_p50": None if bandwidth else us,
            "latency_us_p99": None, "latency_us_p99_9": None, "latency_us_max": None,
            "bandwidth_gb_s": size / us / 1e3 if bandwidth else None, "rate_m_s": None, "samples": 100, "us_p50": us,
            "us_low": us * (1 - spread), "us_high": us * (1 + spread), **more}


def document(rows, cpu="one", settings=None):
    return {"format": "gpushmem perf", "format_version": 1, "time": "2026-01-02T03:04:05Z", "command": [],
            "versions": {"gpushmem": "0.1.0", "compiler": "gcc"}, "machine": {"cpu": cpu, "system": "Linux"},
            "settings": settings or {}, "rows": rows, "left_out": []}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="perf-compare.")

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def file(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def perf(self, *arguments):
        return subprocess.run([PERF, *arguments], capture_output=True, text=True, cwd=self.folder.name,
                              stdin=subprocess.DEVNULL, check=False)

    def compared(self, then, now, *arguments, status=0):
        done = self.perf("--from", self.file("now.json", now), "--compare", self.file("then.json", then), *arguments)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.replace(self.folder.name, "").split("\n"))), 80)
        return done.stdout


class Progress(Case):
    def test_forty_columns(self):
        code, text = terminal.seen(40, [PERF, "ring", "-r", "1", "-i", "8"], ["stderr"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        self.assertEqual(code, 0, text)
        lines = [line for line in text.decode().split("\r\033[K") if line.startswith("measuring")]
        self.assertTrue(lines, text)
        self.assertLess(max(map(len, lines)), 40)


class Verdicts(Case):
    def verdict(self, then, now, *arguments, status=0):
        text = self.compared(document(then), document(now), *arguments, status=status)
        return text[text.index("Verdict: "):]

    def rows(self, factor, spread=0.01):
        return [row(size=size, us=size * factor, spread=spread) for size in (8, 64, 512)]

    def test_same(self):
        self.assertIn("the same. Of 3 rows, by more than 5 %: 0 slower, 0 faster; 3 the same,\n0 unclear",
                      self.verdict(self.rows(1), self.rows(1.02)))

    def test_slower(self):
        text = self.verdict(self.rows(1), self.rows(1.2), status=3)
        self.assertIn("Verdict: slower. Of 3 rows, by more than 5 %: 3 slower", text)

    def test_faster(self):
        self.assertIn("Verdict: faster. Of 3 rows, by more than 5 %: 0 slower, 3 faster",
                      self.verdict(self.rows(1), self.rows(0.8)))

    def test_one_slower_row_among_same_ones(self):
        now = self.rows(1)[:2] + [row(size=512, us=700)]
        self.assertIn("Verdict: slower. Of 3 rows, by more than 5 %: 1 slower, 0 faster; 2",
                      self.verdict(self.rows(1), now, status=3))

    def test_mixed(self):
        now = [row(size=8, us=4), row(size=64, us=64), row(size=512, us=700)]
        self.assertIn("mixed", self.verdict(self.rows(1), now, status=3))

    def test_what_varies_is_unclear_and_not_slower(self):
        text = self.verdict(self.rows(1, 0.3), self.rows(1.2, 0.3))
        self.assertIn("Verdict: unclear.", text)
        self.assertIn("measure longer", text)

    def test_bandwidth_is_compared_by_time(self):
        self.assertIn("slower", self.verdict([row("put-bw", us=1)], [row("put-bw", us=2)], status=3))

    def test_tolerance(self):
        self.assertIn("the same", self.verdict(self.rows(1), self.rows(1.2), "--tolerance", "30"))
        self.assertIn("slower", self.verdict(self.rows(1), self.rows(1.04), "--tolerance", "0", status=3))

    def test_floor_is_the_machines(self):
        then, now = self.rows(1) + [row("memcpy", us=1)], self.rows(1) + [row("memcpy", us=2)]
        text = self.verdict(then, now, status=4)
        self.assertIn("the machine changed.\nOf 3 rows", text)
        self.assertIn("1 of 1 floors (memcpy", text)

    def test_what_a_changed_machine_makes_slower_is_not_called_slower(self):
        then, now = self.rows(1) + [row("raw-flag", us=1)], self.rows(2) + [row("raw-flag", us=2)]
        self.assertTrue(self.verdict(then, now, status=4).startswith("Verdict: the machine changed.\nOf 3 rows"))
        self.assertTrue(self.verdict(then[:3] + [row("raw-flag", us=2)], now, status=3).startswith("Verdict: slower."))

    def test_rows_of_one_run_only(self):
        text = self.verdict(self.rows(1), self.rows(1)[:2] + [row(pairs=2)])
        self.assertIn("Of 2 rows", text)
        self.assertIn("2 rows are in one of the two runs only", text)

    def test_nothing_in_common(self):
        self.assertIn("Verdict: none. No row", self.verdict(self.rows(1), [row(memory="D D")], status=1))

    def test_rows_of_one_name_are_paired_in_turn(self):
        twice = [row("get-lat", us=1), row("get-lat", us=3)]
        self.assertIn("2 the same", self.verdict(twice, twice))


class Table(Case):
    def test_ratio_and_interval(self):
        text = self.compared(document([row(us=2, spread=0.1)]), document([row(us=3, spread=0.1)]), status=3)
        line = next(line for line in text.split("\n") if line.startswith("put-lat"))
        self.assertEqual(line.split(), ["put-lat", "8", "B", "2.000", "3.000", "1.500", "1.227", "to", "1.833", "slower"])
        self.assertIn("# issued by: host; PEs: 2; transport: p2p, direct; memory: H H", text)

    def test_load_is_told(self):
        then, now = document([row()]), document([row()])
        then["machine"].update(load=0.4, cores=8)
        now["machine"].update(load=7.96, cores=8)
        self.assertIn("\nload: then 0.4, now 8.0, on 8 cores\n", self.compared(then, now))
        now["machine"]["load"] = 12
        self.assertIn("\nload: then 0.4, now 12.0, on 8 cores: busy, so figures vary\n", self.compared(then, now))

    def test_other_machine_and_settings_are_told(self):
        then = document([row()], settings={"GPUSHMEM_P2P": "0", "GPUSHMEM_RINGS": "2", "GPUSHMEM_WAIT": "spin"})
        text = self.compared(then, document([row()], "two", {"GPUSHMEM_RINGS": "4", "GPUSHMEM_STATS": "1",
                                                             "GPUSHMEM_WAIT": "spin"}))
        self.assertIn("Not the same: cpu was 'one', now it is 'two'.", text)
        self.assertIn("Not the same: GPUSHMEM_P2P was '0', now it is not told.", text)
        self.assertEqual(text.count("GPUSHMEM_RINGS was '2', now it is '4'"), 1)
        self.assertIn("Not the same: GPUSHMEM_STATS was not told, now it is '1'.", text)
        self.assertNotIn("GPUSHMEM_WAIT", text)

    def test_two_old_runs(self):
        old = self.file("old.json", document([row(us=0.5)]))
        text = self.compared(document([row()]), document([row()]), "--compare", old, status=3)
        self.assertLess(text.index("Verdict: the same"), text.index("Verdict: slower"))


class BadFiles(Case):
    def refused(self, content, words):
        path = self.file("bad.json", content)
        good = self.file("good.json", document([row()]))
        for arguments in (("--from", path, "--plot", "p.svg"), ("--from", good, "--compare", path)):
            done = self.perf(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_no_json(self):
        for text, words in (("", "line 1: a value is none"), ("{\n\n \"rows\": [1, 2", "line 3: a list or an object does not"),
                            ("[1] 2", "something follows"), ('{"a" 1}', "a colon is missing"), ('"\\x"', "an escape"),
                            ('"abc', "a text does not end"), ("[" * 100, "nested too deeply"), ("[nan]", "none of JSON's"),
                            ("{1: 2}", "a text is missing"), ("[1e999]", "none of JSON's"), ("[1,]", "none of JSON's")):
            with self.subTest(text=text):
                self.refused(text, words)

    def test_other_json(self):
        self.refused([row()], "it has no format")
        self.refused({"format": "gpushmem perf", "rows": 3}, "it has no format")
        self.refused(dict(document([]), format_version=2), "its format_version is 2, this program reads 1")

    def test_rows_without_sense(self):
        for change in ({"issuer": None}, {"us_p50": 0}, {"us_low": 5}, {"pes": "2"}, {"path": "x" * 40}, {"size_bytes": -1},
                       {"size_bytes": 1e300}, {"us_p50": None}, {"pairs": 1e30}):
            with self.subTest(change=change):
                self.refused(document([row(), row(**change)]), "row 2 lacks a field or has one without sense")
        without = row()
        del without["size_bytes"]
        self.refused(document([without]), "row 1 lacks")

    def test_missing_and_folder(self):
        for path in (self.path("none.json"), self.folder.name):
            done = self.perf("--from", path, "--plot", "p.svg")
            self.assertEqual(done.returncode, 2)
            self.assertIn("cannot read " + path, done.stderr)


class Plot(Case):
    def drawn(self, rows, *arguments, status=0):
        path = self.path("plot.svg")
        done = self.perf("--from", self.file("rows.json", document(rows)), "--plot", path, *arguments)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return tree.parse(path).getroot()

    @staticmethod
    def texts(root):
        return [text.text for text in root.iter(SVG + "text")]

    @staticmethod
    def series(root):
        return [group for group in root.iter(SVG + "g") if group.get("class").startswith("series")]

    def test_series_points_and_axes(self):
        rows = [row(size=size, us=size / 8) for size in (512, 8, 64)] + [row("put", us=2), row("put-bw", 1 << 20, 90)]
        root = self.drawn(rows)
        series = self.series(root)
        self.assertEqual([len(list(one.iter(SVG + "circle"))) for one in series], [3, 1, 1])
        points = [tuple(map(float, point.split(","))) for point in series[0].find(SVG + "polyline").get("points").split()]
        self.assertEqual(points, sorted(points))  # by size, whatever order the rows had
        self.assertGreater(points[0][1], points[2][1])  # more is further up
        for text in ("latency, us (median)", "bandwidth, GB/s", "put-lat, host, direct", "put-bw, host, direct", "8 B", "1 MiB"):
            self.assertIn(text, self.texts(root))

    def test_floors_are_bars_at_their_sizes(self):
        root = self.drawn([row(size=8), row(size=64), row("raw-flag", us=0.5), row("raw-load", us=0.4),
                           row("raw-load", 64, us=0.6)])
        points = [float(point.split(",")[0]) for point in self.series(root)[0].find(SVG + "polyline").get("points").split()]
        flag, load = root.findall(SVG + "g[@class='series floor']")
        self.assertIsNone(flag.find(SVG + "polyline"))
        self.assertTrue(load.find(SVG + "polyline").get("stroke-dasharray"))
        for floor, at in ((flag, points[:1]), (load, points)):
            bars = [(float(bar.get("x1")), float(bar.get("x2"))) for bar in floor.iter(SVG + "line")]
            self.assertEqual([round((left + right) / 2, 1) for left, right in bars], at)
            self.assertTrue(all(8 < right - left < 40 for left, right in bars))

    def test_a_point_alone_is_a_wide_ring_on_top(self):
        root = self.drawn([row("put", size=64, us=1), row(size=8), row(size=64), row(size=512)])
        last = self.series(root)[-1]
        self.assertIsNone(last.find(SVG + "polyline"))
        ring = last.find(SVG + "circle")
        self.assertGreater(float(ring.get("r")), 5)
        self.assertEqual(ring.get("fill"), "none")
        for one in self.series(root): # within the frame
            for mark in one.iter(SVG + "circle"):
                self.assertGreater(float(mark.get("cx")), 80)

    def test_points_alone_of_two_runs_differ(self):
        old = self.file("old.json", document([row(us=1), row("raw-load", us=0.5)]))
        root = self.drawn([row(us=1), row("raw-load", us=0.5)], "--compare", old)
        rings = [one.find(SVG + "circle") for one in self.series(root) if one.get("class") == "series"]
        self.assertEqual(len({(ring.get("cx"), ring.get("cy"), ring.get("stroke")) for ring in rings}), 1)
        self.assertEqual(len({ring.get("r") for ring in rings}), 2)
        dashes = [ring.get("stroke-dasharray") for ring in rings]
        self.assertIsNone(dashes[0])
        self.assertTrue(dashes[1])
        keys = [ring.get("stroke-dasharray") for ring in root.findall(SVG + "circle") if float(ring.get("cy")) < 60]
        self.assertEqual(keys, dashes)
        floors = [one.find(SVG + "line").get("stroke-dasharray") for one in root.findall(SVG + "g[@class='series floor']")]
        self.assertEqual(floors, dashes)

    def test_runs_are_overlaid(self):
        old = self.file("old.json", document([row(us=1), row(size=64, us=1)]))
        root = self.drawn([row(us=1), row(size=64, us=1)], "--compare", old)
        first, second = (one.find(SVG + "polyline") for one in self.series(root))
        self.assertEqual(first.get("stroke"), second.get("stroke"))
        self.assertIsNone(first.get("stroke-dasharray"))
        self.assertTrue(second.get("stroke-dasharray"))
        self.assertEqual(self.texts(root).count("put-lat, host, direct"), 1)
        self.assertIn("old.json", self.texts(root))

    def test_many_series_and_odd_names(self):
        root = self.drawn([row("t<&\"\u00e9%d" % i, us=i + 1) for i in range(30)])
        self.assertEqual(len(self.series(root)), 30)
        self.assertIn('t<&"?7, host, direct', self.texts(root))
        height = float(root.get("height"))
        self.assertTrue(all(float(text.get("y")) < height for text in root.iter(SVG + "text")))

    def test_nothing_to_draw(self):
        done = self.perf("--from", self.file("rows.json", document([row("barrier_all", 0)])), "--plot", self.path("plot.svg"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no row has a size to draw", done.stderr)


class Live(Case):
    """The files that a job writes are those that it reads."""

    def test_job(self):
        arguments = ("put-lat", "--issuer", "host", "--sizes", "8,64", "-r", "9")
        done = self.perf(*arguments, "--json", "then.json", "--plot", "then.svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(tree.parse(self.path("then.svg")).getroot().findall(SVG + "g")), 5)
        done = self.perf(*arguments, "-d", "H", "H", "--json", "-", "--compare", "then.json")
        self.assertIn(done.returncode, (0, 3, 4))  # this machine may do anything meanwhile
        written = json.loads(done.stdout)
        self.assertEqual(len(written["rows"]), 6)  # without those of memory that is not symmetric
        self.assertIn("GPUSHMEM_TRANSPORTS", written["settings"])
        self.assertNotIn("GPUSHMEM_HOST_HEAP_SIZE", written["settings"])  # perf's own doing
        self.assertIn("Verdict: ", done.stderr)

    def test_the_verdict_is_the_last_word(self):
        arguments = ("put-lat", "--issuer", "host", "--sizes", "8", "-r", "9", "-d", "H", "H")
        done = self.perf(*arguments, "--json", "then.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("then.json"), encoding="utf-8") as file:
            then = json.load(file)
        for one in then["rows"]:
            for key in ("us_p50", "us_low", "us_high"):
                one[key] /= 1000
        done = self.perf(*arguments, "--compare", self.file("quick.json", then))
        self.assertIn(done.returncode, (3, 4))
        self.assertEqual(done.stderr, "")
        self.assertIn("Verdict: ", done.stdout)


if __name__ == "__main__":
    unittest.main()
