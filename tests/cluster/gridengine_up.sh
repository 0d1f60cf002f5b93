#!/bin/bash
# gridengine_up.sh - a throw-away Grid Engine over make-believe hosts of netns_up.sh (root; idempotent it is not).
# usage: gridengine_up.sh -d STATE_DIR [-n HOSTS] [-s SLOTS]    default: 2 hosts node1, node2 with 2 slots each
# afterwards: . STATE_DIR/env and run qsub, qstat, qdel by nsexec node1. Queue all.q (notify 5 s); parallel environments mpi
# (a slot of each host in turn) and smp (all on one host).
# gridengine_down.sh -d STATE_DIR ends it. Needs Debian packages: gridengine-master gridengine-exec gridengine-client
set -eu
D='' N=2 S=2
while getopts d:n:s: o; do case $o in d) D=$OPTARG;; n) N=$OPTARG;; s) S=$OPTARG;; *) exit 2;; esac; done
HERE=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$D/default/common" "$D/spool/execd" "$D/spool/qmaster" "$D/spool/db"; D=$(cd "$D" && pwd)
export NETNS_DIR=$D/hosts SGE_ROOT=$D SGE_CELL=default SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445
"$HERE/netns_up.sh" -n "$N" -p node >/dev/null
on() { "$HERE/nsexec" "$@"; }
for link in bin lib util utilbin; do ln -sfn /var/lib/gridengine/$link "$D/$link"; done
cat >"$D/env" <<ENV
export NETNS_DIR=$NETNS_DIR SGE_ROOT=$SGE_ROOT SGE_CELL=$SGE_CELL SGE_QMASTER_PORT=$SGE_QMASTER_PORT SGE_EXECD_PORT=$SGE_EXECD_PORT
ENV
echo node1 >"$D/default/common/act_qmaster"
cat >"$D/default/common/bootstrap" <<CONF
admin_user              none
default_domain          none
ignore_fqdn             true
spooling_method         berkeleydb
spooling_lib            libspoolb
spooling_params         $D/spool/db
binary_path             /usr/sbin
qmaster_spool_dir       $D/spool/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
CONF
on node1 /usr/share/gridengine/scripts/init_cluster "$D" default "$D/spool/db" root >"$D/log" 2>&1
on node1 /usr/sbin/sge_qmaster >>"$D/log" 2>&1
for _ in $(seq 100); do on node1 qconf -sm >/dev/null 2>&1 && break; sleep 0.2; done

# Jobs start within a second, and execd keeps its files here.
on node1 qconf -sconf | sed "s|^execd_spool_dir .*|execd_spool_dir $D/spool/execd|; s|^min_uid .*|min_uid 0|; s|^min_gid .*|min_gid 0|;
  s|^gid_range .*|gid_range 20000-20100|; s|^execd_params .*|execd_params ENABLE_ADDGRP_KILL=true|" | grep -v '^#' >"$D/global"
on node1 qconf -Mconf "$D/global" >>"$D/log" 2>&1
on node1 qconf -ssconf | sed 's|^schedule_interval .*|schedule_interval 0:0:1|; s|^flush_submit_sec .*|flush_submit_sec 1|; s|^flush_finish_sec .*|flush_finish_sec 1|' >"$D/sched"
on node1 qconf -Msconf "$D/sched" >>"$D/log" 2>&1
hosts=$(seq -f 'node%.0f' -s ' ' "$N")
for host in $hosts; do on node1 qconf -ah "$host" >>"$D/log" 2>&1; on node1 qconf -as "$host" >>"$D/log" 2>&1; done
printf 'group_name @allhosts\nhostlist %s\n' "$hosts" >"$D/group"
for host in $hosts; do printf 'hostname %s\nload_scaling NONE\ncomplex_values NONE\nuser_lists NONE\nxuser_lists NONE\nprojects NONE\nxprojects NONE\nusage_scaling NONE\nreport_variables NONE\n' "$host" >"$D/exec"; on node1 qconf -Ae "$D/exec" >>"$D/log" 2>&1 || true; done
on node1 qconf -Ahgrp "$D/group" >>"$D/log" 2>&1
for pe in mpi:round_robin smp:pe_slots; do
  printf 'pe_name %s\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\nstop_proc_args NONE\nallocation_rule $%s\ncontrol_slaves TRUE\njob_is_first_task FALSE\nurgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n' "${pe%:*}" "${pe#*:}" >"$D/pe"
  on node1 qconf -Ap "$D/pe" >>"$D/log" 2>&1
done
on node1 qconf -sq 2>/dev/null | sed "s|^qname .*|qname all.q|; s|^hostlist .*|hostlist @allhosts|; s|^slots .*|slots $S|; s|^pe_list .*|pe_list mpi smp|;
  s|^notify .*|notify 00:00:05|; s|^shell .*|shell /bin/bash|; s|^shell_start_mode .*|shell_start_mode unix_behavior|; s|^load_thresholds .*|load_thresholds NONE|" >"$D/queue"
on node1 qconf -Aq "$D/queue" >>"$D/log" 2>&1
for host in $hosts; do on "$host" /usr/sbin/sge_execd >>"$D/log" 2>&1; done
for _ in $(seq 100); do [ "$(on node1 qstat -f 2>/dev/null | grep -c ' BIP .* [0-9.]* *lx')" = "$N" ] && exit 0; sleep 0.3; done
on node1 qstat -f; tail "$D/log"; exit 1
