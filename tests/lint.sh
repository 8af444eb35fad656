#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh: checks what all sources have in common; exit code 0 when they are clean.
#
#   lint.sh [--build DIR] [CHECK...]    checks: format tidy shell spelling width layers (default: all)
#
# DIR is a build directory (default: build/nocuda, else build/dev) with its compile commands; layers looks at the objects in it
# too. What the checks want is in .clang-format, .clang-tidy, .shellcheckrc, .codespellrc, here, and in docs/architecture.md.
# `tests/setup.sh lint` installs the tools. Without the tool of a check it says so; exit code 77 then, if that was all.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

# Lines: code has 100 columns, all else 130. Long are only quoted sentences in scripts, links, and tables.
CODE_COLUMNS=100
TEXT_COLUMNS=130

# files PATTERN: tracked and new files whose names match
files() {
    git ls-files --cached --others --exclude-standard | grep -E "$1" | while read -r file; do
        [ -f "$file" ] && echo "$file"
    done
}

lint_format() {
    files '\.(c|h|cu|cuh|hpp|cpp)$' | xargs clang-format --dry-run -Werror
}

lint_tidy() {
    files '^(runtime|transports)/.*\.c$' | xargs -P "$(nproc)" -n 16 clang-tidy -p "$build" --quiet 2>/dev/null
}

lint_shell() {
    files '\.sh$|^tests/run$' | xargs shellcheck
}

lint_spelling() {
    files . | xargs codespell
}

lint_width() {
    local long
    long=$(
        files '\.(c|h|cu|cuh|hpp|cpp|def)$' | xargs grep -HnE "^.{$CODE_COLUMNS}."
        files '\.(sh|py|cmake)$|CMakeLists\.txt$' | xargs grep -HnE "^.{$TEXT_COLUMNS}." |
            grep -vE "\"[^\"]{50,}|'[^']{50,}"
        files '\.md$' | grep -v '^CHANGELOG' | xargs awk -v most="$TEXT_COLUMNS" '
            FNR == 1 { code = 0 }
            /^```/ { code = !code }
            !code && length > most && !/^(\||    )/ && !/https?:/ { print FILENAME ":" FNR ": " $0 }'
    )
    [ -z "$long" ] && return
    echo "longer than $CODE_COLUMNS columns (code) or $TEXT_COLUMNS (scripts and prose):"
    cut -c1-120 <<<"$long"
    return 1
}

lint_layers() {
    tests/house/lint/layers.py --build "$build" .
}

build=
for build in build/nocuda build/dev; do
    [ ! -f "$build/compile_commands.json" ] || break
done
if [ "${1:-}" = --build ]; then
    build=${2:?--build wants a directory}
    shift 2
fi
[ $# -gt 0 ] || set -- format tidy shell spelling width layers

declare -A tool=([format]=clang-format [tidy]=clang-tidy [shell]=shellcheck [spelling]=codespell)
failed=0 missing=0
for check in "$@"; do
    case $check in
    format | tidy | shell | spelling | width | layers) ;;
    *) echo "lint.sh: no check '$check': format, tidy, shell, spelling, width, layers" >&2 && exit 2 ;;
    esac
    if ! command -v "${tool[$check]:-python3}" >/dev/null; then
        echo "lint.sh: $check: there is no ${tool[$check]:-python3} here; tests/setup.sh lint" >&2
        missing=1
    elif ! "lint_$check"; then
        echo "lint.sh: $check: not clean" >&2
        failed=1
    fi
done
[ $failed = 0 ] && [ $missing = 1 ] && exit 77
exit $failed
