#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# guest.sh: runs a command on real verbs devices (Soft-RoCE) in a small QEMU guest; prints its output and exits with
# its exit code. No RDMA hardware, no KVM and no root needed; about 4 s on top of the command's own time.
#
#   guest.sh [options] [--] COMMAND [ARGUMENT...]
#     --timeout S     end the command S seconds after its start, exit code 124 (default 300)
#     --patience S    boot another guest if the first has not begun the command after S seconds: now and then an emulated
#                     processor stops for good while it boots on a busy machine (default 90)
#     --rails N       1: rxe0 (10.1.0.1) and rxe1 (10.1.0.2); 2: also rxe2 and rxe3 (10.2.0.1, 10.2.0.2) (default 1)
#     --mtu BYTES     of the network devices below (default 9000, an RDMA MTU of 4096)
#     --netem "SPEC"  impair every network device, for instance "loss 1%" or "delay 1ms"
#     --smp N         processors (default 2)
#     --mem SIZE      memory (default 2G)
#     --env VAR=VAL   set VAR in the guest; GPUSHMEM_* and the sanitizers' *SAN_OPTIONS are passed on without it
#     --out DIR       make DIR writable in the guest, under the same name, which is also in $OUT
#
# The guest sees the host's files at the same paths, read only, and starts in the same directory. Its /tmp, /dev/shm
# and /run are its own. Exit code 125: the guest died (its last lines are printed) or guest.sh could not start it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../cache.sh"

# How long a guest may take to boot, and to end after a hang, on a machine that is busy with other things.
boot_limit=180
timeout=300 patience=90 rails=1 mtu=9000 netem='' smp=2 mem=2G out=''
declare -a env_settings=()

die() {
    echo "guest.sh: $*" >&2
    exit 125
}

usage() {
    sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
}

while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --) shift && break ;;
    --*)
        [ $# -ge 2 ] || die "$1 needs a value (guest.sh --help)"
        case $1 in
        --timeout) timeout=$2 ;;
        --patience) patience=$2 ;;
        --rails) rails=$2 ;;
        --mtu) mtu=$2 ;;
        --netem) netem=$2 ;;
        --smp) smp=$2 ;;
        --mem) mem=$2 ;;
        --env) env_settings+=("$2") ;;
        --out) out=$2 ;;
        *) die "unknown option $1 (guest.sh --help)" ;;
        esac
        shift 2
        ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || die "no command to run (guest.sh --help)"
case $rails in 1 | 2) ;; *) die "--rails is 1 or 2, not '$rails'" ;; esac
for number in "$timeout" "$patience" "$mtu" "$smp"; do
    case $number in '' | *[!0-9]*) die "'$number' is not a whole number (guest.sh --help)" ;; esac
done
for setting in "${env_settings[@]}"; do
    [[ $setting =~ ^[A-Za-z_][A-Za-z_0-9]*= ]] || die "--env wants VAR=VALUE, not '$setting'"
done

kernel=$("$here/kernel.sh") || die "no kernel to boot (see above)"
for tool in qemu-system-x86_64 cpio busybox rdma; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || { "$here/../../setup.sh" softroce >&2 && break; }
done

# The initrd is busybox, the modules and init.sh; it is made once for each version of these.
make_initrd() {
    local key stage
    key=$(cat "$here/init.sh" "$kernel/version" /bin/busybox | sha256sum | cut -c1-16)
    initrd=$kernel/initrd-$key
    [ ! -e "$initrd" ] || return 0
    stage=$(mktemp -d "$kernel/stage.XXXXXX")
    mkdir -p "$stage/root/bin"
    cp /bin/busybox "$stage/root/bin/busybox"
    cp "$here/init.sh" "$stage/root/init"
    chmod 755 "$stage/root/init"
    cp -r "$kernel/modules" "$stage/root/modules"
    (cd "$stage/root" && find . -print0 | cpio -0 -o -H newc -R 0:0 --quiet) >"$stage/initrd"
    rm -f "$kernel"/initrd-*
    mv "$stage/initrd" "$initrd"
    rm -rf "$stage"
}
make_initrd

control=$(mktemp -d "${TMPDIR:-/tmp}/softroce.XXXXXX")
qemu='' tails=()
cleanup() {
    [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
    rm -rf "$control"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Where both streams of ours are one, as in a test log, the job's are too: their order then holds.
merge=0
[ ! /proc/$$/fd/1 -ef /proc/$$/fd/2 ] || merge=1
root=$(cd "$here/../../.." && pwd)
cwd=$(pwd -P)
if [ -n "$out" ]; then
    mkdir -p "$out" && out=$(cd "$out" && pwd -P)
fi
{
    printf '%s=%q\n' timeout "$timeout" rails "$rails" mtu "$mtu" netem "$netem" merge "$merge" out "$out" show "$root $cwd"
} >"$control/settings"

{
    printf 'export PATH=%q:/usr/sbin:/sbin HOME=/tmp LANG=%q\n' "$PATH" "${LANG:-C.UTF-8}"
    [ -z "$out" ] || printf 'export OUT=%q\n' "$out"
    for name in $(compgen -e | grep -E '^(GPUSHMEM_.*|[A-Z]+SAN_OPTIONS|LD_LIBRARY_PATH|LD_PRELOAD)$'); do
        printf 'export %s=%q\n' "$name" "${!name}"
    done
    for setting in "${env_settings[@]}"; do
        printf 'export %s=%q\n' "${setting%%=*}" "${setting#*=}"
    done
    printf 'cd %q || exit 125\n' "$cwd"
    printf 'exec'
    printf ' %q' "$@"
    printf '\n'
} >"$control/job"
: >"$control/stdout"
: >"$control/stderr"

share=security_model=none,multidevs=remap
machine=(
    -M q35 -accel "tcg,thread=multi" -cpu max -smp "$smp" -m "$mem"
    -nodefaults -no-user-config -nic none -display none -no-reboot -serial "file:$control/console"
    -kernel "$kernel/vmlinux" -initrd "$initrd"
    -append "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off nokaslr no_timer_check tsc=reliable nowatchdog audit=0"
    -virtfs "local,path=/,mount_tag=host,readonly=on,$share"
    -virtfs "local,path=$control,mount_tag=control,$share"
)
[ -z "$out" ] || machine+=(-virtfs "local,path=$out,mount_tag=out,$share")

# The guest must not outlive this script, however it ends.
start_guest() {
    rm -f "$control/console"
    setpriv --pdeathsig TERM timeout -k 2 $((timeout + boot_limit)) setpriv --pdeathsig KILL \
        qemu-system-x86_64 "${machine[@]}" </dev/null >"$control/qemu" 2>&1 &
    qemu=$!
}

# The command has begun, or there will be none: the guest has died. Not given up before the process has become QEMU, which
# makes the console: until then our traps are its own.
command_begins() {
    local end=$((SECONDS + patience))
    until [ -e "$control/begun" ]; do
        kill -0 "$qemu" 2>/dev/null || return 0
        sleep 0.1
        [ "$SECONDS" -lt "$end" ] || [ ! -e "$control/console" ] || return 1
    done
}

start_guest
if ! command_begins; then
    echo "guest.sh: the guest is not up after $patience s; starting another one" >&2
    kill "$qemu" && wait "$qemu" || true
    start_guest
fi
tail -s 0.1 -n +1 -f --pid="$qemu" "$control/stdout" 2>/dev/null &
tails+=($!)
tail -s 0.1 -n +1 -f --pid="$qemu" "$control/stderr" >&2 2>/dev/null &
tails+=($!)

code=0
wait "$qemu" || code=$?
qemu=''
wait "${tails[@]}" || true

if [ -e "$control/expired" ]; then
    echo "guest.sh: no end within $timeout s (--timeout S allows more): $*" >&2
    exit 124
fi
if [ -s "$control/rc" ]; then
    exit "$(cat "$control/rc")"
fi
if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    echo "guest.sh: the guest itself hangs, stopped after $timeout + $boot_limit s; its last lines:" >&2
    tail -n 5 "$control/console" >&2
    exit 124
fi
echo "guest.sh: the guest died without an exit code (QEMU's was $code): kernel panic or out of memory? Last lines:" >&2
tail -q -n 15 "$control/qemu" "$control/console" >&2
exit 125
