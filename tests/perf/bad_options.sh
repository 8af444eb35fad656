#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# bad_options.sh GPUSHMEM: each mistake ends with exit code 2 and one sentence that names it, and starts no job.
set -u
gpushmem=$1
failed=0

# refused WORD ARGUMENT...: the sentence must contain WORD.
refused() {
    local word=$1 text status
    shift
    text=$("$gpushmem" perf "$@" 2>&1)
    status=$?
    if [ "$status" != 2 ] || [[ "$text" != *"$word"* ]] || [ "$(wc -l <<<"$text")" != 1 ]; then
        echo "gpushmem perf $*: exit code $status, output: $text"
        failed=1
    fi
}

refused "no test given"
refused "'put-late'" put-late
refused "'--frobnicate'" put-lat --frobnicate
refused "needs a value" put-lat --json
refused "'gpu'" put-lat --issuer gpu
refused "'0'" put-lat --sizes 0
refused "'8x'" put-lat --sizes 8x
refused "'5G'" put-lat --sizes 5G
refused "--min 1024 is more than --max 64" put-lat --min 1K --max 64
refused "'-3'" put-lat --rounds -3
refused "'nan'" put-lat --seconds nan
refused "cannot write --json /nowhere/rows.json" put-lat --json /nowhere/rows.json
refused "needs two values (D|H D|H), only 'D' follows it" put-lat -d D
refused "needs two values" put-lat --memory D --issuer host
refused "-d 'D X' is not D D, D H, H D or H H" put-lat -d D X
refused "--memory 'gpu cpu'" put-lat --memory gpu cpu
refused "no test given" -d H H
refused "'0'" put-lat --pairs 0
refused "takes no value" put-bw --bidirectional=1
refused "with --from nothing is measured: leave out put-lat" put-lat --from a.json --plot b.svg
refused "leave out --json" --from a.json --json b.json --compare c.json
refused "--from needs --compare FILE or --plot FILE" --from a.json
refused "cannot read /nowhere/rows.json" put-lat --compare /nowhere/rows.json
refused "cannot write --plot /nowhere/rows.svg" put-lat --plot /nowhere/rows.svg
refused "'-' is none" put-lat --plot -
refused "'5.5'" put-lat --tolerance 5.5
refused "more than 4 times" put-lat --compare a --compare b --compare c --compare d --compare e
"$gpushmem" perf --help | grep -q 'usage: gpushmem perf' || failed=1
exit $failed
