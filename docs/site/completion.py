#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the completion of the program's commands, options and their words for bash and zsh, of what it says with --help.

usage: completion.py PROGRAM OUT: writes OUT/gpushmem (bash) and OUT/_gpushmem (zsh)"""
import os
import re
import sys

import program

BASH = """# SPDX-License-Identifier: BSD-3-Clause
# Completion of gpushmem for bash; made of the program's --help.
_gpushmem()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=''
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        words='%(commands)s'
    else
        case "${COMP_WORDS[1]} $before" in
%(values)s
            %(others)s) return ;; # a value of any other kind: files, as bash offers them
        esac
        [ -n "$words" ] || case ${COMP_WORDS[1]} in
%(options)s
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _gpushmem gpushmem
"""

ZSH = """#compdef gpushmem
# SPDX-License-Identifier: BSD-3-Clause
# Completion of gpushmem for zsh; made of the program's --help.
_gpushmem() {
    local -a commands=(
%(commands)s
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    case $words[2] in
%(options)s
    esac
}
_gpushmem "$@"
"""


def flags(option):
    return [one for one in ("-" + option[0] if option[0] else "", "--" + option[1] if option[1] else "") if one]


def choices(option):
    """The words that an option takes, if its --help lists them: none|core|numa; of two values those of the first."""
    return option[2].split()[0].split("|") if option[2] and "|" in option[2] else []


def words(command):
    """The words that stand where others have operands, in its usage: merge of trace."""
    return re.findall(r"^gpushmem %s ([a-z]+)\b" % command.name, command.usage)


def bash(commands):
    others = ["'%s %s'" % (command.name, flag) for command in commands for option in command.options
              if option[2] and not choices(option) for flag in flags(option)]
    values = ["            '%s') words='%s' ;;" % ("' | '".join("%s %s" % (command.name, flag) for flag in flags(option)),
                                                  " ".join(choices(option)))
              for command in commands for option in command.options if choices(option)]
    options = ["            %s) words='%s' ;;" % (command.name, " ".join(words(command) + [flag for option in command.options for flag in flags(option)]))
               for command in commands if command.options]
    return BASH % {"commands": " ".join(command.name for command in commands), "values": "\n".join(values),
                   "others": " | ".join(others), "options": "\n".join(options)}


def quoted(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh(commands):
    options = []
    for command in commands:
        rows = ["'%s[%s]%s'" % (flag, quoted(option[3]), ":%s:%s" % (quoted(option[2]), "(%s)" % " ".join(choices(option))
                                                                       if choices(option) else "_files") if option[2] else "")
                for option in command.options for flag in flags(option)]
        if rows:
            options.append("        %s) _arguments %s '*:file:_files' ;;"
                           % (command.name, " ".join(rows + ["':word:(%s)'" % word for word in words(command)])))
    return ZSH % {"commands": "\n".join("        '%s:%s'" % (command.name, quoted(command.summary)) for command in commands),
                  "options": "\n".join(options)}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    commands, out = program.read(sys.argv[1]), sys.argv[2]
    os.makedirs(out, exist_ok=True)
    for name, text in (("gpushmem", bash(commands)), ("_gpushmem", zsh(commands))):
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
