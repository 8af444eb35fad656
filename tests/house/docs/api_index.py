#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes docs/api-index.md of what the public headers declare, and compares the prototypes in the
comment of gpushmem/device.cuh with the functions that exist.

usage: api_index.py SOURCE CXX DEVICE_INCLUDE [--write]
Without --write: exit code 1 if the file or the comment differs, with a sentence for each."""
import re
import subprocess
import sys

SOURCE, CXX, DEVICE_INCLUDE = sys.argv[1:4]
WRITE = "--write" in sys.argv[4:]
INDEX = SOURCE + "/docs/api-index.md"

# The C type of each NAME in function names, as gpushmem/types.h has them.
TYPES = dict(re.findall(r"X\((\w+), ([\w ]+)\)", open(SOURCE + "/include/gpushmem/types.h").read()))


def preprocessed(*headers):
    text = "".join('#include "gpushmem/%s"\n' % header for header in headers)
    command = [CXX, "-std=c++17", "-E", "-P", "-xc++", "-I", SOURCE + "/include", "-I", DEVICE_INCLUDE, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def tidy(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\s*\*\s*", " *", text).replace("( ", "(").strip()


def family(name):
    """The pattern that a name belongs to, and what TYPE or BITS is in it."""
    match = re.match(r"gpushmem_(ctx_|dev_ctx_|dev_)?(%s)_(.+)$" % "|".join(TYPES), name)
    if match:
        return "gpushmem_%sTYPE_%s" % (match[1] or "", match[3]), match[2]
    match = re.match(r"(gpushmem_(?:ctx_|dev_ctx_|dev_)?i?(?:put|get))(8|16|32|64|128)(.*)$", name)
    return (match[1] + "BITS" + match[3], match[2]) if match else (name, "")


def prototype(result, pattern, parameters, kind):
    if "TYPE" in pattern:
        result, parameters = (re.sub(r"\b%s\b" % TYPES[kind], "TYPE", text) for text in (result, parameters))
    return tidy("%s %s" % (result, pattern)) + "(%s);" % tidy(parameters)


def functions(text, declaration):
    """By pattern: the prototype and the types. A type whose C name is part of no other one writes it."""
    families = {}
    for result, name, parameters in re.findall(declaration, text):
        pattern, kind = family(name)
        entry = families.setdefault(pattern, {"kinds": []})
        if kind not in entry["kinds"]:
            entry["kinds"].append(kind)
        if "text" not in entry or kind in ("double", "ulonglong"):
            entry["text"] = prototype(result, pattern, parameters, kind)
    return families


def host(*headers):
    return functions(preprocessed(*headers), r'__attribute__\(\(visibility\("default"\)\)\)([^;{}()]*?[ *])'
                                             r"(gpushmem_\w+)\s*\(([^;{}]*?)\)\s*;")


def device():
    text = preprocessed("gpushmem.h", "device.cuh", "coll_grid.cuh")
    text = re.sub(r"gpushmem_dev_\w+\(const Handle &\.\.\.\)", "", text)  # only says which header is missing
    found = functions(text.replace("struct gpushmem_dev_ctx ctx", "gpushmem_dev_ctx ctx")
                      .replace("struct gpushmem_dev_ctx *", "gpushmem_dev_ctx *"),
                      r"static inline ([\w ]*?[ *]+)(gpushmem_dev_\w+)\(((?!const struct gpushmem_dev &)[^;{}]*?)\)\s*\{")
    return {pattern: entry for pattern, entry in found.items() if "T *" not in entry["text"]
            and not re.search(r"\bT\b", entry["text"])}


def expanded(text):
    """a[b|c]d: ad, abd, acd; a_[b|c]: a_b, a_c, since an underscore does not end a name."""
    match = re.search(r"\[([\w|]+)\]", text)
    if not match:
        return [text]
    choices = match[1].split("|") + ([] if text[match.start() - 1] == "_" else [""])
    return [one for choice in choices for one in expanded(text[:match.start()] + choice + text[match.end():])]


def promised():
    comment = open(SOURCE + "/include/gpushmem/device.cuh").read().split("#ifndef")[0]
    comment = re.sub(r"\n//       +", " ", comment)
    lines = re.findall(r"^//   ([\w ]+ \*?gpushmem_dev_[^\n]*\);)$", comment, re.M)
    every = [re.sub(r"\s+", " ", one) for line in lines for one in expanded(line)]
    return set(every) | {with_context(one) for one in every if re.search(MAY_HAVE_CONTEXT, one)}


# "Contexts" in device.cuh: calls that move data or change words have a form with a context.
MAY_HAVE_CONTEXT = r" \*?gpushmem_dev_(TYPE_)?(p|p_warp|g|i?put\w*|i?get\w*|atomic_\w+|signal_op)\("


def with_context(text):
    return re.sub(r"gpushmem_dev_(\w+)\(", r"gpushmem_dev_ctx_\1(gpushmem_dev_ctx ctx, ", text)


def table(title, header, families):
    count = sum(len(entry["kinds"]) for entry in families.values())
    lines = ["", "## %s" % title, "", "Declared in [%s](../include/gpushmem/%s): %d functions." % (header, header, count), "",
             "| functions | prototype | TYPE or BITS |", "|--:|---|---|"]
    for _, entry in sorted(families.items()):
        kinds = [kind for kind in entry["kinds"] if kind]
        every = "all 25" if len(kinds) == 25 else ", ".join(kinds)
        lines.append("| %d | `%s` | %s |" % (len(entry["kinds"]), entry["text"].rstrip(";"), every))
    return count, lines


def index(in_kernels):
    streams = host("stream.h")
    on_host = {pattern: entry for pattern, entry in host("gpushmem.h").items() if pattern not in streams}
    launching = {pattern: entry for pattern, entry in host("device_host.h").items() if pattern not in streams}
    parts = [table("Host", "gpushmem.h", on_host), table("Streams", "stream.h", streams),
             table("Kernels", "device.cuh", in_kernels), table("Around kernels, on the host", "device_host.h", launching)]
    lines = ["# All functions", "",
             "Made by `tests/house/docs/api_index.py` from the headers, which say what each function promises: %d functions. Each of those"
             % sum(count for count, _ in parts),
             "for kernels exists a second time with the handle as first argument. TYPE is the name of a type in function names and the",
             "type itself elsewhere (`gpushmem/types.h`), BITS the bits of an element. In C11 and C++ the type may be left out."]
    return "\n".join(lines + [line for _, part in parts for line in part]) + "\n"


def main():
    in_kernels = device()
    exist = {re.sub(r"\s+", " ", entry["text"]) for entry in in_kernels.values()}
    wrong = ["device.cuh promises what does not exist: " + text for text in sorted(promised() - exist)]
    wrong += ["device.cuh does not name: " + text for text in sorted(exist - promised())]
    text = index(in_kernels)
    if WRITE:
        open(INDEX, "w").write(text)
    elif open(INDEX).read() != text:
        wrong.append("docs/api-index.md is not what the headers say; make it again: tests/house/docs/api_index.py %s --write"
                     % " ".join(sys.argv[1:4]))
    print("\n".join(wrong) or "api index: ok")
    return bool(wrong)


sys.exit(main())
