#!/usr/bin/env bash
# Faults of the network between two hosts that have IPv6 alone. Over a link that loses packets, and when the watchdog's
# connections break, the run ends as undisturbed; a host that gets nothing any more is named, and a resume ends so too.
# scripts/robustness/network_faults has more faults and phases (label slow).
source tests/lib.sh
rc=0
scripts/robustness/network_faults --program "$program" --folder "$scratch" --ranks 2 --ipv6 \
  --faults lost-reports,loss,deaf --phases step --timeout 10 >"$scratch/faults.txt" 2>&1 || rc=$?
cat "$scratch/faults.txt"
[ $rc != 77 ] || exit 77
check "a run goes on, or ends with the host's name and resumes to the same bytes" [ $rc = 0 ]
finish
