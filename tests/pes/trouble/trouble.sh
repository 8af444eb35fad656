#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086 # words are split on purpose
# Bad settings and bad conditions: each ends in one clear sentence and a non-zero code, or is survived. usage: trouble.sh BIN_DIR
set -u
bin=$1
failures=0

# shellcheck source=cases.sh
. "$(dirname "$0")/cases.sh"

run="$bin/gpushmem run"
says "malformed setting" "GPUSHMEM_HEAP_SIZE=lots" env GPUSHMEM_HEAP_SIZE=lots $run -n 2 "$bin/lifecycle"
says "setting out of range" "from 1 to 256" env GPUSHMEM_RINGS=1000 "$bin/lifecycle"
says "heap larger than memory" "set it to at most" env GPUSHMEM_HEAP_SIZE=8T $run -n 2 "$bin/lifecycle"
says "many heaps larger than memory" "there are 4" env GPUSHMEM_HEAP_SIZE=1T $run -n 4 "$bin/lifecycle"
says "verbs required, no device" "GPUSHMEM_TRANSPORTS=verbs" env GPUSHMEM_TRANSPORTS=verbs $run -n 2 "$bin/lifecycle"
says "loop reaches no other process" "reached by none" env GPUSHMEM_TRANSPORTS=loop $run -n 2 "$bin/lifecycle"
says "processor atomics across nodes" "PE " env GPUSHMEM_AMO_AGENT=cpu GPUSHMEM_TRANSPORTS=p2p $run -n 2 --nodes 2 "$bin/lifecycle"
says "NIC atomics without a NIC" "GPUSHMEM_AMO_AGENT=nic: no NIC executes atomics for every PE (verbs is not in" \
    env GPUSHMEM_AMO_AGENT=nic GPUSHMEM_TRANSPORTS=p2p "$bin/lifecycle"
says "bad CPUs for proxies, none needed" "GPUSHMEM_PROXY_CPUS=4- is no list of CPUs" env GPUSHMEM_PROXY_CPUS=4- "$bin/lifecycle"
works "statistics of a job without rings" "stats: host             direct       0" env GPUSHMEM_STATS=1 "$bin/lifecycle"
works "statistics of a job without operations" "stats: nothing was counted" env GPUSHMEM_STATS=1 "$bin/process_heap_size" 256
says "log file in no directory" "GPUSHMEM_LOG_FILE=/nowhere/log" env GPUSHMEM_LOG_FILE=/nowhere/log "$bin/lifecycle"
# Whatever is there under the log's name, nobody waits for it and nobody else's file is written to.
odd=$(mktemp -d)
mkfifo "$odd/fifo"
echo mine >"$odd/file"
ln "$odd/file" "$odd/twin"
ln -s file "$odd/link"
ln -s nothing "$odd/dangling"
mkdir "$odd/directory"
for name in fifo twin link dangling directory; do
    says "log file is a $name" "GPUSHMEM_LOG_FILE=$odd/$name cannot be opened for writing" \
        env "GPUSHMEM_LOG_FILE=$odd/$name" timeout 20 "$bin/lifecycle"
done
if [ "$(cat "$odd/file")" != mine ] || [ -e "$odd/nothing" ]; then
    echo "FAILED: a link was followed"
    failures=$((failures + 1))
fi
if [ "$(id -u)" = 0 ]; then
    echo theirs >"$odd/theirs"
    chown 65534 "$odd/theirs"
    says "log file of another user" "$odd/theirs cannot be opened for writing" \
        env "GPUSHMEM_LOG_FILE=$odd/theirs" "$bin/lifecycle"
fi
works "log on standard output" "INFO " sh -c 'GPUSHMEM_LOG_LEVEL=debug GPUSHMEM_LOG_FILE=/dev/stdout exec "$0"' "$bin/lifecycle"
works "log to nowhere" "" env GPUSHMEM_LOG_LEVEL=debug GPUSHMEM_LOG_FILE=/dev/null "$bin/lifecycle"
works "log in a new file" "INFO " sh -c 'GPUSHMEM_LOG_LEVEL=debug GPUSHMEM_LOG_FILE=$1 "$0" && cat "$1"' \
    "$bin/lifecycle" "$odd/new"
rm -r "$odd"
says "device heap without a GPU" "GPUSHMEM_HEAP_KIND" env CUDA_VISIBLE_DEVICES= GPUSHMEM_HEAP_KIND=device "$bin/lifecycle"
says "numbers that have no room for pieces" "GPUSHMEM_TEST_TEAM_EPOCH" env GPUSHMEM_TEST_TEAM_EPOCH=8796093022209 "$bin/lifecycle"
says "different heaps" "GPUSHMEM_HEAP_SIZE" $run -n 2 sh -c \
    'GPUSHMEM_HEAP_SIZE=$((16 + GPUSHMEM_RUN_PE))M exec "$0"' "$bin/lifecycle"
says "different ways of collectives" "dense=1048576,copies=268435456,blocks=64,nodes=1,round=0; set it alike for all PEs" $run -n 2 sh -c \
    'GPUSHMEM_COLLECTIVES=packets=$((64 + GPUSHMEM_RUN_PE))K exec "$0"' "$bin/lifecycle"
works "the same ways, written in two ways" "" $run -n 2 sh -c \
    'GPUSHMEM_COLLECTIVES=$([ $GPUSHMEM_RUN_PE = 0 ] && echo packets=64K || echo packets=65536) exec "$0"' "$bin/lifecycle"
says "different teams" "set them alike for all PEs" $run -n 2 sh -c \
    'GPUSHMEM_TEAM_MEMORY=$((8 + GPUSHMEM_RUN_PE))M exec "$0"' "$bin/lifecycle"
says "operations counted from different numbers" "PE 1 has GPUSHMEM_TEST_TEAM_EPOCH=1, this PE 0; set it alike" \
    $run --on-failure continue -n 2 sh -c 'GPUSHMEM_TEST_TEAM_EPOCH=$GPUSHMEM_RUN_PE exec "$0"' "$bin/lifecycle"
says "one PE cannot initialise" "PE 1 on" $run --on-failure continue -n 3 sh -c \
    'if [ $GPUSHMEM_RUN_PE = 1 ]; then export GPUSHMEM_HEAP_SIZE=8T; fi; exec "$0"' "$bin/lifecycle"
works "unknown setting" "GPUSHMEM_HEEP_SIZE: unknown setting, ignored; did you mean GPUSHMEM_HEAP_SIZE" env GPUSHMEM_HEEP_SIZE=1G $run -n 2 "$bin/lifecycle"
works "memory still allocated at finalize" "still allocated" $run -n 2 "$bin/lifecycle" leak
works "values of PEs that there are not" "gpushmem_long_atomic_fetch: there is no PE 98" "$bin/lifecycle" nowhere
[ "$(grep -c 'WARN api: a call failed that could not return it: gpushmem_long_g: there is no PE 99' <<<"$output")" = 1 ] &&
    [ "$(grep -c 'WARN api: a call failed that could not return it' <<<"$output")" = 2 ]
verdict "each of them" "one warning"
# The limit is also one for the PEs' way into init.
says "barrier that a PE does not enter" "gpushmem_barrier_all: timed out after 3000 ms (GPUSHMEM_WAIT_TIMEOUT_MS) for PE 1" \
    env GPUSHMEM_WAIT_TIMEOUT_MS=3000 $run --grace 0 -n 3 "$bin/lifecycle" absent
has "SIGUSR1: in gpushmem_barrier_all, waiting for PE 1"
verdict "the same, asked for" "an answer to SIGUSR1"
says "allocation that a PE does not enter" "ERROR heap: an allocation is NULL: gpushmem_malloc: timed out after 3000 ms" \
    env GPUSHMEM_WAIT_TIMEOUT_MS=3000 $run --grace 0 -n 3 "$bin/lifecycle" apart
works "choice of transport is logged" "PE 1 by p2p" env GPUSHMEM_LOG_LEVEL=info $run -n 2 "$bin/lifecycle"
says "killed PE ends the job" "killed by signal 9" $run -n 3 "$bin/victim" 1
works "killed PE, the others report it" "survivor 0: " env GPUSHMEM_ON_PE_FAILURE=notify \
    sh -c '"$@" || [ $? = 137 ]' - $run --on-failure continue -n 3 "$bin/victim" 1
# A full /dev/shm is no obstacle: heaps have no name there. Shown in a mount namespace with a tiny one, where that is possible.
if unshare -m true 2>/dev/null; then
    works "full /dev/shm" "done" unshare -m sh -c \
        'mount -t tmpfs -o size=64k tmpfs /dev/shm && dd if=/dev/zero of=/dev/shm/full bs=64k count=1 2>/dev/null; "$@" && echo done' \
        - $run -n 2 "$bin/lifecycle"
fi
[ $failures -eq 0 ]
