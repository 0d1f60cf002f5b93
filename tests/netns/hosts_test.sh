#!/usr/bin/env bash
# Three hosts (network namespaces of this machine) that train together: the result of one host, whatever the links do; a PBS
# script over two of them; a link cut for good and a host without power end in a post-mortem, with no process left.
source tests/netns/lib.sh
gcc -O2 -w -o tapdelay "$cluster/tapdelay.c" || exit 1
printf 'node1 slots=2\nnode2 slots=2\nnode3 slots=2\n' >three
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0)
exact=("${quick[@]}" --set train.precision=fp64 --set model.sync_batchnorm=true --set data.resize=72 --set data.crop=64 --set train.batch=12 --set train.max_steps=2)
equal() { check "$1" look 'near_runs(a, b, 1e-10, 1e-9)' one "$2"; }

"$program" train "$small" "${exact[@]}" --ranks 6 --out one >one.log 2>&1 || { cat one.log; exit 1; }
on node1 "$program" train "$small" "${exact[@]}" "${agent[@]}" --hostfile three --out hosts >hosts.log 2>&1 || { cat hosts.log; exit 1; }
equal "3 hosts x 2 ranks learn what 6 ranks on one host learn" hosts
check "the table shows two ranks on each host" [ "$(grep -cE "^ *[0-5] +node[123] .*moved to" hosts.log)" = 6 ]

# Links: 80 Mbit/s to node3, then 10 ms, jitter and 1 % loss to node4.
if on node3 tc qdisc replace dev eth0 root tbf rate 80mbit burst 64kbit latency 400ms 2>/dev/null; then
  start=$(date +%s%N)
  on node1 "$program" train "$small" "${exact[@]}" "${agent[@]}" --hostfile three --out slow >slow.log 2>&1 || { cat slow.log; exit 1; }
  slow_s=$((($(date +%s%N) - start) / 1000000000))
  equal "a slow link (took $slow_s s) changes no result" slow
  on node3 tc qdisc del dev eth0 root
else echo "not run: this kernel has no token bucket filter"; fi
if [ -c /dev/net/tun ]; then
  echo "0 0 0 0 0" >link
  "$cluster/nslink" node4 ./tapdelay "$PWD/link" || exit 1
  echo "10000 2000 10 0 0" >link
  printf 'node1 slots=4\nnode4 slots=2\n' >lossy
  on node1 "$program" train "$small" "${exact[@]}" "${agent[@]}" --hostfile lossy --out lossy-run >lossy.log 2>&1 || { cat lossy.log; exit 1; }
  equal "delay, jitter and loss change no result" lossy-run
  echo "0 0 0 0 0" >link
else echo "not run: no /dev/net/tun for a link with delay and loss"; fi

# What ranks on several hosts write together is not gathered for an object store.
mkdir -p buckets/packs
on node1 python3 "$source_folder/tests/support/s3_server.py" buckets --port-file port & server=$!
for _ in $(seq 100); do [ ! -e port ] || break; sleep 0.05; done
on node1 env AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=secret/with+signs AWS_ENDPOINT_URL="http://127.0.0.1:$(cat port)" \
  "$program" pack "$small" --ranks 6 --out s3://packs/x.pack --set launch.hostfile=three "${agent[@]}" >pack.log 2>&1; rc=$?
kill $server
check "a pack for s3:// by several hosts is refused (exit $rc)" [ $rc = 2 ]
check "in one sentence" grep -qF "[s3] s3://packs/x.pack: ranks on several hosts do not write one result there. Hint: ranks on one host" pack.log

# A PBS script, started on node1 with a node file as PBS Pro writes it.
printf 'node1\nnode1\nnode2\nnode2\n' >nodes
"$program" submit --scheduler pbs "$small" "${quick[@]}" "${agent[@]}" --nodes 2 --ranks-per-node 2 --time 0:10:00 --name pbs --out pbs-run --dry-run >pbs.sh || exit 1
"$cluster/pbs_stand_in.sh" -l 120 -n nodes -x node1 pbs.sh >pbs.out 2>&1; rc=$?
check "a PBS job over two hosts trains to its end (exit $rc)" [ $rc = 0 ]
check "four ranks on the two hosts of the node file" [ "$(cat pbs.o* | grep -cE '^ *[0-3] +node[12] .*moved to')" = 4 ]
# Its time over: the program stops itself; qsub gets the next job.
mkdir -p bin; printf '#!/bin/sh\necho "$@" >>%s/qsub.log\n' "$PWD" >bin/qsub
printf '#!/bin/sh\necho "    Resource_List.walltime = 00:00:20"\n' >bin/qstat; chmod +x bin/*
"$program" submit --scheduler pbs "$small" "${quick[@]}" "${agent[@]}" --nodes 2 --ranks-per-node 2 --time 0:10:00 --name limit --out limit-run --set train.max_steps=1000000 --set launch.stop_margin_s=10 --setup "PATH=$PWD/bin:\$PATH" --dry-run >limit.sh
"$cluster/pbs_stand_in.sh" -l 60 -n nodes -x node1 limit.sh >limit.out 2>&1; rc=$?
check "it stops itself before the walltime with 75 (exit $rc)" [ $rc = 75 ]
check "and is submitted again with its counter" grep -q -- "-l select=2:ncpus=2:mpiprocs=2:ompthreads=1 .*-v CHEXNET_SUBMISSION=1,.* limit-run/job.pbs" qsub.log

# Failures. T = 5 s; a post-mortem comes, and nothing may run on.
endless=("${quick[@]}" --set train.batch=12 "${agent[@]}" --set train.max_steps=1000000 --set checkpoint.every_steps=4 --set launch.timeout_s=5 --hostfile three)
wait_for_step() { await_step "$1" "$2" "$1.log"; }
daemons() { local host; for host in "$NETNS_DIR"/node*.pid; do pgrep -a --ns "$(cat "$host")" --nslist net -x orted; done 2>/dev/null; }
no_process() {  # on these hosts, whatever others do on this machine
  for _ in $(seq 80); do [ -n "$(pgrep -f -- "--out $1"; daemons)" ] || return 0; sleep 0.1; done
  pgrep -fa -- "--out $1"; daemons; return 1
}
named_in_time() {  # RUN EVENT_NS TEXT
  local written; written=$(stat -c %.9Y "$1/postmortem.json" 2>/dev/null) || { echo "no post-mortem"; tail -n 20 "$1.log"; return 1; }
  # The test prints the time, which counts on a quiet machine (docs/measurements.md); here only that it came.
  look "
after = $written - $2 / 1e9
print(f'  after {after:.1f} s:', a['sentence'][:150])
assert '$3' in a['sentence'] and 'checkpoint: step-' in a['sentence'] and after < 60" "$1/postmortem.json"
}
fail_one() {  # RUN TEXT COMMAND...: starts a run, does COMMAND, checks the end
  local run=$1 text=$2 began; shift 2
  on node1 "$program" train "$small" "${endless[@]}" --out "$run" >"$run.log" 2>&1 & local job=$!
  wait_for_step "$run" 6
  began=$(date +%s%N); "$@"
  wait $job; local rc=$?
  check "$run: exit 5 or 7 (exit $rc)" [ $rc = 5 -o $rc = 7 ]
  check "$run: named" named_in_time "$run" "$began" "$text"
  # Daemons on these hosts write into the same file, a real one's come through mpirun: the last lines, not only the last.
  check "$run: the last line of output says it" bash -c "tail -n 8 $run.log | grep -q '$text.*resume with'"
  [ "$failures" = 0 ] || tail -n 6 "$run.log"
  check "$run: no process is left" no_process "$run"
}
stop_rank() { kill -STOP "$(python3 -c "
import os,sys
for p in filter(str.isdigit, os.listdir('/proc')):
    try:
        env=open(f'/proc/{p}/environ').read(); cmd=open(f'/proc/{p}/cmdline').read()
    except OSError: continue
    if '$1' in cmd and 'OMPI_COMM_WORLD_RANK=$2\0' in env and 'chexnet-train' in cmd: print(p); break
")"; }
fail_one stopped-4 "Rank 4 on node3 stopped answering" stop_rank stopped-4 4
fail_one stopped-0 "Rank 0 on node1 stopped answering" stop_rank stopped-0 0
fail_one cut "Host node3 (rank 4, 5) has not been heard" on node3 ip link set eth0 down
on node3 ip link set eth0 up
fail_one power "node2" "$cluster/nskill" node2
finish
