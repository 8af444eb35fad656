#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What compare_table.py promises, with results made up here: medians, units, ratios, and one sentence on bad input."""
import contextlib
import io
import json
import os
import tempfile
import unittest

import compare_table

LATENCY = """ local address: LID 0000
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
 8       2000          16.57          306.56       {}    	       18.41       	8.76
"""
BANDWIDTH = """ #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      1000             62.86              {}  		   {}
"""


class CompareTable(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        # Three rounds; the third is an outlier that the median must not see.
        for number, factor in ((1, 1.0), (2, 1.0), (3, 50.0)):
            for run in ("put-lat-8", "get-lat-8", "amo-lat"):
                self.write(f"theirs-{number}-{run}.log", LATENCY.format(20.0 * factor))
            for run in ("put-bw-65536", "put-bw-1048576", "get-bw-65536", "get-bw-1048576", "amo-rate"):
                self.write(f"theirs-{number}-{run}.log", BANDWIDTH.format(100.0 * factor, 0.025 * factor))
            for run in ("put-lat-8", "get-lat-8", "put-lat-8-device", "put-bw", "get-bw", "amo"):
                self.write(f"ours-{number}-{run}.json", json.dumps({"rows": self.rows(run, factor)}))

    def tearDown(self):
        self.directory.cleanup()

    @staticmethod
    def rows(run, factor):
        latency = 30.0 if run == "put-lat-8-device" else 22.0
        tests = {"put-lat-8-device": ["put-lat"], "put-lat-8": ["put-lat"], "get-lat-8": ["get-lat"],
                 "put-bw": ["put-bw", "memcpy"], "get-bw": ["get-bw"], "amo": ["fetch-add", "fetch-add-rate"]}[run]
        return [{"test": test, "issuer": "host", "transport": "verbs", "size_bytes": size,
                 "latency_us_p50": latency * factor, "latency_us_p99": 99.0,
                 "bandwidth_gb_s": 0.1048576 * factor if test == run else 7.0, "rate_m_s": 0.05 * factor}
                for test in tests for size in (8, 65536, 1 << 20)]

    def write(self, name, text):
        with open(os.path.join(self.directory.name, name), "w", encoding="utf-8") as file:
            file.write(text)

    def ratios(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            compare_table.main(self.directory.name)
        lines = [line.split() for line in out.getvalue().splitlines() if line.startswith("ratio ")]
        return {name: float(value) for _, name, value in lines}

    def test_ratio_is_of_medians_in_one_unit(self):
        ratios = self.ratios()
        self.assertEqual(set(ratios), {row[0] for row in compare_table.ROWS})
        self.assertAlmostEqual(ratios["put-lat-8"], 1.1)
        self.assertAlmostEqual(ratios["put-bw-65536"], 1.0)  # 100 perftest "MB" are 104.8576 MB
        self.assertAlmostEqual(ratios["amo-rate"], 2.0)

    def test_device_is_compared_with_our_host(self):
        self.assertAlmostEqual(self.ratios()["put-lat-8-device"], round(30.0 / 22.0, 3))

    def test_missing_run_is_named(self):
        for number in (1, 2, 3):
            os.remove(os.path.join(self.directory.name, f"theirs-{number}-amo-lat.log"))
        with self.assertRaisesRegex(SystemExit, r"has no theirs-\*-amo-lat\.log"):
            self.ratios()

    def test_failed_perftest_is_named(self):
        self.write("theirs-2-get-lat-8.log", " Couldn't connect to 10.1.0.2:18515\n")
        with self.assertRaisesRegex(SystemExit, r"theirs-2-get-lat-8\.log holds no table"):
            self.ratios()

    def test_missing_size_is_named(self):
        self.write("ours-1-put-bw.json", '{"rows": []}')
        with self.assertRaisesRegex(SystemExit, r"has no row put-bw with bandwidth_gb_s for 65536 bytes"):
            self.ratios()


if __name__ == "__main__":
    unittest.main()
