#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What each command prints with --help fits in 80 columns, and on a terminal in its columns, but in 100 at most."""
import os
import re
import subprocess
import unittest

import terminal

PROGRAM = os.environ["GPUSHMEM"]
NO_PROGRAM = 127  # perf, where tests are not built


def asked():
    """The words of each command line that prints help."""
    listed = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  (\w+) +", listed, re.M)
    return [["help"]] + [[name, "--help"] for name in names if name not in ("help", "version")]


def words(text):
    return text.decode().split()


class Help(unittest.TestCase):
    def printed(self, words_given, columns):
        """Lines without a terminal, or on one."""
        if columns:
            code, text = terminal.seen(columns, [PROGRAM] + words_given, env=dict(os.environ, NO_COLOR="1"))
        else:
            done = subprocess.run([PROGRAM] + words_given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            code, text = done.returncode, done.stdout
        if code == NO_PROGRAM:
            return None
        self.assertEqual(code, 0, text)
        return text.replace(b"\r\n", b"\n")

    def test_lines_fit(self):
        for command in asked():
            plain = self.printed(command, 0)
            if plain is None:
                continue
            for columns, most in ((0, 80), (60, 60), (80, 80), (200, 100)):
                text = self.printed(command, columns)
                with self.subTest(command=command, columns=columns):
                    long = [line for line in text.decode().split("\n") if len(line) > most]
                    self.assertEqual(long, [])
                    self.assertEqual(words(text), words(plain))
        self.assertGreaterEqual(len(asked()), 7)

    def test_width_is_used(self):
        wide = self.printed(["run", "--help"], 200).decode().split("\n")
        self.assertGreater(max(map(len, wide)), 80)


if __name__ == "__main__":
    unittest.main()
