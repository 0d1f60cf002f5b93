#!/bin/bash
# slurm_up.sh - bring up a throw-away Slurm cluster on loopback (idempotent).
# usage:  slurm_up.sh [-d STATE_DIR] [-n NODES] [-c CPUS_PER_NODE] [-g GPUS_PER_NODE] [-m ports|netns]
#   ports : N x "slurmd -N nodeK" in this host, different ports; needs no root (everything runs as the caller)
#   netns : N x slurmd, each inside network+UTS namespace "nodeK" made by netns_up.sh (root); real host names, real TCP
# afterwards:  . STATE_DIR/env      (sets SLURM_CONF so that sbatch/srun/squeue/scontrol find this cluster)
# Needs Debian packages: slurm-wlm munge  (slurm-wlm-torque for qsub/qstat wrappers)
set -eu; trap '[ $? = 0 ] || { echo "slurm_up.sh failed; last log lines:" >&2; tail -n 4 "$D"/log/*.log >&2 2>/dev/null; }' EXIT
PATH=$PATH:/usr/sbin:/sbin
D=${TMPDIR:-/tmp}/slurm-$(id -u) N=2 C=2 G=0 MODE=ports
while getopts d:n:c:g:m: o; do case $o in d) D=$OPTARG;; n) N=$OPTARG;; c) C=$OPTARG;; g) G=$OPTARG;; m) MODE=$OPTARG;; *) exit 2;; esac; done
HERE=$(cd "$(dirname "$0")" && pwd)
U=$(id -un)
alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
mkdir -p "$D"; chmod 755 "$D"; D=$(cd "$D" && pwd)
mkdir -p "$D/munge" "$D/ctld" "$D/log"; chmod 711 "$D/munge"; chmod 755 "$D/log"
# ---- munge: private key and socket (never /etc/munge, never /run/munge) ----
[ -s "$D/munge.key" ] || { (umask 077; head -c 1024 /dev/urandom >"$D/munge.key"); }
if ! alive "$D/munge/munged.pid"; then
  rm -f "$D"/munge/munge.socket*
  munged --key-file="$D/munge.key" --socket="$D/munge/munge.socket" --pid-file="$D/munge/munged.pid" \
         --log-file="$D/munge/munged.log" --seed-file="$D/munge/munged.seed" --num-threads=2 ${MUNGED_FLAGS---force}
fi
# ---- configuration ----
PORT0=${SLURM_PORT0:-26817}
if [ "$MODE" = netns ]; then
  "$HERE/netns_up.sh" -n "$N" -p node >/dev/null
  CTLD_ADDR=10.99.0.254 CP=NoInAddrAny      # NoCtldInAddrAny would bind the controller to 127.0.0.1: unreachable from the hosts
else CTLD_ADDR=127.0.0.1 CP=NoInAddrAny,NoCtldInAddrAny; fi
{ cat <<CONF
ClusterName=lab
SlurmctldHost=localhost($CTLD_ADDR)
SlurmctldPort=$PORT0
SlurmUser=$U
SlurmdUser=$U
AuthType=auth/munge
AuthInfo=socket=$D/munge/munge.socket,cred_expire=${CRED_EXPIRE:-120}   # also how long a requeued job waits
CryptoType=crypto/munge
StateSaveLocation=$D/ctld
SlurmctldPidFile=$D/slurmctld.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdPidFile=$D/slurmd.%n.pid
SlurmdLogFile=$D/log/slurmd.%n.log
SlurmdSpoolDir=$D/spool.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=${TASK_PLUGIN:-task/none}
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$D/log/jobcomp.txt
SlurmdParameters=config_overrides
CommunicationParameters=$CP
TmpFS=$D/tmp.%n
KillWait=${KILL_WAIT:-5}
OverTimeLimit=0
JobRequeue=1
InactiveLimit=0
PlugStackConfig=$D/plugstack.conf
CONF
[ "$G" -gt 0 ] && echo GresTypes=gpu
for k in $(seq "$N"); do
  if [ "$MODE" = netns ]; then A="NodeAddr=10.99.0.$k NodeHostname=node$k Port=$((PORT0+1))"
  else A="NodeAddr=127.0.0.1 NodeHostname=$(hostname) Port=$((PORT0+k))"; fi
  echo "NodeName=node$k $A CPUs=$C State=UNKNOWN$([ "$G" -gt 0 ] && echo " Gres=gpu:$G")"
done
echo "PartitionName=main Nodes=ALL Default=YES MaxTime=24:00:00 DefaultTime=5:00 State=UP"; } >"$D/slurm.conf"
: >"$D/plugstack.conf"
P=/usr/lib/x86_64-linux-gnu/slurm-wlm/spank_pbs.so
[ -e $P ] && echo "optional $P" >"$D/plugstack.conf"
echo "CgroupPlugin=${CGROUP_PLUGIN:-cgroup/v1}" >"$D/cgroup.conf"   # 22.05 has no "disabled"; v1 is only loaded, never used
if [ "$G" -gt 0 ]; then   # stand-in devices: gres/gpu ignores entries without File=, ordinary empty files are accepted
  mkdir -p "$D/dev"; for g in $(seq 0 $((G-1))); do : >"$D/dev/gpu$g"; done
  for k in $(seq "$N"); do echo "NodeName=node$k Name=gpu Flags=nvidia_gpu_env File=$D/dev/gpu[0-$((G-1))]"; done >"$D/gres.conf"; fi
printf 'export SLURM_CONF=%s/slurm.conf\n' "$D" >"$D/env"; echo "$MODE $N" >"$D/mode"
export SLURM_CONF=$D/slurm.conf
# ---- daemons (each daemonizes itself and writes its pid file) ----
alive "$D/slurmctld.pid" || slurmctld -f "$D/slurm.conf" ${FIRST--i}
for k in $(seq "$N"); do mkdir -p "$D/spool.node$k" "$D/tmp.node$k"; chmod 1777 "$D/tmp.node$k"
  alive "$D/slurmd.node$k.pid" && continue
  if [ "$MODE" = netns ]; then "$HERE/nsexec" "node$k" slurmd -N "node$k" -f "$D/slurm.conf"
  else slurmd -N "node$k" -f "$D/slurm.conf"; fi
done
# ---- ready? ----
T=$(($(date +%s)+15))
while [ "$(date +%s)" -lt $T ]; do
  [ "$(timeout 2 sinfo -h -o %D -t idle,mix,alloc 2>/dev/null | awk '{s+=$1}END{print s+0}')" = "$N" ] && { sinfo -N -l 2>/dev/null | tail -n +2; exit 0; }
  sleep 0.1
done
echo "cluster not ready after 15 s; last log lines:" >&2; tail -n 5 "$D"/log/*.log >&2; exit 1
