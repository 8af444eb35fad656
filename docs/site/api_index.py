#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""All functions and launch macros of the public headers as one Markdown page, for the site and for an installation.

usage: api_index.py SOURCE CXX OUT
Also compares the prototypes in the comment of gpushmem/device.cuh with the functions that exist, and the page with the names that
the headers explain. Exit code 1 if they differ, with a sentence for each."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import headers

# The C type of each NAME in function names, as gpushmem/types.h has them.
TYPES = {}


def compiler():
    """A C++ compiler, or None."""
    return next(filter(None, map(shutil.which, [os.environ.get("CXX") or "c++", "g++", "clang++"])), None)


def preprocessed(source, cxx, *names):
    """Headers for kernels are found as an installation has them: gpushmem/device."""
    text = "".join('#include "gpushmem/%s"\n' % name for name in names)
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(work + "/gpushmem")
        os.symlink(os.path.abspath(source) + "/device", work + "/gpushmem/device")
        command = [cxx, "-std=c++17", "-E", "-P", "-xc++", "-DGPSH_EXPORTS", "-I", source + "/include", "-I", work, "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def tidy(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\s*\*\s*", " *", text).replace("( ", "(").strip()


def family(name):
    """The pattern that a name belongs to, and what TYPE or BITS is in it."""
    match = re.match(r"gpushmem_(ctx_|dev_ctx_|dev_)?(%s)_(.+)$" % "|".join(TYPES), name)
    if match:
        return "gpushmem_%sTYPE_%s" % (match[1] or "", match[3]), match[2]
    match = re.match(r"(gpushmem_(?:ctx_|dev_ctx_|dev_)?(?:ib?)?(?:put|get))(8|16|32|64|128)(.*)$", name)
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


def host(text):
    return functions(text, r'__attribute__\(\(visibility\("default"\)\)\)([^;{}()]*?[ *])'
                                             r"(gpushmem_\w+)\s*\(([^;{}]*?)\)\s*;")


def device(text):
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


def promised(source):
    comment = open(source + "/include/gpushmem/device.cuh").read().split("#ifndef")[0]
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
    lines = ["", "## %s" % title, "", "Declared in `gpushmem/%s`: %d functions." % (header, count), "",
             "| functions | prototype | TYPE or BITS |", "|--:|---|---|"]
    for _, entry in sorted(families.items()):
        kinds = [kind for kind in entry["kinds"] if kind]
        every = "all 25" if len(kinds) == 25 else ", ".join(kinds)
        lines.append("| %d | `%s` | %s |" % (len(entry["kinds"]), entry["text"].rstrip(";"), every))
    return count, lines


def others(source, found):
    """What the compiler does not show as a function: launch macros, and what is inline in headers that a program adds."""
    lines = ["", "## Launches, macros and further headers", "", "| header | call |", "|---|---|"]
    for header in headers.read(source):
        for entry in header.entries:
            for one in entry.declarations:
                if not {family(name)[0] for name in called(one)} <= found:
                    lines.append("| `gpushmem/%s` | `%s` |" % (header.name, re.sub(r"\s+", " ", one).rstrip(";")))
    return lines


def called(declaration):
    """The functions and macros with arguments that a declaration of headers.py is about."""
    if declaration.startswith(("#", "struct", "enum", "typedef")):
        return []
    return [one for name in re.findall(r"\b(?:gpushmem|GPUSHMEM)_[\w\[\]|]+(?=\()", declaration) for one in expanded(name)]


def groups(source, cxx):
    """By pattern the functions of the host, of streams, of kernels, and those around kernels."""
    TYPES.update(re.findall(r"X\((\w+), ([\w ]+)\)", open(source + "/include/gpushmem/types.h").read()))
    in_kernels = device(preprocessed(source, cxx, "gpushmem.h", "device.cuh", "coll_grid.cuh"))
    streams, on_host, around = (host(preprocessed(source, cxx, name)) for name in ("stream.h", "gpushmem.h", "device_host.h"))
    for pattern in streams:
        on_host.pop(pattern, None)
        around.pop(pattern, None)
    return on_host, streams, in_kernels, around


def concrete(families):
    """The names that the patterns stand for, each with its pattern."""
    return {re.sub("TYPE|BITS", kind, pattern): pattern for pattern, entry in families.items() for kind in entry["kinds"]}


def index(source, cxx):
    """The page, and by pattern the functions for kernels."""
    on_host, streams, in_kernels, around = groups(source, cxx)
    parts = [table("Host", "gpushmem.h", on_host), table("Streams", "stream.h", streams),
             table("Kernels", "device.cuh", in_kernels), table("Around kernels, on the host", "device_host.h", around)]
    lines = ["# All functions", "",
             "Made from the headers, which say what each function promises: %d functions. Each of those for kernels"
             % sum(count for count, _ in parts),
             "exists a second time with the handle as first argument. TYPE is the name of a type in function names and the type",
             "itself elsewhere (`gpushmem/types.h`), BITS the bits of an element. In C11 and C++ the type may be left out."]
    found = {name for group in (on_host, streams, in_kernels, around) for name in group}
    lines += [line for _, part in parts for line in part] + others(source, found)
    return "\n".join(lines) + "\n", in_kernels


def differences(source, text, in_kernels):
    exist = {re.sub(r"\s+", " ", entry["text"]) for entry in in_kernels.values()}
    wrong = ["device.cuh promises what does not exist: " + one for one in sorted(promised(source) - exist)]
    wrong += ["device.cuh does not name: " + one for one in sorted(exist - promised(source))]
    for header in headers.read(source):
        names = {name for entry in header.entries for one in entry.declarations for name in called(one)}
        wrong += ["the index lacks %s of gpushmem/%s" % (name, header.name) for name in sorted(names)
                  if family(name)[0] + "(" not in text and with_context(family(name)[0]) not in text]
    return wrong


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, cxx, out = sys.argv[1:]
    text, in_kernels = index(source, cxx)
    open(out, "w", encoding="utf-8").write(text)
    wrong = differences(source, text, in_kernels)
    print("\n".join(wrong) or "api index: ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
