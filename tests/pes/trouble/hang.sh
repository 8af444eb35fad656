#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What is said about a job that hangs: by the PEs, by `gpushmem run` in one sentence, by
# `gpushmem stat`, and under a launcher that asks nothing. usage: hang.sh GPUSHMEM HANG SOFTHCA
set -u
gpushmem=$1
hang=$2
failures=0
log=$(mktemp -d)
# shellcheck disable=SC2154 # pid is the loop's
trap 'for pid in ${job-} ${alone-}; do kill "$pid" 2>/dev/null; done; rm -rf "$log"' EXIT
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=16M

# begin COMMAND...: starts a job that hangs; its output goes to $log/out.
begin() {
    : >"$log/out"
    "$@" >"$log/out" 2>&1 &
    job=$!
}

# Ends the job that hangs.
end() {
    kill "$job"
    wait "$job" 2>/dev/null
    job=
}

# hears CASE PATTERN [COMMAND...]: the output of the job, or of the command, has a line like that, now or later.
hears() {
    for ((i = 0; i < 300; i++)); do
        [ $# -eq 2 ] || "${@:3}" >"$log/answer" 2>&1
        if grep -Eq -- "$2" "$log/$([ $# -eq 2 ] && echo out || echo answer)"; then
            echo "ok: $1"
            return
        fi
        sleep 0.1
    done
    echo "FAILED: $1: no line like '$2' in:" "$(cat "$log"/*)"
    failures=$((failures + 1))
}

# refuses CASE WORDS COMMAND...: the command fails with these words.
refuses() {
    if "${@:3}" >"$log/answer" 2>&1 || ! grep -qF -- "$2" "$log/answer"; then
        echo "FAILED: $1: not refused with '$2': $(cat "$log/answer")"
        failures=$((failures + 1))
    else
        echo "ok: $1"
    fi
}

late='PE 2 has not reached barrier [0-9]+ \(gpushmem_barrier_all\); PEs 0-1 wait for it'
export GPUSHMEM_HANG_REPORT=1
# Without a launcher that listens a PE says it all: standard error is not what the launcher gave it. That takes longest.
"$gpushmem" run -n 3 sh -c '"$0" barrier 2>&1 | cat' "$hang" >"$log/alone" 2>&1 &
alone=$!
begin "$gpushmem" run -n 3 "$hang" barrier
hears "a PE says what it waits for" "^gpushmem\[[01](-1)?\] WARN wait: in gpushmem_barrier_all for 1 s .*, waiting for PE 2$"
hears "the launcher says who is late" "^gpushmem run: $late. It is in no wait of the library$"
end
begin "$gpushmem" run -n 4 "$hang" alone
hears "a PE waits for several" "^gpushmem\[0\] WARN wait: in gpushmem_barrier_all for 1 s .*, waiting for PEs 1, 2 and 3$"
end
begin "$gpushmem" run -n 3 "$hang" leave
hears "a PE that ends without finalize is late" "^gpushmem run: $late. PE 2 has ended without gpushmem_finalize$"
end
begin "$gpushmem" run -n 3 "$hang" finalize
hears "a PE that is alone in finalize says so" \
    "^gpushmem\[2\] WARN finalize: this PE leaves the job without .*: PE 2 calls gpushmem_finalize\(\), PE 0 gpushmem_barrier_all"
end
begin "$gpushmem" run -n 3 "$hang" init
hears "a PE waits in init" "^gpushmem\[[01](-1)?\] WARN wait: in gpushmem_init for 1 s .*, waiting for all PEs of the job to call it$"
hears "the launcher says who has not called init" "^gpushmem run: PE 2 has not called gpushmem_init; PEs 0-1 wait for it in there$"
kill -USR1 "$job"
hears "a PE in init answers" "^gpushmem\[[01](-1)?\] WARN wait: SIGUSR1: in gpushmem_init, waiting for all PEs"
end
export GPUSHMEM_HANG_REPORT=0
begin "$gpushmem" run -n 3 "$hang" lock
hears "stat tells whose turn is before" "^[01] .* gpushmem_set_lock +waiting for the lock at heap offset [0-9]+, which PE 2 has or gets" \
    "$gpushmem" stat --waits "$job"
end
# What PEs of other nodes have entered is not seen, but one of them is waited for.
begin env LD_PRELOAD="$3" GPUSHMEM_SOFTHCA_DIR="$log/hca" GPUSHMEM_SOFTHCA_QUIET=1 GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_HEAP_KIND=host \
    "$gpushmem" run -n 3 --nodes 3 "$hang" barrier
hears "stat names a PE of another node" "^1 .* gpushmem_barrier_all +waiting for PE (0|2) or a PE that it waits for$" \
    "$gpushmem" stat --waits "$job"
end
begin "$gpushmem" run -n 3 "$hang" team
hears "stat finds who is late for a team" '^PE 2 has not reached operation [0-9]+ of GPUSHMEM_TEAM_WORLD \(gpushmem_team_sync\); PEs 0-1 wait for it' \
    "$gpushmem" stat --waits "$job"
hears "stat lists jobs" "^[^ ]+ +3 +3 +gpushmem run, process $job$" "$gpushmem" stat
name=$("$gpushmem" stat | sed -n "s/ .*process $job$//p")
hears "stat takes a job's name" "^0 .* gpushmem_team_sync +waiting for PE 2, rank 2 of 3 in GPUSHMEM_TEAM_WORLD$" "$gpushmem" stat --waits "$name"
end
begin "$gpushmem" run -n 2 "$hang" word
hears "stat tells a word's value" \
    "^PE 0 is in gpushmem_long_wait_until, waiting for the word at heap offset [0-9]+, which is 0, to be >= 7; PE 1 is in no wait" \
    "$gpushmem" stat --waits "$job"
kill -USR1 "$job"
hears "the launcher says it when it is asked" "^gpushmem run: PE 0 is in gpushmem_long_wait_until, "
grep -q "HANG_REPORT" "$log/out" && { echo "FAILED: GPUSHMEM_HANG_REPORT=0 reports"; failures=$((failures + 1)); }
end
hears "a PE says who is late" "^gpushmem\[0\] WARN hang: $late" cat "$log/alone"
kill "$alone"
GPUSHMEM_TRANSPORTS=loop begin "$hang" count
hears "counters of the API" "^counted right: "
total=$(sed -n 's/^counted right: \([0-9]*\) operations, .*/\1/p' "$log/out")
bytes=$(sed -n 's/^counted right: .*, \([0-9]*\) bytes/\1/p' "$log/out")
hears "stat prints them" "^0 +default context +loop +0 +$total +$total +$bytes +0 +0 +0 +0 +0 +0 +0$" "$gpushmem" stat "$job"
hears "stat prints them for Prometheus" \
    "^gpushmem_bytes_total\{job=\"[^\"]+\",pe=\"0\",owner=\"default context\",transport=\"loop\",peer=\"0\"\} $bytes$" \
    "$gpushmem" stat --prometheus "$job"
# A terminal gets it again and again, until no PE is left. The process goes on after its finalize.
python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$gpushmem" stat "$job" >"$log/out" 2>&1 </dev/null &
screen=$!
hears "stat refreshes a terminal" "job .*: 1 of its 1 PEs run on this host"
kill -USR2 "$job"
wait "$screen"
echo "ok: stat ends when the PE finalizes"
end
refuses "a process that is no PE" "process $$ is no PE" "$gpushmem" stat --waits $$
if [ "$(id -u)" -eq 0 ]; then
    setpriv --reuid=65534 --clear-groups sleep 60 &
    alone=$!
    hears "a process of another user" "^gpushmem stat: process $alone belongs to another user" "$gpushmem" stat "$alone"
    kill "$alone"
fi
refuses "a process that is not there" "there is no process 1073741823" "$gpushmem" stat --waits 1073741823
refuses "a job that is not there" "is called 'nowhere'" "$gpushmem" stat --waits nowhere
refuses "no job" "it takes one job" "$gpushmem" stat --waits
[ $failures -eq 0 ]
