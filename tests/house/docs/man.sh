#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# man.sh PYTHON SOURCE PROGRAM: the man pages are made of what the headers and the program say, and mandoc has nothing against
# them; the completion for bash offers what --help lists.
set -euo pipefail
python=$1 source=$2 program=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    echo "man: $*"
    exit 1
}

"$python" -B "$source/docs/site/man.py" "$source" "$program" "$work"
"$python" -B "$source/docs/site/completion.py" "$program" "$work/completion"

# Every command and each option of it has its place on a page.
plain() {
    sed 's/\\-/-/g; s/\\e/\\/g' "$work/$1"
}
commands=$("$program" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 5 ] || die "'$program help' lists only: $commands"
options=0
for command in $commands; do
    plain man1/gpushmem.1 | grep -q "^\.B $command\$" || die "gpushmem.1 does not name the command $command"
    [ -f "$work/man1/gpushmem-$command.1" ] || continue
    for option in $("$program" "$command" --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        plain "man1/gpushmem-$command.1" | grep -q "^\.B .*$option" || die "gpushmem-$command.1 does not name $option"
        options=$((options + 1))
    done
done
plain man1/gpushmem.1 | grep -q '^\.I /etc/gpushmem/settings.conf$' || die "gpushmem.1 does not name the settings files"
for wrapper in oshcc oshc++ oshcxx oshrun shmem_info oshfort; do
    grep -q "^\.B $wrapper\$\|^\.BR $wrapper " "$work/man1/$wrapper.1" || die "$wrapper.1 does not name $wrapper"
    sed -n '/^\.SH NAME/{n;p;}' "$work/man1/$wrapper.1" | grep -q "\b${wrapper}[, ]" || die "apropos does not find $wrapper"
done
! grep -o 'OSH[A-Z]*_[A-Z]*' "$work/man1/oshcc.1" | grep -vx 'OSHCC_CC\|OSHCXX_CXX' || die "oshcc.1 names other variables"
[ "$options" -gt 15 ] || die "only $options options were looked for: does this test still see them?"
for page in put malloc init quiet dev_put team_split_strided barrier_all TYPE; do
    if [ "$page" = TYPE ]; then
        [ -z "$(ls "$work"/man3/*TYPE* 2>/dev/null)" ] || die "there are pages with TYPE in their name"
    else
        grep -q '^\.SH DESCRIPTION' "$work/man3/gpushmem_$page.3" || die "gpushmem_$page.3 has no description"
    fi
done
# Every form is found under its own name, and the link leads to the page that has it.
for form in long_put:put dev_int_put:dev_p put64_nbi:put float_sum_reduce_on_stream:sum_reduce_on_stream; do
    to=$(readlink "$work/man3/gpushmem_${form%:*}.3")
    [ "$to" = "gpushmem_${form#*:}.3" ] || die "gpushmem_${form%:*}.3 leads to '$to'"
done
for name in put long_put int_get malloc barrier_all; do
    [ -e "$work/man3/shmem_$name.3" ] || die "shmem_$name has no page"
done
[ -z "$(find "$work/man3" -xtype l)" ] || die "links that lead nowhere: $(find "$work/man3" -xtype l | head -n 3)"

if command -v mandoc >/dev/null; then
    # One page has no date, or the same sources would give another page each day.
    wrong=$(find "$work" -name '*.[13]' -type f -exec mandoc -Tlint -Wwarning {} + | grep -v 'missing date' || true)
    [ -z "$wrong" ] || die "mandoc objects:"$'\n'"$wrong"
fi

# completes WORD...: what bash is offered after these words.
completes() {
    bash -c '. "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _gpushmem && echo "${COMPREPLY[*]}"' \
        bash "$work/completion/gpushmem" "$@"
}
[ "$(completes gpushmem ru)" = run ] || die "'ru' becomes: $(completes gpushmem ru)"
[ "$(completes gpushmem run --on)" = --on-failure ] || die "'run --on' becomes: $(completes gpushmem run --on)"
[ "$(completes gpushmem run --bind c)" = core ] || die "'run --bind c' becomes: $(completes gpushmem run --bind c)"
[ "$(completes gpushmem trace m)" = merge ] || die "'trace m' becomes: $(completes gpushmem trace m)"
[ -z "$(completes gpushmem topo --xml '')" ] || die "'topo --xml' becomes: $(completes gpushmem topo --xml ''), not files"
[ -n "$(completes gpushmem topo --json '')" ] || die "nothing is offered behind 'topo --json', which takes no value"
[ -z "$(completes gpushmem run --nothing)" ] || die "'run --nothing' becomes: $(completes gpushmem run --nothing)"
if "$program" perf --help >/dev/null 2>&1; then # an option with a value of two words
    plain man1/gpushmem-perf.1 | grep -qF '.B -d, --memory D|H D|H' || die "gpushmem-perf.1 does not name both values of --memory"
    [ "$(completes gpushmem perf -d '')" = 'D H' ] || die "'perf -d' becomes: $(completes gpushmem perf -d '')"
fi
for option in $("$program" run --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    [[ " $(completes gpushmem run "$option") " == *" $option "* ]] || die "bash is not offered run $option"
    grep -q -- "'$option\[" "$work/completion/_gpushmem" || die "zsh is not offered run $option"
done
! command -v zsh >/dev/null || zsh -n "$work/completion/_gpushmem" || die "zsh cannot read the completion"
echo "man: ok: $options options"
