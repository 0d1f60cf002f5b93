#!/usr/bin/env bash
# scripts/bench/scaling over hosts whose links are made slow: the rates that it measures are those that `bench scaling` predicts from
# one rank's rate and the links as `bench allreduce` finds them. Its table, figure and page are there.
source tests/netns/lib.sh
for host in node1 node2 node3; do
  on $host tc qdisc replace dev eth0 root tbf rate 200mbit burst 256kbit latency 400ms 2>"$scratch/log" || { echo "skipped: no token bucket filter: $(cat "$scratch/log")"; exit 77; }
done
printf 'node1 slots=1\nnode2 slots=1\nnode3 slots=1\n' >three
on node1 env CHEXNET_PROGRAM="$program" "$source_folder/scripts/bench/scaling" "$small" --ranks 1,2,3 --batch 8 --hostfile three "${agent[@]}" \
  --set train.max_steps=8 --set launch.bucket_mb=4 --set eval.splits=[test] --set eval.every_epochs=0 --out scaling --report scaling.html >table 2>scaling.log || { tail -n 5 scaling.log; exit 1; }
cat table
check "measured is within 10 % of predicted, on 1, 2 and 3 ranks" awk '$5 == "%" { n += 1; if ($4 < 90 || $4 > 110) exit 1 } END { if (n != 3) exit 1 }' table
check "the links hold ranks back" look 'assert a["results"][2]["efficiency"] < 0.5' scaling/scaling.json
check "a figure with three curves" [ "$(grep -o '<polyline' scaling/scaling.svg | wc -l)" = 3 ]
check "a page with table and figure" grep -q '<svg' scaling.html

# In a job of PBS the ranks come onto its hosts.
printf 'node1\nnode2\n' >nodes
{ echo '#PBS -N scaling'
  printf '%q ' cd "$PWD"; echo
  printf '%q ' env CHEXNET_PROGRAM="$program" "$source_folder/scripts/bench/scaling" "$small" --ranks 1,2 --batch 8 "${agent[@]}" \
    --set train.max_steps=4 --set eval.splits=[] --set eval.every_epochs=0 --out of-pbs; echo; } >job.pbs
"$cluster/pbs_stand_in.sh" -l 300 -n nodes -x node1 job.pbs >pbs.log 2>&1; rc=$?
check "a PBS job measures on its two hosts (exit $rc)" [ $rc = 0 ]
check "two ranks, one on each host" [ "$(grep -E '^ *[01] +node[12] .* [-0-9]+ +- +- ' scaling.o* | awk '{ print $1 $2 }' | sort -u | tr '\n' ' ')" = "0node1 1node2 " ]
check "with a line for each" look 'assert [point["ranks"] for point in a["results"]] == [1, 2]' of-pbs/scaling.json
finish
