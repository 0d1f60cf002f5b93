#!/usr/bin/env bash
# doctor --acceptance holds measured figures against a site's thresholds: rows, JSON and the exit code.
source tests/lib.sh
checks=$source_folder/tests/app/report_checks.py
fork_starts
cat >"$scratch/site.yaml" <<'YAML'
slow:
  hosts: ['*']
  allreduce: 0.001 GB/s
  read: 0.001 MB/s
fast: {step: 1000000 images/s, read: 1000000 GB/s, gpus: 64, driver: 999.1, self_test: required}
YAML
doctor() { "$program" doctor --device cpu --folder "$scratch" --acceptance "$scratch/site.yaml" "$@" >"$scratch/out.txt" 2>"$scratch/err.txt"; }
doctor --ranks 2
for name in allreduce read; do
  check "a node that is good enough: $name" grep -Eq "^PASS  acceptance $name +[0-9.]+ [a-zA-Z]+/s, at least" "$scratch/out.txt"
done
check "no row of what the type does not ask for" [ "$(grep -c ' acceptance ' "$scratch/out.txt")" = 2 ]
doctor --ranks 1 --node-type fast --json; rc=$?
check "one that is not ends with 5" [ $rc = 5 ]
check "and says in JSON what was wanted and found" python3 "$checks" acceptance "$scratch/out.txt"
printf 'slow: {step: 20}\n' >"$scratch/site.yaml"
refused 2 "site.yaml:1: 'step' = '20' has no unit" doctor --acceptance "$scratch/site.yaml"
printf 'slow:\n  stepp: 20 images/s\n' >"$scratch/site.yaml"
refused 2 "site.yaml:2: 'slow.stepp' is unknown" doctor --acceptance "$scratch/site.yaml"
refused 2 "--node-type requires --acceptance" doctor --node-type slow
refused 2 "--node-type: is empty" doctor --acceptance "$scratch/site.yaml" --node-type ''
refused 2 "--acceptance: is empty" doctor --acceptance ''
for file in configs/acceptance/*.yaml; do
  refused 2 "no type 'none'" doctor --acceptance "$file" --node-type none  # it is read to its end
done
finish
