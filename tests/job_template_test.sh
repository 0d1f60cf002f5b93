#!/usr/bin/env bash
# The templates of job scripts and the examples pass shellcheck; tests/app/submit_test.sh checks what is made of them.
set -u
command -v shellcheck >/dev/null || { echo 'skipped: no shellcheck (scripts/setup --cluster-tests)'; exit 77; }
scripts=(src/tools/jobs/templates/*.sh.in scripts/examples/*.sh)
[ ${#scripts[@]} -ge 5 ] || { echo "only ${#scripts[@]} scripts found: wrong folder?"; exit 1; }
shellcheck --shell=bash "${scripts[@]}"
