#!/usr/bin/env bash
# Two "hosts", network namespaces joined by a veth pair, with a rank on each, started by mpirun as on any two machines.
# Runs in a namespace of its own (unshare -mn), which takes all of it away in the end. Exit code 77: it cannot be done
# here, standard output says why.
#   two_hosts.sh text PROGRAM ARGUMENTS…   what the program prints
#   two_hosts.sh cut PROGRAM ARGUMENTS…    the same, but the link goes down once the program has printed something
set -euo pipefail
skip() { echo "$*"; exit 77; }
for tool in ip mpirun; do command -v "$tool" >/dev/null || skip "there is no $tool"; done
mkdir -p /run/netns && mount -t tmpfs none /run/netns 2>/dev/null || skip "mounting is not permitted"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
for i in 1 2; do ip netns add "host$i" 2>/dev/null || skip "network namespaces are not permitted"; done
ip link add end1 type veth peer name end2 2>/dev/null || skip "veth pairs are not permitted"
for i in 1 2; do
    ip link set "end$i" netns "host$i"
    ip netns exec "host$i" ip addr add "10.77.0.$i/24" dev "end$i"
    ip netns exec "host$i" ip link set "end$i" up
    ip netns exec "host$i" ip link set lo up
done
# In place of ssh: mpirun calls it with a host and a command.
printf '#!/bin/sh\nshift\nexec ip netns exec host2 sh -c "$*"\n' > "$here/to_host2"
chmod +x "$here/to_host2"
export PATCHBAY_RENDEZVOUS=10.77.0.1:29511
run=(ip netns exec host1 timeout -k 1 60 mpirun --allow-run-as-root -n 2 -H 10.77.0.1,10.77.0.2
     --mca plm_rsh_agent "$here/to_host2" --mca oob_tcp_if_include 10.77.0.0/24 -x PATCHBAY_RENDEZVOUS)
mode=$1; shift
if [ "$mode" = text ]; then "${run[@]}" "$@"; exit; fi
"${run[@]}" "$@" > "$here/out" 2> "$here/err" &
started=$!
for _ in $(seq 300); do [ -s "$here/out" ] && break; read -rt 0.1 <> <(:) || true; done
[ -s "$here/out" ] || { cat "$here/err"; exit 1; }
ip netns exec host1 ip link set end1 down
for _ in $(seq 300); do grep -q 'patchbay generate: ' "$here/err" && break; read -rt 0.1 <> <(:) || true; done
cat "$here/err"
kill -9 "$started" $(ip netns pids host1) $(ip netns pids host2) 2>/dev/null || true
