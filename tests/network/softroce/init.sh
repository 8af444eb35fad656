#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash disable=SC1091,SC2154,SC2086 # the settings that it reads are written by guest.sh
# init.sh: process 1 of the Soft-RoCE guest. Mounts the host's root, makes the rxe devices, runs the job, writes its
# exit code, powers off. guest.sh puts it into the initrd; its settings come in the control share's file "settings".
/bin/busybox --install -s /bin
export PATH=/bin:/usr/sbin:/usr/bin:/sbin
share=trans=virtio,version=9p2000.L,msize=512000

mkdir -p /proc /sys /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
    insmod "$module" || echo "init: $module did not load"
done

# The host's files do not change under a running job, so they may be cached; what the job writes may not.
mkdir -p /host
mount -t 9p -o "$share,ro,cache=loose" host /host
mount --bind /host /root
mount --move /proc /root/proc
mount --move /sys /root/sys
mount --move /dev /root/dev
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts devpts /root/dev/pts
for dir in /dev/shm /tmp /run /var/tmp; do
    mount -t tmpfs -o mode=1777 tmpfs "/root$dir"
done
mkdir -p /root/run/softroce
mount -t 9p -o "$share,cache=mmap" control /root/run/softroce
. /root/run/softroce/settings

# A checkout below /tmp would be hidden by the guest's own /tmp: show it again.
for dir in $show; do
    case $dir in /tmp/* | /var/tmp/* | /run/* | /dev/shm/*)
        mkdir -p "/root$dir" && mount --bind "/host$dir" "/root$dir" ;;
    esac
done
if [ -n "$out" ]; then
    mkdir -p "/root$out"
    mount -t 9p -o "$share,cache=mmap" out "/root$out"
fi

hostname softroce
printf '127.0.0.1 localhost softroce\n10.1.0.1 rxe0\n10.1.0.2 rxe1\n' >/root/run/hosts
mount --bind /root/run/hosts /root/etc/hosts
ulimit -l unlimited
ulimit -n 65536
ulimit -c 0

# By way of env: busybox's chroot would take its own ip for the host's.
in_root() { chroot /root /usr/bin/env "$@"; }

# One network namespace: the kernel must accept packets from its own addresses, or no queue pair gets to RTR; and a
# short backlog drops bursts.
in_root ip link set lo up
echo 1 >/root/proc/sys/net/ipv4/conf/all/accept_local
echo 100000 >/root/proc/sys/net/core/netdev_max_backlog

# Rail N: two ends of a cable, an rxe device on each. Different rails are different subnets.
make_rail() {
    a=$((2 * $1)) b=$((2 * $1 + 1))
    in_root ip link add "v$a" mtu "$mtu" type veth peer name "v$b" mtu "$mtu"
    in_root ip addr add "10.$(($1 + 1)).0.1/24" dev "v$a"
    in_root ip addr add "10.$(($1 + 1)).0.2/24" dev "v$b"
    for end in $a $b; do
        in_root ip link set "v$end" up
        in_root rdma link add "rxe$end" type rxe netdev "v$end" || echo "init: no device rxe$end"
        [ -z "$netem" ] || in_root tc qdisc add dev "v$end" root netem $netem || echo "init: netem refused: $netem"
    done
}
rail=0
while [ "$rail" -lt "$rails" ]; do
    make_rail "$rail"
    rail=$((rail + 1))
done

cd /root/run/softroce || exit
run_job() { in_root timeout -k 5 "$timeout" bash /run/softroce/job </root/dev/null; }
seconds() { cut -d. -f1 /root/proc/uptime; }
begin=$(seconds)
touch begun
if [ "$merge" = 1 ]; then
    run_job >>stdout 2>&1
else
    run_job >>stdout 2>>stderr
fi
rc=$?
# The command's own 124 is not a hang.
case $rc in 124 | 137) [ $(($(seconds) - begin)) -lt "$timeout" ] || touch expired ;; esac
echo "$rc" >rc
[ -z "$out" ] || umount "/root$out" || umount -l "/root$out"
sync
poweroff -f
