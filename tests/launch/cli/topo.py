#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `gpushmem topo` shows of recorded machines (recorded.py and tests/unit/topology), and of files that are none.

    GPUSHMEM=build/dev/bin/gpushmem SOURCE=. topo.py [Class[.test]]
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.dom.minidom

import recorded
import terminal

GPUSHMEM = os.environ.get("GPUSHMEM", "gpushmem")
TOPOLOGY = os.path.join(os.environ.get("SOURCE", "."), "tests/unit/topology/")


def topo(*arguments, **environment):
    return subprocess.run([GPUSHMEM, "topo", *arguments], capture_output=True, text=True,
                          env=dict(os.environ, **environment))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="topo.")

    def tearDown(self):
        self.folder.cleanup()

    def file(self, text):
        path = os.path.join(self.folder.name, "machine.xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def shown(self, path, *arguments, **environment):
        done = topo("--xml", path, *arguments, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def report(self, path, **environment):
        return json.loads(self.shown(path, "--json", **environment))

    def uses(self, path, **environment):
        return [gpu["uses"] for gpu in self.report(path, **environment)["gpus"]]

    def why(self, path, **environment):
        return [gpu["why"] for gpu in self.report(path, **environment)["gpus"]]

    def refused(self, sentence, *arguments, status=1, **environment):
        done = topo(*arguments, **environment)
        self.assertEqual((done.returncode, done.stdout), (status, ""))
        self.assertRegex(done.stderr, sentence)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Matrix(Case):
    def test_two_gpus_and_one_nic(self):
        path = self.file(recorded.WORKSTATION)
        self.assertTrue(self.shown(path).startswith("        GPU0  GPU1  mlx5_0\n"
                                                    "GPU0    X     NV12  PHB\n"
                                                    "GPU1    NV12  X     PHB\n"
                                                    "mlx5_0  PHB   PHB   X\n"))
        self.assertEqual(self.uses(path), [["mlx5_0:1"], ["mlx5_0:1"]])
        self.assertEqual(self.why(path), ["the only one", "the only one"])

    def test_eight_gpus_and_eight_nics_on_switches(self):
        path = self.file(recorded.EIGHT)
        gpus = self.report(path)["gpus"]
        for i, gpu in enumerate(gpus):
            near = lambda other: "NODE" if other // 4 == i // 4 else "SYS"
            wanted = {"GPU%d" % g: "X" if g == i else "NV18" for g in range(8)}
            wanted.update({"mlx5_%d:1" % n: "PIX" if n == i else near(n) for n in range(8)})
            wanted["mlx5_8:1"] = near(0)
            self.assertEqual(gpu["to"], wanted)
            self.assertEqual(gpu["uses"], ["mlx5_%d:1" % i])
            self.assertEqual((gpu["numa"], gpu["cpus"]), ("01"[i // 4], ("0-7", "8-15")[i // 4]))
            self.assertRegex(gpu["why"], r"^nearest; mlx5_\d:1, the next, is at NODE$")

    def test_two_sockets(self):
        path = TOPOLOGY + "two_sockets.xml"
        text = self.shown(path)
        self.assertIn("\nGPU0          X     SYS   PIX           PXB           PHB           NODE          SYS\n", text)
        self.assertIn("\nGPU0: 0000:14:00.0 (PIX): nearest; 0000:17:00.0, the next, is at PXB\n", text)
        self.assertIn("\nGPU1: 0000:91:00.0 (PHB): nearest; 0000:14:00.0, the next, is at SYS\n", text)

    def test_grace_hopper(self):
        path = self.file(recorded.GRACE_HOPPER)
        report = self.report(path)
        self.assertEqual(report["gpus"][0]["to"], {"GPU0": "X", "mlx5_0:1": "NODE", "mlx5_1:1": "NODE"})
        self.assertEqual(report["gpus"][0]["numa"], "0", "the GPU's memory is no node of the processor")
        self.assertEqual(report["gpus"][0]["uses"], ["mlx5_0:1"])
        self.assertEqual([(p["rate_gbps"], p["why_not"]) for p in report["ports"]], [(400, None), (200, "is not active")])


class Choice(Case):
    """As the verbs transport chooses: it is the same function."""

    def test_settings(self):
        path = self.file(recorded.EIGHT)
        self.assertEqual(self.uses(path, GPUSHMEM_VERBS_DEVICES="^mlx5_0")[0], ["mlx5_1:1"])
        self.assertEqual(self.uses(path, GPUSHMEM_VERBS_DEVICES="mlx5_7,mlx5_0")[0], ["mlx5_7:1"])
        self.assertEqual(self.why(path, GPUSHMEM_VERBS_DEVICES="mlx5_7,mlx5_0")[0],
                         "GPUSHMEM_VERBS_DEVICES lists it before mlx5_0:1")
        self.assertEqual(len(self.uses(path, GPUSHMEM_VERBS_RAILS="4")[0]), 4)
        self.assertEqual(self.why(path, GPUSHMEM_VERBS_DEVICES="none")[0],
                         "no port is both usable and allowed by GPUSHMEM_VERBS_DEVICES")
        self.refused("GPUSHMEM_VERBS_RAILS=many is not", "--xml", path, GPUSHMEM_VERBS_RAILS="many")
        self.refused("GPUSHMEM_VERBS_DEVICES=mlx5_0:x: a port is not a number", "--xml", path, GPUSHMEM_VERBS_DEVICES="mlx5_0:x")

    def machine(self, *roots):
        return self.file(recorded.machine_xml([[("0000", 0x10, [recorded.gpu("0000:11:00.0"), *roots])]]))

    def test_reasons(self):
        nic = recorded.nic
        self.assertEqual(self.why(self.machine(nic("0000:12:00.0", "a", rate=100), nic("0000:13:00.0", "b"))),
                         ["a:1 has less than half the best rate"])
        self.assertEqual(self.why(self.machine(nic("0000:12:00.0", "a", True), nic("0000:13:00.0", "b"))),
                         ["InfiniBand goes before Ethernet, which a:1 is"])
        self.assertEqual(self.why(self.machine(nic("0000:12:00.0", "a", rate=200), nic("0000:13:00.0", "b"))),
                         ["as near as a:1, and faster"])
        self.assertEqual(self.why(self.machine(nic("0000:12:00.0", "a"), nic("0000:13:00.0", "b"))),
                         ["as good as b:1: the PEs of a node take turns"])
        self.assertEqual(self.why(self.machine()), ["this machine has no RDMA NIC"])


class Picture(Case):
    """The boxes of the SVG, and what is in which."""

    def drawn(self, path):
        svg = os.path.join(self.folder.name, "machine.svg")
        self.assertEqual(self.shown(path, "--svg", svg), "")
        document = xml.dom.minidom.parse(svg)
        boxes, texts = [], []
        for rect in document.getElementsByTagName("rect"):
            if rect.hasAttribute("class"):
                x, y, width, height = (float(rect.getAttribute(name)) for name in ("x", "y", "width", "height"))
                boxes.append((rect.getAttribute("class"), x, y, x + width, y + height))
        for text in document.getElementsByTagName("text"):
            texts.append((text.firstChild.data, float(text.getAttribute("x")), float(text.getAttribute("y"))))
        lines = [p for p in document.getElementsByTagName("path") if p.getAttribute("class") == "uses"]
        return boxes, texts, len(lines) - 1  # one is of the legend

    def around(self, boxes, texts, word):
        """The classes of the boxes around a text, the outermost first."""
        _, x, y = next(text for text in texts if text[0] == word)
        return [b[0] for b in sorted((b for b in boxes if b[1] <= x <= b[3] and b[2] <= y <= b[4]),
                                     key=lambda b: -(b[3] - b[1]))]

    def test_boxes(self):
        boxes, texts, lines = self.drawn(self.file(recorded.EIGHT))
        for i in range(8):
            self.assertEqual(self.around(boxes, texts, "GPU%d" % i), ["socket", "switch", "gpu"])
            self.assertEqual(self.around(boxes, texts, "mlx5_%d" % i), ["socket", "switch", "nic"])
        self.assertEqual(self.around(boxes, texts, "mlx5_8"), ["socket", "nic"])
        self.assertEqual(lines, 8)
        self.assertIn("8 GPUs, 9 NICs, NV18 between all GPUs", [text[0] for text in texts])

    def test_far_and_near(self):
        boxes, texts, lines = self.drawn(TOPOLOGY + "two_sockets.xml")
        self.assertEqual(self.around(boxes, texts, "GPU0"), ["socket", "bridge", "switch", "gpu"])
        self.assertEqual(self.around(boxes, texts, "0000:17:00.0"), ["socket", "bridge", "switch", "switch", "nic"])
        self.assertEqual(self.around(boxes, texts, "0000:1a:00.0"), ["socket", "bridge", "nic"])
        self.assertEqual(self.around(boxes, texts, "0000:41:00.0"), ["socket", "nic"])
        self.assertEqual(lines, 2)

    def test_nothing_overlaps(self):
        for name, text in recorded.MACHINES.items():
            with self.subTest(name):
                boxes, _, _ = self.drawn(self.file(text))
                for i, (_, ax, ay, bx, by) in enumerate(boxes):
                    for _, cx, cy, dx, dy in boxes[:i]:
                        apart = bx <= cx or dx <= ax or by <= cy or dy <= ay
                        inside = ((ax >= cx and bx <= dx and ay >= cy and by <= dy) or
                                  (cx >= ax and dx <= bx and cy >= ay and dy <= by))
                        self.assertTrue(apart or inside)

    def test_inactive_port_and_odd_name(self):
        path = self.file(recorded.machine_xml([[("0000", 0x10, [recorded.gpu("0000:11:00.0", "<&\"x"),
                                                                recorded.nic("0000:12:00.0", "a", state=1)])]]))
        boxes, texts, lines = self.drawn(path)
        self.assertEqual(self.around(boxes, texts, "a")[-1], "off")
        self.assertIn("<&\"x", [text[0] for text in texts])
        self.assertEqual(lines, 0)

    def test_rendered(self):
        if not shutil.which("rsvg-convert"):
            self.skipTest("there is no rsvg-convert")
        svg = os.path.join(self.folder.name, "machine.svg")
        self.shown(self.file(recorded.EIGHT), "--svg", svg)
        png = subprocess.run(["rsvg-convert", svg], capture_output=True, check=True).stdout
        self.assertTrue(png.startswith(b"\x89PNG"))

    def test_disk_is_full(self):
        path = self.file(recorded.EIGHT)
        self.refused("cannot write the picture to /dev/full: No space left", "--xml", path, "--svg", "/dev/full")
        self.refused("cannot write the picture to /nowhere/a.svg: No such file", "--xml", path, "--svg", "/nowhere/a.svg")


class Trouble(Case):
    def test_files_that_are_no_machine(self):
        for text in ("", "<topology", "<?xml version=\"1.0\"?><html/>", recorded.EIGHT[:4000], "\0\0\0"):
            self.refused(r"^gpushmem topo: hwloc cannot load the topology of .*machine.xml", "--xml", self.file(text))
        self.refused(r"cannot load the topology of /nowhere.xml \(No such file or directory\); `lstopo FILE.xml` records one$", "--xml", "/nowhere.xml")
        self.refused("cannot load the topology of " + self.folder.name, "--xml", self.folder.name)

    def test_files_that_hwloc_dies_of(self):
        for left_out in (' complete_cpuset="0xffff"', ' complete_cpuset="0x2"'):
            self.assertIn(left_out, recorded.EIGHT)
            self.refused("^gpushmem topo: hwloc cannot load the topology of .*machine.xml", "--xml",
                         self.file(recorded.EIGHT.replace(left_out, "", 1)), "--json")

    def test_what_hwloc_remarks_is_one_warning(self):
        lines = recorded.EIGHT.split("\n")
        first, second = (i for i, line in enumerate(lines) if 'type="Package"' in line)
        lines[first], lines[second] = lines[second], lines[first]
        done = topo("--json", "--xml", self.file("\n".join(lines)))
        json.loads(done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("machine.xml may be shown wrongly: hwloc has encountered", done.stderr)

    def test_machine_without_pci(self):
        self.assertEqual(self.shown(self.file(recorded.machine_xml([[], []]))), "No GPU and no RDMA NIC is recorded there.\n")

    def test_machine_without_gpus(self):
        text = self.shown(self.file(recorded.machine_xml([[("0000", 0x10, [recorded.nic("0000:11:00.0", "mlx5_0")])]])))
        self.assertTrue(text.startswith("        mlx5_0\nmlx5_0  X\n"), text)
        self.assertNotIn("NICs that the PE", text)

    def test_command_line(self):
        self.refused("'more' is one argument too many", "more", status=2)
        self.refused("unknown option '--colour'", "--colour", status=2)

    def test_this_machine(self):
        done = topo()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        json.loads(topo("--json").stdout)


class Page(Case):
    def terminal(self, columns, *arguments, **environment):
        """What a terminal of that width is sent."""
        code, text = terminal.seen(columns, [GPUSHMEM, *arguments], env=dict(os.environ, TERM="xterm", **environment))
        self.assertEqual(code, 0)
        return text.decode().replace("\r\n", "\n")

    def test_forty_columns(self):
        text = self.terminal(40, "topo", "--xml", self.file(recorded.EIGHT))
        plain = re.sub("\033\\[[0-9]+m", "", text)
        matrix = plain.split("\ndevice ")[0]
        self.assertLessEqual(max(map(len, matrix.split("\n"))), 40)
        self.assertEqual(re.findall(r"mlx5_\d|GPU\d", " ".join(re.findall("(?m)^  .*$", matrix))),
                         ["GPU%d" % i for i in range(8)] + ["mlx5_%d" % i for i in range(9)])

    def test_doctor_in_forty_columns(self):
        text = re.sub("\033\\[[0-9]+m", "", self.terminal(40, "doctor", "--all", "settings", "self-test"))
        self.assertRegex(text, r"(?m)^ok +settings +\n    every GPUSHMEM_\* variable")
        self.assertLessEqual(max(map(len, text.split("\n"))), 40)

    def test_tables_of_info_in_forty_columns(self):
        for option in "--compat", "--collectives":
            lines = self.terminal(40, "info", option).split("\n")
            self.assertEqual([line for line in lines if len(line) > 40 or line != line.rstrip()], [], "info " + option)
        self.assertRegex(self.terminal(80, "info", "--compat"), r"(?m)^NVSHMEM_SYMMETRIC_SIZE +size; GPUSHMEM_HEAP_SIZE; ")
        self.assertRegex(self.terminal(40, "info", "--compat"), r"(?m)^NVSHMEM_SYMMETRIC_SIZE\n    size; GPUSHMEM_HEAP_SIZE; ")
        self.assertRegex(self.terminal(40, "info", "--collectives"), r"(?m)^broadcast of 2 PEs\n    8 to \d+; packets; 64 x 256$")

    def test_settings_in_a_hundred_columns(self):
        for command in ("info",), ("info", "--long"):
            text = self.terminal(100, *command)
            settings = text[text.index("\nGPUSHMEM_LOG_LEVEL "):]
            self.assertLessEqual(max(map(len, settings.split("\n"))), 100)
        self.assertRegex(settings, r"(?m)^GPUSHMEM_LOG_LEVEL = warn\n    origin: .*\n    how much is logged to stderr$")
        # a pipe gets a line for each
        done = subprocess.run([GPUSHMEM, "info"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"(?m)^GPUSHMEM_LOG_LEVEL .* how much is logged to stderr$")

    def test_colours_on_a_terminal_only(self):
        path = self.file(recorded.EIGHT)
        self.assertIn("\033[32mNV18\033[0m", self.terminal(300, "topo", "--xml", path))
        self.assertNotIn("\033", self.terminal(300, "topo", "--xml", path, NO_COLOR="1"))
        self.assertNotIn("\033", self.shown(path))


if __name__ == "__main__":
    unittest.main()
