#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every program that a test runs on two verbs nodes, by the software HCA or in the guest, is in apart.list: as a job between two
network namespaces, by another test that runs it over ofi, or with the reason why it makes no sense there. And nothing else is.
usage: apart_list.py LIST BUILD CTEST"""
import json
import os
import re
import subprocess
import sys

LIST, BUILD, CTEST = sys.argv[1:]
RUNS_OTHERS = {"gpushmem", "on_pes.sh", "own_gid.sh", "guest.sh", "programs.sh", "in_guest.sh", "under.sh", "python"}


def registered():
    listed = subprocess.run([CTEST, "--test-dir", BUILD, "--show-only=json-v1"], check=True, stdout=subprocess.PIPE)
    tests = json.loads(listed.stdout)["tests"]
    for test in tests:
        if "command" in test and test["command"][0].endswith("/swept.sh"):  # as every test on the software HCA
            test["command"].pop(0)
    return tests


def environment_of(test):
    for entry in test.get("properties", []):
        if entry["name"] == "ENVIRONMENT":
            return entry["value"]
    return []


def on_verbs(test):
    """Whether it has verbs devices, and more than a PE."""
    words = test["command"] + [value for value in environment_of(test) if value.startswith("LD_PRELOAD=")]
    alone = "-n" in test["command"] and test["command"][test["command"].index("-n") + 1] == "1"
    several = "run" in test["command"] or any(word.endswith(".sh") for word in test["command"]) or "hosts" in test["command"]
    return several and not alone and any("libgpushmem_softhca" in word or word.endswith("/guest.sh") for word in words)


def programs_of(test):
    """What it runs: programs of the build and scripts, but not those that only run others."""
    command = test["command"]
    names = [os.path.basename(word) for word in command
             if word.startswith(BUILD + "/bin/") or re.fullmatch(r"/.*\.(sh|py)", word)]
    names = [name for name in names if name not in RUNS_OTHERS]
    if any(word.endswith("/programs.sh") for word in command):
        at = command.index(BUILD + "/bin")
        given = [word.split(":")[0] for word in command[at + 3:]]
        prefix = command[at + 1]
        names += [prefix + name if os.path.exists(command[at] + "/" + prefix + name) else name for name in given]
    return names


def wanted_of(tests):
    return {name: test["name"] for test in tests if on_verbs(test) for name in programs_of(test)}


def rows():
    """(program, how): how is None for a job, or what the row says instead."""
    with open(LIST, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not words or words[0] == "#":
                continue
            if words[0] == "-":
                name, how = line[1:].strip().split(": ", 1)
                yield name, how
            else:
                yield next(word for word in words[1:] if "=" not in word and word != "gpu"), None


def over_ofi(name, environment):
    """Whether there is that test, and ofi is among its transports, or in its name where it chooses them itself."""
    transports = [value for value in environment or [] if value.startswith("GPUSHMEM_TRANSPORTS=")]
    return environment is not None and "ofi" in re.split(r"[=,]", transports[-1] if transports else name.replace(".", ","))


def main():
    tests, wrong = registered(), []
    unbuilt = [test["name"] for test in tests if "command" not in test]
    if unbuilt:
        print("%d tests have no program to run, %s is one: build all of them first" % (len(unbuilt), unbuilt[0]))
        return True
    names = {test["name"]: environment_of(test) for test in tests}
    wanted, listed = wanted_of(tests), dict(rows())
    for name in sorted(set(wanted) - set(listed)):
        wrong.append("%s runs %s on verbs: a job of it, or why not, is missing in %s" % (wanted[name], name, LIST))
    for name in sorted(set(listed) - set(wanted)):
        wrong.append("%s: no test runs %s on verbs any more" % (LIST, name))
    for name, how in listed.items():
        other = re.fullmatch(r"by (\S+)", how or "")
        if other and not over_ofi(other[1], names.get(other[1])):
            wrong.append("%s: %s: there is no test %s over ofi" % (LIST, name, other[1]))
    print("\n".join(wrong) or "%d programs, %d as jobs" % (len(listed), sum(how is None for how in listed.values())))
    return bool(wrong)


sys.exit(main())
