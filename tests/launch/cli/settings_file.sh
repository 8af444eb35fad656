#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# settings_file.sh GPUSHMEM: settings files as the program, its launcher and jobs see them.
set -u
[ ! -e /etc/gpushmem/settings.conf ] || { echo "this machine has a settings file of its own"; exit 77; }
gpushmem=$1
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CONFIG_HOME='' GPUSHMEM_SETTINGS_FILE='' GPUSHMEM_TRANSPORTS=p2p
file=$work/.config/gpushmem/settings.conf
mkdir -p "${file%/*}"

expect 0 '^settings file ~/.config/gpushmem/settings.conf: there is none$' "$gpushmem" info
cat >"$file" <<'END'
# of this user
GPUSHMEM_RINGS = 7
GPUSHMEM_HEAP_SIZE = 48M   # small
GPUSHMEM_ON_PE_FAILURE = Notify
GPUSHMEM_TEEMS = 3
END
expect 0 '^settings file ~/.config/gpushmem/settings.conf: 3 settings$' "$gpushmem" info
expect 0 '^GPUSHMEM_RINGS +7 +~/.config/gpushmem/settings.conf:2 +command rings ' "$gpushmem" info
expect 0 '^GPUSHMEM_HEAP_SIZE +1G +environment ' env GPUSHMEM_HEAP_SIZE=1G "$gpushmem" info
expect 0 '^GPUSHMEM_HEAP_SIZE +1536M +NVSHMEM_SYMMETRIC_SIZE ' env NVSHMEM_SYMMETRIC_SIZE=1.5G "$gpushmem" info --as nvshmem
expect 0 '^GPUSHMEM_HEAP_KIND +host +OpenSHMEM.s heap ' "$gpushmem" info --as openshmem
expect 0 '^NVSHMEM_SYMMETRIC_SIZE is set, which .gpushmem info --as nvshmem. takes' \
    env NVSHMEM_SYMMETRIC_SIZE=1.5G "$gpushmem" info
expect 0 '^GPUSHMEM_HEAP_SIZE +1M +NVSHMEM_SYMMETRIC_SIZE ' env NVSHMEM_SYMMETRIC_SIZE=64K "$gpushmem" info --as nvshmem
expect 0 '^GPUSHMEM_HEAP_SIZE +1M +SHMEM_SYMMETRIC_SIZE ' env SHMEM_SYMMETRIC_SIZE=0.5m "$gpushmem" info --as openshmem
expect 0 '^GPUSHMEM_HEAP_SIZE +512M +SHMEM_SYMMETRIC_SIZE ' env SHMEM_SYMMETRIC_SIZE=512MB "$gpushmem" info --as openshmem
expect 0 '^GPUSHMEM_HEAP_SIZE +1536M +NVSHMEM_SYMMETRIC_SIZE ' env NVSHMEM_SYMMETRIC_SIZE=1.5GiB "$gpushmem" info --as nvshmem
expect 1 'SHMEM_SYMMETRIC_SIZE=5Mb4 is no size' env SHMEM_SYMMETRIC_SIZE=5Mb4 "$gpushmem" info --as openshmem
expect 1 'SHMEM_SYMMETRIC_SIZE=0 is no size' env SHMEM_SYMMETRIC_SIZE=0 "$gpushmem" info --as openshmem
expect 1 'SHMEM_SYMMETRIC_SIZE=big is no size' env SHMEM_SYMMETRIC_SIZE=big "$gpushmem" info --as openshmem --json
expect 2 "'mpi' is not one of gpushmem.nvshmem.openshmem" "$gpushmem" info --as mpi
expect 0 'settings.conf:5: GPUSHMEM_TEEMS: unknown setting, ignored; did you mean GPUSHMEM_TEAMS' "$gpushmem" info
expect 0 'GPUSHMEM_VERBS_STRIPE: no setting any more, ignored: transfers from 64K are striped' env GPUSHMEM_VERBS_STRIPE=1M "$gpushmem" info
expect 0 '^For experts:$' "$gpushmem" info --long
expect 0 '^settings file none is read: GPUSHMEM_SETTINGS_FILE=none$' env GPUSHMEM_SETTINGS_FILE=none "$gpushmem" info
# In 40 columns; what is wider there is a path.
narrow() {
    # shellcheck disable=SC2016 # $0 is the shell's that runs in the terminal
    TERM=dumb python3 -c 'import pty, sys
pty.spawn(["sh", "-c", "stty cols 40; exec \"$0\" info --long", sys.argv[1]])' "$gpushmem" </dev/null | tr -d '\r'
}
expect 0 '^GPUSHMEM_RINGS = 7$' narrow
expect 0 '^    origin: default; allowed: 0 or 1$' narrow
expect 0 '^    ~/.config/gpushmem/settings.conf:2;$' narrow
wide=$(narrow | grep -v settings.conf | grep -E '^.{41}')
[ -z "$wide" ] || { printf '%s\n' "wider than 40 columns:" "$wide"; failed=1; }
json='import json, sys; all = json.load(sys.stdin); print(*all["settings_files"][0].values())
r = {r["name"]: r for r in all["settings"]}
for n in "RINGS", "TEAMS", "P2P": print(*[r["GPUSHMEM_" + n][k] for k in ("value", "origin", "variable", "file", "line")])'
shown() { NVSHMEM_MAX_TEAMS=8 "$gpushmem" info --json --as nvshmem 2>/dev/null | python3 -c "$json"; }
expect 0 "^$file user read 3$" shown
expect 0 "^7 file None $file 2$" shown
expect 0 '^14 alias NVSHMEM_MAX_TEAMS None None$' shown
expect 0 '^1 default None None None$' shown

# Jobs, and what their launcher has to know.
expect 0 '^PE 1 on [^ ]*: 48 MiB in host memory' "$gpushmem" run -n 2 "$gpushmem" info --peers
expect 0 'settings.conf:5: GPUSHMEM_TEEMS: unknown' "$gpushmem" run -n 2 "$gpushmem" info --peers
# shellcheck disable=SC2016 # $GPUSHMEM_RUN_PE is the PE's
expect 3 '^the other goes on$' "$gpushmem" run -n 2 \
    sh -c 'if [ "$GPUSHMEM_RUN_PE" = 1 ]; then exit 3; fi; sleep 0.3; echo the other goes on'
expect 0 "INFO config: settings in $file: 3" env GPUSHMEM_LOG_LEVEL=info "$gpushmem" run -n 2 "$gpushmem" info --peers
if [ -x "$(dirname "$gpushmem")/gpushmem-perf" ]; then
    perf() { "$gpushmem" perf put-lat --issuer host --sizes 8 --rounds 1 --seconds 0.001 --quiet --json "$work/perf.json"; }
    expect 0 '' perf
    expect 0 '"GPUSHMEM_HEAP_SIZE": "48M"' cat "$work/perf.json"
    expect 0 '"GPUSHMEM_RINGS": "7"' cat "$work/perf.json"
fi
expect 0 '^fcollect of 2 PEs .* copies' env GPUSHMEM_COLLECTIVES=copies=64 "$gpushmem" info --collectives
expect 1 'settings.conf:5: GPUSHMEM_TEEMS:' "$gpushmem" doctor settings
sed -i /TEEMS/d "$file"
expect 0 'every GPUSHMEM_\* variable and 3 settings in files can be read' "$gpushmem" doctor --all settings

# What is wrong: one sentence, of each command.
echo 'GPUSHMEM_RINGS = many' >"$file"
sentence="$file:1: GPUSHMEM_RINGS=many is not a whole number from 1 to 256"
for command in info 'info --json' topo 'run -n 1 GPUSHMEM info --peers'; do
    # shellcheck disable=SC2086 # words
    expect 1 "$sentence" "$gpushmem" ${command/GPUSHMEM/$gpushmem}
done
expect 1 "${sentence#*: }" "$gpushmem" doctor settings # which breaks lines
echo 'GPUSHMEM_COLLECTIVES = fast' >"$file"
expect 1 "$file:1: GPUSHMEM_COLLECTIVES: 'fast' is none of" "$gpushmem" info --collectives
expect 1 "$file:1: GPUSHMEM_COLLECTIVES: 'fast' is none of" "$gpushmem" info --peers
echo 'GPUSHMEM_LOG_FILE = /nowhere/log' >"$file"
expect 1 "$file:1: GPUSHMEM_LOG_FILE=/nowhere/log cannot be opened" "$gpushmem" info --peers
expect 1 'settings file /nowhere cannot be read: No such file or directory; name another one in GPUSHMEM_SETTINGS_FILE, or' \
    env GPUSHMEM_SETTINGS_FILE=/nowhere "$gpushmem" info
mkfifo "$work/pipe"
expect 1 'settings file .*/pipe is no regular file' env GPUSHMEM_SETTINGS_FILE="$work/pipe" "$gpushmem" info --peers

# The file to begin with changes nothing, as it is and with all of its settings.
"$gpushmem" info --settings-file >"$file"
given() { "$gpushmem" info --long | sed -n '/^GPUSHMEM_/,$p' | sed -E 's/origin: [^;]*;//' | tr -s ' \n' ' ' | sed 's/GPUSHMEM_[A-Z0-9_]* = /\n&/g'; }
GPUSHMEM_SETTINGS_FILE=none given >"$work/without"
given >"$work/as_it_is"
grep -c '^#GPUSHMEM_' "$file" >"$work/count"
sed -i 's/^#GPUSHMEM_/GPUSHMEM_/' "$file"
given >"$work/all"
sed -i '/^GPUSHMEM_SETTINGS_FILE/d' "$work/without" "$work/as_it_is" "$work/all"
expect 0 '' diff "$work/without" "$work/as_it_is"
expect 0 '' diff "$work/without" "$work/all"
[ "$(cat "$work/count")" = $(($("$gpushmem" info --settings-markdown | grep -c '^| .GPUSHMEM_') - 1)) ] ||
    { echo "info --settings-file has $(cat "$work/count") settings"; failed=1; }
[ "$("$gpushmem" info --settings-file | wc -L)" -le 100 ] || { echo "info --settings-file has long lines"; failed=1; }
exit $failed
