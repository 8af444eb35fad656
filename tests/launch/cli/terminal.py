# SPDX-License-Identifier: BSD-3-Clause
"""What a program writes on a terminal."""
import fcntl
import os
import pty
import struct
import subprocess
import termios


def seen(columns, command, streams=("stdin", "stdout"), **more):
    """(exit code, bytes) of a program whose `streams` are a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(command, **dict.fromkeys(streams, slave), **more) as job:
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 65536):
                text += chunk
        except OSError:
            pass  # the other end is closed
        os.close(master)
    return job.returncode, text
