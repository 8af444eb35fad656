# SPDX-License-Identifier: BSD-3-Clause
"""What the public headers declare, with the comments that promise it: entries of a comment and its declarations, in sections."""
import os
import re

import comments

# What readers need, in the order in which they need it; the page of each, and its title.
HEADERS = [("gpushmem.h", "Host"), ("team.h", "Teams"), ("coll.h", "Collectives of the host"), ("stream.h", "Streams"),
           ("coll_stream.h", "Collectives of streams"), ("device.cuh", "Kernels"), ("device/launch.cuh", "Starting kernels"),
           ("device/launch_collective.cuh", "Starting kernels together"), ("grid_sync.cuh", "Grids that meet"),
           ("coll_grid.cuh", "Collectives by grids"),
           ("device_host.h", "Around kernels, on the host"), ("bootstrap.h", "Starting without a launcher"),
           ("mpi.h", "Starting with MPI"), ("profile.h", "Seeing the calls"), ("types.h", "Types and constants")]


class Entry:
    """One comment and what it is about. `names` are the functions, with TYPE and BITS where they stand for several."""

    def __init__(self, section, comment, declarations, names):
        self.section, self.comment, self.declarations, self.names = section, comment, declarations, names

    @property
    def parts(self):
        return comments.parse(self.comment)


def signatures(source):
    """The macros of the parameter lists and of the families of functions: name, parameters and body."""
    text = re.sub(r" *\\\n\s*", " ", open(source + "/include/gpushmem/impl/signatures.h").read())
    return {name: ([one.strip() for one in parameters.split(",")], body.strip())
            for name, parameters, body in re.findall(r"#define (GPSH_\w+)\(([^)]*)\)(.*)", text)}


class Header:
    def __init__(self, source, name, title):
        self.name, self.title = name, title
        self.macros = signatures(source)
        self.path = name if name.startswith("device/") else "include/gpushmem/" + name
        lines = open("%s/%s" % (source, self.path)).read().split("\n")
        lines = [line for line in lines if not re.match(r"// (SPDX|clang-format)", line)]
        end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
        self.intro, self.entries = comments.uncommented(lines[:end]), []
        if name == "device.cuh":
            self.read_promises()
        elif name.endswith(".cuh"):
            self.read_calls()
        else:
            self.read_code(lines[end:])

    def read_promises(self):
        """The comment of device.cuh has the prototypes, each paragraph those that it is about."""
        blocks, intro = "\n".join(self.intro).split("\n\n"), []
        for block in blocks:
            prose, declarations = split_prototypes(block.split("\n"))
            if declarations and "grid_sync" not in block:
                self.entries.append(Entry("", prose, declarations, [name for one in declarations for name in named(one)]))
            else:
                intro += block.split("\n") + [""]
        self.intro = intro

    def read_calls(self):
        """Headers of templates and macros have their calls in the comment on top: a line each, what it does indented under it."""
        intro = []
        for line in self.intro:
            if re.match(r"(int )?(GPUSHMEM|gpushmem)_\w+\(.*\)$", line):
                self.entries.append(Entry("", [], [line + ";"], re.findall(r"\b((?:GPUSHMEM|gpushmem)_\w+)\(", line)))
            elif self.entries and line.startswith("    "):
                self.entries[-1].comment.append(line[4:])
            else:
                intro.append(line)
        self.intro = intro

    def read_code(self, lines):
        section, comment, code = "", [], []
        for line in lines + ["//"]:
            if line.startswith("//"):
                if code:
                    self.finish(section, comment, code)
                    comment, code = [], []
                comment.append(line)
            elif comment and is_rule(comment[0]):
                section, comment = comment[1][3:], []
            elif line.strip() or code:
                code.append(line)
            else:
                comment = []

    def finish(self, section, comment, code):
        declarations = self.declared("\n".join(code))
        text = comments.uncommented(comment)
        names = [name for one in declarations for name in named(one)]
        if not declarations:
            return
        # "The same by ..." belongs to what stands above it.
        if self.entries and self.entries[-1].section == section and (not text or re.match(r"(\.\.\.|The same)", text[0])):
            above = self.entries[-1]
            above.comment = above.comment + [""] + text
            above.declarations += declarations
            above.names += names
        else:
            self.entries.append(Entry(section, text, declarations, names))

    def declared(self, code):
        """The declarations in a piece of code: macros that declare families are expanded with TYPE and BITS."""
        found, kept = [], []
        for line in re.sub(r" *\\\n\s*", "\n    ", code).replace("\n    ", "\v").split("\n"):
            define = re.match(r"#define (GPUSHMEM_(?:DECLARE\w*|FUNCTION))\(([^)]*)\)(.*)", line.replace("\v", " "))
            if define:
                self.macros[define[1]] = ([one.strip() for one in define[2].split(",")], define[3])
            elif line.startswith("#undef"):
                found += declarations_in(self.expanded("\n".join(kept)))
                kept = []
            elif not line.startswith("#") or re.match(r"#define GPUSHMEM_(?!API)\w+(\(| )", line):
                kept.append(line.replace("\v", "\n    "))
        return found + declarations_in(self.expanded("\n".join(kept)))

    def expanded(self, text):
        family = r"\b(GPUSHMEM_\w+_(?:TYPES|SIZES))\((GPUSHMEM_DECLARE\w*)\)"
        text = re.sub(family, lambda m: self.substituted(m[2], ["BITS"] if m[1].endswith("SIZES") else ["TYPE", "TYPE"]), text)
        while True:
            call = next((c for name in self.macros for c in [re.search(r"\b%s\(" % name, text)] if c), None)
            if not call:
                return text
            arguments, end = call_arguments(text, call.end())
            text = text[:call.start()] + self.substituted(call[0][:-1], arguments) + text[end:]

    def substituted(self, name, arguments):
        parameters, body = self.macros[name]
        if parameters[-1] == "...":
            count = len(parameters) - 1
            arguments = arguments[:count] + [", ".join(arguments[count:])]
            parameters = parameters[:-1] + ["__VA_ARGS__"]
        values = dict(zip(parameters, arguments))
        words = [values.get(word, word) for word in re.split(r"(\b\w+\b)", body)]
        return re.sub(r"\s*##\s*", "", "".join(words))


def is_rule(line):
    return re.match(r"// -{20,}$", line)


def call_arguments(text, at):
    arguments, depth, begin = [], 0, at
    while True:
        if text[at] == ")" and depth == 0 or text[at] == "," and depth == 0:
            arguments.append(text[begin:at].strip())
            begin = at + 1
            if text[at] == ")":
                return arguments, at + 1
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1


DECLARATION = re.compile(
    r"^GPUSHMEM_API (?P<plain>[^;{]+?);|GPUSHMEM_API (?P<more>[^;{]+?);"
    r"|^static inline (?P<inline>[^;{]+?)\s*\{.*?^\}"
    r"|^(?P<type>(?:struct|enum) \w+ \{.*?^\};)|^(?P<typedef>typedef [^;{]+;)|^(?P<define>#define GPUSHMEM_[^\n]+(?:\n    [^\n]+)*)", re.M | re.S)


def declarations_in(code):
    found = []
    for match in DECLARATION.finditer(code):
        text = match["plain"] or match["more"] or match["inline"]
        if text:
            found.append(tidy(re.sub(r"__attribute__\(\(.*?\)\)", "", text)) + ";")
        else:
            found.append((match["type"] or match["typedef"] or match["define"]).strip())
    return found


def tidy(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ?\( ?", "(", re.sub(r"\s*\*\s*", " *", text)).replace(" )", ")").replace("( *", "(*")


def split_prototypes(lines):
    """The prose of a paragraph of device.cuh, and its prototypes, each on one line."""
    prose, found = [], []
    for line in lines:
        if re.match(r"  \w[\w ]* \*?gpushmem_dev_[\w\[\]|]+\(", line):
            found.append(line.strip())
        elif found and line.startswith("      ") and not found[-1].endswith(";"):
            found[-1] += " " + line.strip()
        else:
            prose.append(line)
    return prose, found


def alternatives(text):
    """a[b|c]d: ad, abd, acd; a_[b|c]: a_b, a_c, since no name ends or goes on with two underscores."""
    match = re.search(r"\[([\w|]+)\]", text)
    if not match:
        return [text]
    choices = ([] if text[match.start() - 1] == "_" else [""]) + match[1].split("|")
    return [one for choice in choices for one in alternatives(text[:match.start()] + choice + text[match.end():])]


def named(declaration):
    """The names of functions, function-like macros, structs and enums that a declaration declares."""
    function = re.search(r"\b(p?gpushmem_[\w\[\]|]+)\(", declaration)
    if function and not declaration.startswith(("#", "struct", "enum", "typedef")):
        return alternatives(function[1])
    kind = re.match(r"(?:struct|enum) (\w+)", declaration) or re.match(r"#define (\w+)", declaration) or \
        re.search(r"(\w+);$", declaration)
    return [kind[1]] if kind else []


def unlisted(source):
    """Further headers for programs, by their names; device_abi.h is between the library and its own headers."""
    known = {name for name, _ in HEADERS} | {"device_abi.h"}
    names = sorted(name for name in os.listdir(source + "/include/gpushmem") if name.endswith((".h", ".cuh")))
    return [(name, name.split(".")[0].replace("_", " ").capitalize()) for name in names if name not in known]


def read(source):
    return [Header(source, name, title) for name, title in HEADERS + unlisted(source)]
