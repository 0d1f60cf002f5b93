# Sourced by the tests with several hosts: four network namespaces of this machine, and how ranks and commands get there. Works in
# $scratch from here on.
source tests/lib.sh
cluster=$source_folder/tests/cluster
export NETNS_DIR=$scratch/netns
"$cluster/netns_up.sh" -n 4 >"$scratch/up" 2>&1 || { echo "skipped: no network namespaces (iproute2 and root are needed): $(tail -n 1 "$scratch/up")"; exit 77; }
trap 'kill $(jobs -p) 2>/dev/null; "$cluster/netns_down.sh"; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
agent=(--set "launch.mpi_args=[--mca, plm_rsh_agent, $cluster/nsrsh]" --set launch.network=tcp:eth0)
on() { local host=$1; shift; "$cluster/nsexec" "$host" "$@"; }
