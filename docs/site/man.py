#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the man pages: section 1 of what the program says with --help, and one of the wrappers for OpenSHMEM, which hand on
all that they are given; section 3 of the comments of the public headers. Forms with a type (gpushmem_long_put), and names
of OpenSHMEM, are links to the page that explains them; without a C++ compiler ($CXX) to tell these names there are none.

usage: man.py SOURCE PROGRAM OUT"""
import os
import re
import shutil
import sys

import api_index
import comments
import headers
import program
import reference


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def plain(text):
    return escaped(re.sub(r"`([^`]*)`", r"\1", text))


def frame(name, section, summary, version, body, title=None):
    title = escaped((title or name).upper() if section == 1 else name)
    return "\n".join(['.TH %s %d "" "gpushmem %s"' % (title, section, version),
                      ".SH NAME", "%s \\- %s" % (escaped(name), escaped(summary))] + body) + "\n"


def code(lines):
    return [".PP", ".nf", ".RS 4"] + [escaped(line) or "\\&" for line in lines] + [".RE", ".fi"]


def parts(found):
    lines = []
    for kind, value in found:
        if kind == "text":
            lines += ([".PP"] if lines else []) + [plain(value)]
        elif kind == "code":
            lines += code(value)
        else:
            for term, body in value:
                lines += [".TP", ".B " + plain(term)] + nested(body)
    return lines


def nested(body):
    """What a term means: its first paragraph, and the rest under it."""
    first, rest = (body[:1], body[1:]) if body and body[0][0] == "text" else ([("text", "\\&")], body)
    return parts(first) + ([".RS"] + parts(rest) + [".RE"] if rest else [])


def command_page(command, version):
    body = [".SH SYNOPSIS", ".B " + escaped(command.usage), ".SH DESCRIPTION", escaped(command.about or command.summary + ".")]
    if command.options:
        body.append(".SH OPTIONS")
    for letter, name, value, text in command.options:
        flags = ", ".join(one for one in ("-" + letter if letter else "", "--" + name if name else "") if one)
        body += [".TP", ".B " + escaped(flags + (" " + value if value else "")), escaped(text or "\\&")]
    if command.more:
        body.append(".SH NOTES")
    for at, block in enumerate(command.more):
        body += ([".PP"] if at else []) + [escaped(line.strip()) for line in block.split("\n")]
    return frame("gpushmem-" + command.name, 1, command.summary, version, body + see_also(["gpushmem(1)"]))


def main_page(commands, version):
    body = [".SH SYNOPSIS", ".B gpushmem", "COMMAND [arguments]", ".SH DESCRIPTION",
            "The program of gpushmem, a library for one\\-sided communication between GPUs and CPUs.", ".SH COMMANDS"]
    for command in commands:
        body += [".TP", ".B " + command.name, escaped(command.summary)]
    body += [".SH ENVIRONMENT", "Programs read variables that begin with GPUSHMEM_;", ".B gpushmem info", "lists them all.",
             ".SH FILES", ".TP", ".I \\(ti/.config/gpushmem/settings.conf", "settings of this user; below XDG_CONFIG_HOME if that is set,",
             "or whatever file GPUSHMEM_SETTINGS_FILE names", ".TP", ".I /etc/gpushmem/settings.conf",
             "settings of all users of this machine", ".PP",
             ".B gpushmem info \\-\\-settings\\-file", "prints one to begin with."]
    pages = ["gpushmem\\-%s(1)" % command.name for command in commands if command.options]
    return frame("gpushmem", 1, "start, measure and explain jobs of gpushmem", version, body + see_also(pages))


WRAPPERS = ["oshcc", "oshc++", "oshcxx", "oshrun", "shmem_info", "oshfort"]
WRAPPER_TEXT = """.SH SYNOPSIS
.B oshcc
[\\-\\-showme] [arguments of the compiler]
.br
.B oshc++
[\\-\\-showme] [arguments of the compiler]
.br
.B oshcxx
[\\-\\-showme] [arguments of the compiler]
.br
.B oshrun
[\\-n N] [options] PROGRAM [arguments]
.br
.B shmem_info
[options of gpushmem info]
.br
.B oshfort
.SH DESCRIPTION
.B oshcc
compiles and links OpenSHMEM programs in C with gpushmem;
.B oshc++
and
.BR oshcxx ,
which are the same, those in C++.
They add the folder of shmem.h and hand all arguments to the compiler.
Where it links, which it does without \\-c, \\-E, \\-S, \\-M, \\-MM and \\-fsyntax\\-only,
they add the libraries and the folder in which the program finds them.
.PP
.B oshrun
is
.B gpushmem run
by another name, with its options. Programs may also be started by srun, prterun and mpirun.
.PP
.B shmem_info
tells the version, the flags of the wrappers, and the settings as OpenSHMEM programs get them.
.PP
.B oshfort
says how the functions are called from Fortran, for which there is no binding.
.SH OPTIONS
.TP
.B \\-\\-showme
print what would be added, and call no compiler; also \\-showme and \\-show
.TP
.B \\-\\-showme:compile\\fR, \\fB:link\\fR, \\fB:command\\fR, \\fB:incdirs\\fR, \\fB:libdirs\\fR, \\fB:libs\\fR, \\fB:version
print a part of it
.SH ENVIRONMENT
.TP
.B OSHCC_CC
the compiler of oshcc; cc without it
.TP
.B OSHCXX_CXX
the compiler of oshc++ and oshcxx; c++ without it
.SH EXAMPLES
.nf
.RS 4
oshcc ring.c \\-o ring
oshrun \\-n 4 ./ring
.RE
.fi"""


def wrapper_page(version):
    body = WRAPPER_TEXT.split("\n") + see_also(["gpushmem\\-run(1)"])
    return frame(", ".join(WRAPPERS), 1, "compile, link and start OpenSHMEM programs", version, body, WRAPPERS[0])


def see_also(pages):
    return [".SH SEE ALSO", ",\n".join(".BR %s (%s)" % tuple(re.match(r"(.*)\((.)\)", page).groups()) for page in pages)
            .replace("),\n", ") ,\n")]


def page_name(name):
    """gpushmem_TYPE_put: gpushmem_put. What only differs in the bits of an element has no page of its own."""
    return None if "BITS" in name or name.endswith(("_TYPES", "_SIZES")) else name.replace("TYPE_", "")


def summary_of(entry):
    """The first sentence, as the one line of apropos."""
    first = next((value for kind, value in entry.parts if kind == "text"), "") or "functions of gpushmem"
    first = re.sub(r"`", "", re.split(r"(?<=[a-z)])[.:;] ", first)[0].rstrip(".:;"))
    return first if len(first) < 120 else first[:110].rsplit(" ", 1)[0] + " ..."


def without_context(declaration):
    """The form without a context of one that has a context; None of others."""
    short = re.sub(r"gpushmem_ctx_(\w+)\(gpushmem_ctx_t ctx(, )?", r"gpushmem_\1(", declaration)
    return None if short == declaration else short.replace("()", "(void)")


def entry_page(header, entry, name, version):
    body = [".SH SYNOPSIS", ".nf", ".B #include <gpushmem/%s>" % escaped(header.name), ".PP"]
    without = [one for one in entry.declarations if without_context(one) not in entry.declarations]
    for declaration in without:
        body += [escaped(line) for line in reference.folded(declaration, 76).split("\n")]
    body += [".fi", ".SH DESCRIPTION"] + (parts(entry.parts) or ["See the header."])
    if without != entry.declarations:
        body += [".SH CONTEXTS", "Each of these functions gpushmem_X also exists as gpushmem_ctx_X, which takes the context first."]
    if re.search(r"\bTYPE\b|_TYPE_", "".join(entry.declarations)):
        body += [".SH TYPES", "TYPE is the word of a type in names (int, long, float, ...) and the type elsewhere;",
                 "in C11 and C++ it may be left out of the name."]
    body += [".SH ERRORS", "Functions that return int return 0 or a negative code;",
             ".BR gpushmem_last_error (3)", "has the sentence that belongs to it."]
    return frame(name, 3, summary_of(entry), version, body)


def write_headers(source, out, version):
    done, pages = set(), {}
    for header in headers.read(source):
        for entry in header.entries:
            pages.update((name, next(iter(filter(None, map(page_name, entry.names))), None)) for name in entry.names)
            names = [name for name in dict.fromkeys(map(page_name, entry.names)) if name and name not in done]
            if not names or not any("(" in declaration for declaration in entry.declarations):
                continue
            done.update(names)
            write(out, names[0], 3, entry_page(header, entry, names[0], version))
            for name in names[1:]:
                os.symlink(names[0] + ".3", "%s/man3/%s.3" % (out, name))
    return len(done), pages


def link_forms(source, out, pages):
    """Links for the names that stand in no header as they are: those with a type or a size, and OpenSHMEM's."""
    compiler = api_index.compiler()
    if not compiler:
        return 0
    links = {}
    for group in api_index.groups(source, compiler):
        for name, pattern in api_index.concrete(group).items():
            links[name] = pages.get(pattern) or pages.get(pattern.replace("_ctx_", "_", 1))
    for name in sorted(set(re.findall(r"\bshmem_\w+(?=\s*\()", api_index.preprocessed(source, compiler, "compat/shmem.h")))):
        pattern = api_index.family("gpu" + name)[0]
        links[name] = links.get("gpu" + name) or pages.get("gpu" + name)
        generic = "shmem_" + page_name(pattern)[9:] if page_name(pattern) else name
        links[generic] = links.get(generic) or links[name]
    # Forms with a context and those of warps and blocks are found without a type: packing costs milliseconds for each file.
    links = {name: page for name, page in links.items() if page and not re.search(r"_ctx_|_warp$|_block$", name)
             and not os.path.lexists("%s/man3/%s.3" % (out, name))}
    for name, page in links.items():
        os.symlink(page + ".3", "%s/man3/%s.3" % (out, name))
    return len(links)


def write(out, name, section, text):
    with open("%s/man%d/%s.%d" % (out, section, name, section), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, command, out = sys.argv[1:]
    commands, version = program.read(command), program.version(command)
    for section in (1, 3):
        shutil.rmtree("%s/man%d" % (out, section), ignore_errors=True)
        os.makedirs("%s/man%d" % (out, section))
    write(out, "gpushmem", 1, main_page(commands, version))
    for one in commands:
        if one.options:
            write(out, "gpushmem-" + one.name, 1, command_page(one, version))
    write(out, WRAPPERS[0], 1, wrapper_page(version))
    for name in WRAPPERS[1:]:
        os.symlink(WRAPPERS[0] + ".1", "%s/man1/%s.1" % (out, name))
    names, pages = write_headers(source, out, version)
    print("man: ok: %d names, %d links" % (names, link_forms(source, out, pages)))


if __name__ == "__main__":
    main()
