#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls that must not compile, each beside one that must: a type without functions, pointers of different types, a constant
# destination, a float where bits are combined. usage: refused.sh CC CXX
set -u
cc=$1 cxx=$2
include=$(cd "$(dirname "$0")/../../../include" && pwd)
failures=0

# compiles LANGUAGE STATEMENT
compiles() {
    local compiler=$cc standard=c11
    [ "$1" = c ] || compiler=$cxx standard=c++17
    printf '%s\n' '#include "gpushmem/gpushmem.h"' 'struct other { int x; };' \
        'void f(int *i, const int *ci, double *d, struct other *o, unsigned *u, gpushmem_ctx_t ctx);' \
        'void f(int *i, const int *ci, double *d, struct other *o, unsigned *u, gpushmem_ctx_t ctx)' \
        "{ (void)i; (void)ci; (void)d; (void)o; (void)u; (void)ctx; $2 }" |
        "$compiler" -x "$([ "$1" = c ] && echo c || echo c++)" \
            -std="$standard" -Wall -Werror -fsyntax-only -I "$include" - 2>/dev/null
}

# only GOOD BAD: in C and C++, the first compiles and the second does not
good=()
only() {
    local language
    good+=("$1")
    for language in c c++; do
        ! compiles $language "$2" || { echo "FAILED: $language accepts: $2" && failures=$((failures + 1)); }
    done
}

# All that must compile, in one go: one by one only to tell which do not.
all_compile() {
    local language statement
    for language in c c++; do
        ! compiles $language "${good[*]}" || continue
        echo "FAILED: $language refuses at least one of those that must compile" && failures=$((failures + 1))
        for statement in "${good[@]}"; do
            compiles $language "$statement" || echo "   $language refuses: $statement"
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
all_compile
# A put of a struct ends in one sentence, with the way out, and not in a list of all overloads.
for call in 'put(o, o, 1, 0)' 'get_nbi(ctx, o, o, 1, 0)'; do
    said=$(printf '#include "gpushmem/gpushmem.h"\nstruct other { int x; };\nvoid f(struct other *o, gpushmem_ctx_t ctx) { gpushmem_%s; (void)ctx; }\n' "$call" |
        "$cxx" -x c++ -std=c++17 -fsyntax-only -I "$include" - 2>&1)
    lines=$(wc -l <<<"$said")
    if ! grep -q 'has no form for this type of elements: use gpushmem_.*mem' <<<"$said" || [ "$lines" -gt 20 ]; then
        echo "FAILED: C++ says of gpushmem_$call, in $lines lines: $(head -3 <<<"$said")"
        failures=$((failures + 1))
    fi
done
# In C the function that the compiler names says the same.
for call in 'put(o, o, 1, 0)' 'get_nbi(ctx, o, o, 1, 0)' 'put_on_stream(o, o, 1, 0, 0)'; do
    said=$(printf '#include "gpushmem/gpushmem.h"\nstruct other { int x; };\nvoid f(struct other *o, gpushmem_ctx_t ctx) { gpushmem_%s; (void)ctx; }\n' "$call" |
        "$cc" -x c -std=c11 -fsyntax-only -I "$include" - 2>&1)
    if ! grep -q 'gpushmem_no_function_for_this_type_use_putmem_or_getmem' <<<"$said"; then
        echo "FAILED: C says of gpushmem_$call: $(grep -m 1 error <<<"$said")"
        failures=$((failures + 1))
    fi
done
[ $failures = 0 ] && echo "refused: ok"
exit $((failures != 0))
