#!/usr/bin/env bash
# scripts/reference/official_split on phantoms in NIH's layout: from the folder to the report, again after a stop, and as a job.
source tests/lib.sh
export CHEXNET_PROGRAM=$program
official() { scripts/reference/official_split "$phantom" none "$scratch/out" data.resize=36 data.crop=32 train.batch=8 launch.ranks=1 "$@" >"$scratch/said" 2>&1; }
official train.max_steps=4 --submit --scheduler slurm --dry-run
check "a job trains from the pack" grep -q "^arguments=(train .*nih.pack" "$scratch/said"
touch "$scratch/out/run" # no folder can be made there
official train.max_steps=4; rc=$?
check "a training that fails ends it with its code ($rc)" [ $rc = 4 -a ! -e "$scratch/out/report-shared.html" ]
rm "$scratch/out/run"
before=$(stat -c %Y "$scratch/out/nih.pack")
official train.max_steps=4; check "the report is made (exit $?)" [ -s "$scratch/out/run/report.html" ]
check "what was packed is kept" [ "$(stat -c %Y "$scratch/out/nih.pack")" = "$before" ]
check "and what is sent back" [ -s "$scratch/out/report-shared.html" -a -s "$scratch/out/chexnet-help.tar.gz" ]
check "which names no patient's image" bash -c "! grep -q '[0-9]\{8\}_[0-9]\{3\}.png' '$scratch/out/report-shared.html'"
check "scores are of the official test list" look 'assert a["evaluations"]["test"]["images"] == sum(1 for _ in open("'"$phantom"'/test_list.txt")), a["evaluations"]["test"]["images"]' "$scratch/out/run/results.json"
rc=0; scripts/reference/official_split "$scratch" none "$scratch/none" >"$scratch/said" 2>&1 || rc=$?
check "a folder without NIH's files is told ($rc)" grep -q "Data_Entry_2017.*csv is not there. Hint: name the folder of NIH's download" "$scratch/said"
[ "$failures" = 0 ] || cat "$scratch/said"
finish
