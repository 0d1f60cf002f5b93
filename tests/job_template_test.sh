#!/usr/bin/env bash
# The templates of job scripts are scripts that shellcheck reads, as are those that are made from them
# (tests/launch/job_script_test.cpp holds these to be what `submit` writes; tests/app/submit_test.sh checks more kinds), and the examples.
set -u
command -v shellcheck >/dev/null || { echo 'skipped: no shellcheck (scripts/setup --cluster-tests)'; exit 77; }
scripts=(src/launch/templates/*.sh.in scripts/slurm/train.sbatch scripts/pbs/train.pbs scripts/examples/*.sh)
[ ${#scripts[@]} -ge 5 ] || { echo "only ${#scripts[@]} scripts found: wrong folder?"; exit 1; }
shellcheck --shell=bash "${scripts[@]}"
