#!/usr/bin/env bash
# configs/acceptance/chexnet_reframe.py under a real ReFrame: a node passes its thresholds, and fails higher ones. Needs PyPI.
source tests/lib.sh
python_tools reframe reframe-hpc || { echo "skipped"; exit 77; }
printf 'good: {step: 0.001 images/s, read: 0.001 MB/s}\nbad: {step: 1000000 images/s}\n' >"$scratch/site.yaml"
reframe() {
  "$tools/reframe" -c configs/acceptance/chexnet_reframe.py -r --prefix "$scratch/reframe" -S executable="$program" \
    -S site="$scratch/site.yaml" -S node_type="$1" --performance-report >"$scratch/out" 2>&1
}
reframe good; rc=$?
check "a good node passes" bash -c "[ $rc = 0 ] && grep -q '1 test(s) ran\|PASSED.*Ran 1/1' '$scratch/out' || { tail -n 40 '$scratch/out'; false; }"
check "with its images/s in the report" grep -Eq 'step.*images/s|images/s.*step' "$scratch/out"
grep -E 'images/s' "$scratch/out" | head -n 3
reframe bad; rc=$?
check "one that is too slow does not" [ $rc != 0 ]
check "and the failure names the figure" grep -q 'acceptance step' "$scratch/out"
finish
