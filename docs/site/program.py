# SPDX-License-Identifier: BSD-3-Clause
"""What the program gpushmem says about itself: its commands, and the options that each prints with --help."""
import re
import subprocess


class Command:
    """One command's --help: usage, what it does, options as (letter, name, value, text), and what follows them."""

    def __init__(self, name, summary, text):
        self.name, self.summary = name, summary
        blocks = re.split(r"\n\s*\n", text.strip("\n"))
        # long ones go on in lines that are indented
        usage, self.about = re.match(r"usage: (.*(?:\n .*)*)\n?((?:.|\n)*)", blocks[0]).groups()
        self.usage = re.sub(r"\s*\n\s+", " ", usage)
        self.options, self.more = [], []
        for block in blocks[1:]:
            if re.match(r" +-", block):
                self.read_options(block.split("\n"))
            else:
                self.more.append(block)

    def read_options(self, lines):
        for line in lines:
            match = re.match(r" {2,6}(?:-(\w)(?:, )?)?(?:--([\w-]+))?(?: ([^ ]+(?: [^ ]+)*))?(?:  +(.*))?$", line)
            if match and (match[1] or match[2]):
                self.options.append([match[1], match[2], match[3], match[4] or ""])
            else:
                self.options[-1][3] = (self.options[-1][3] + " " + line.strip()).strip()


def said(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else ""


def read(program):
    """All commands. One whose --help says nothing, because its programs were not built, has no options."""
    found = []
    for name, summary in re.findall(r"^  (\w+) +(.*)$", said(program, "help"), re.M):
        text = said(program, name, "--help") if name not in ("help", "version") else ""
        found.append(Command(name, summary, text if text.startswith("usage:") else "usage: gpushmem " + name))
    return found


def version(program):
    return said(program, "version").split()[-1]
