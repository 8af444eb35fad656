#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls that must not compile, each beside one that must: a type without functions, pointers of different types, a constant
# destination, a float where bits are combined. usage: refused.sh CC CXX
set -u
cc=$1 cxx=$2
include=$(cd "$(dirname "$0")/../../../include" && pwd)
failures=0

# checked LANGUAGE: what the compiler says of standard input
checked() {
    local compiler=$cc standard=c11
    [ "$1" = c ] || compiler=$cxx standard=c++17
    "$compiler" -x "$1" -std="$standard" -Wall -Werror -fsyntax-only -fmax-errors=0 -I "$include" - 2>&1
}

# function NUMBER STATEMENT: on a line of its own, where compilers say that it is
function_of() {
    printf '#line %d "case"\nvoid f%d(int *i, const int *ci, double *d, unsigned *u, gpushmem_ctx_t ctx); ' "$1" "$1"
    printf 'void f%d(int *i, const int *ci, double *d, unsigned *u, gpushmem_ctx_t ctx) ' "$1"
    # A type of its own for each: a template is refused for the same type only once.
    printf '{ struct other { int x; } *o = 0; (void)i; (void)ci; (void)d; (void)o; (void)u; (void)ctx; %s }\n' "$2"
}

# only GOOD BAD: in C and C++, the first compiles and the second does not
good=() bad=()
only() {
    good+=("$1")
    bad+=("$2")
}

# The good ones are functions 1, 2, 3 ..., the bad ones 1001, 1002 ...; one compilation of all for each language.
compile_all() {
    local language said i
    for language in c c++; do
        said=$(
            {
                echo '#include "gpushmem/gpushmem.h"'
                for i in "${!good[@]}"; do
                    function_of $((1 + i)) "${good[i]}"
                    function_of $((1001 + i)) "${bad[i]}"
                done
            } | checked $language
        )
        for i in "${!good[@]}"; do
            ! grep -q "case:$((1 + i)):" <<<"$said" ||
                { echo "FAILED: $language refuses: ${good[i]}" && failures=$((failures + 1)); }
            grep -q "case:$((1001 + i)):" <<<"$said" ||
                { echo "FAILED: $language accepts: ${bad[i]}" && failures=$((failures + 1)); }
        done
    done
}

only 'gpushmem_put(i, ci, 1, 0);' 'gpushmem_put(o, o, 1, 0);'
only 'gpushmem_put(d, d, 1, 0);' 'gpushmem_put(i, d, 1, 0);'
only 'gpushmem_put(ctx, i, ci, 1, 0);' 'gpushmem_put(ci, i, 1, 0);'
only 'gpushmem_put_on_stream(i, ci, 1, 0, 0);' 'gpushmem_put_on_stream(o, o, 1, 0, 0);'
only 'gpushmem_get(i, ci, 1, 0);' 'gpushmem_get(ci, i, 1, 0);'
only 'gpushmem_p(i, 3, 0);' 'gpushmem_p(o, *o, 0);'
only 'gpushmem_atomic_set(d, 1.0, 0);' 'gpushmem_atomic_add(d, 1.0, 0);'
only 'gpushmem_atomic_and(u, 1u, 0);' 'gpushmem_atomic_and(d, 1.0, 0);'
only 'gpushmem_wait_until(u, GPUSHMEM_CMP_EQ, 1u);' 'gpushmem_wait_until(d, GPUSHMEM_CMP_EQ, 1.0);'
only 'gpushmem_atomic_fetch_inc(ctx, i, 0);' 'gpushmem_atomic_fetch_inc(ctx, o, 0);'
compile_all
# A put of a struct ends in one sentence, with the way out, and not in a list of all overloads. In C the function that the
# compiler names says the same.
structs=('put(o, o, 1, 0)' 'get_nbi(ctx, o, o, 1, 0)' 'put_on_stream(o, o, 1, 0, 0)')
say() {
    local i
    {
        echo '#include "gpushmem/gpushmem.h"'
        for ((i = 0; i < $2; i++)); do
            function_of $((1 + i)) "gpushmem_${structs[i]};"
        done
    } | checked "$1"
}
# says LANGUAGE CALLS LINES TEXT: that text for each of so many calls, in so many lines at most
says() {
    local said lines
    said=$(say "$1" "$2")
    lines=$(wc -l <<<"$said")
    [ "$(grep 'error:' <<<"$said" | grep -c "$4")" = "$2" ] && [ "$lines" -le "$3" ] ||
        { echo "FAILED: $1 says of $2 calls, in $lines lines: $said" | head -20 && failures=$((failures + 1)); }
}
says c++ 2 40 'has no form for this type of elements: use gpushmem_.*mem'
says c 3 1000 'gpushmem_no_function_for_this_type_use_putmem_or_getmem'
[ $failures = 0 ] && echo "refused: ok"
exit $((failures != 0))
