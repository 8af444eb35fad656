#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""suite.py: runs tests that CTest knows as jobs of `gpushmem run` under another launcher.

  suite.py --build DIR [--ctest PROGRAM] [--at-once N] REGEX -- LAUNCHER... {pes}

REGEX chooses tests by their names (ctest -R). Of each whose command is `gpushmem run ... -n N PROGRAM...`, and nothing else,
PROGRAM is run behind LAUNCHER, with {pes} replaced by N and with the test's environment. The last line is "N passed, N failed";
failed tests are named with the end of their output. So the suite is registered once, whoever starts it. Exit code: 77 if the
launcher returns that, which under.sh does where it is not installed.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

LIMIT_S = 60  # of a job, only against hangs


def tests_of(ctest, build, regex):
    """(name, PEs, program with its arguments, environment) of each job that can be started by another launcher."""
    listed = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1", "-R", regex], check=True, capture_output=True)
    for test in json.loads(listed.stdout)["tests"]:
        command = test.get("command", [])
        if command[1:2] != ["run"]:
            continue
        words = command[2:]
        if words[0] == "--timeout":
            words = words[2:]
        if words[0] != "-n" or words[2].startswith("-"):
            continue  # options that are those of gpushmem run alone
        properties = {item["name"]: item["value"] for item in test["properties"]}
        yield test["name"], int(words[1]), words[2:], dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))


def run(launcher, pes, program, environment):
    """0 and nothing, or what went wrong and the job's output. Launchers share a folder in TMPDIR: each has its own."""
    with tempfile.TemporaryDirectory(prefix="suite.", dir="/tmp") as folder:
        job = subprocess.Popen([word.replace("{pes}", str(pes)) for word in launcher] + program, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, **environment, "TMPDIR": folder})
        try:
            output, _ = job.communicate(timeout=LIMIT_S)
            return job.returncode, output
        except subprocess.TimeoutExpired:
            job.terminate()  # a launcher ends its job
            output, _ = job.communicate()
            return f"not ended after {LIMIT_S} s", output


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--ctest", default="ctest")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("regex")
    parser.add_argument("launcher", nargs="+")
    options = parser.parse_args()
    tests = list(tests_of(options.ctest, options.build, options.regex))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        def one(test):
            name, pes, program, environment = test
            begin = time.monotonic()
            status, output = run(options.launcher, pes, program, environment)
            return name, status, output, time.monotonic() - begin
        for name, status, output, seconds in pool.map(one, tests):
            if status == 77:
                print(output, end="")
                pool.shutdown(cancel_futures=True)
                sys.exit(77)
            print(f"{'FAILED' if status else 'ok':8}{name} ({seconds:.1f} s)" + (f": {status}" if status else ""), flush=True)
            if status:
                failed += 1
                print("".join(f"    {line}\n" for line in output.splitlines()[-15:]), end="")
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(failed > 0 or not tests)


main()
