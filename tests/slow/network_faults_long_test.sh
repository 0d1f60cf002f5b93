#!/usr/bin/env bash
# All faults at all phases on three hosts, over IPv4 and over IPv6 alone, at the last host, and those of one phase at
# the first and the second. About 80 minutes on two cores; CHEXNET_STORM_SEED chooses other moments. The figures are
# in docs/robustness.md.
source tests/lib.sh
seed=${CHEXNET_STORM_SEED:-1}
faults() {  # faults TEXT OPTIONS...
  local text=$1 rc=0; shift
  scripts/robustness/network_faults --program "$program" --folder "$scratch" --seed "$seed" --seconds 100000 \
    "$@" || rc=$?
  [ $rc != 77 ] || exit 77
  check "$text" [ $rc = 0 ]
}
faults "IPv4"
faults "IPv6 alone" --ipv6
for host in 1 2; do faults "host $host, step" --hit $host --phases step; done
finish
