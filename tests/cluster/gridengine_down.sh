#!/bin/bash
# gridengine_down.sh -d STATE_DIR: ends what gridengine_up.sh started.
set -u
while getopts d: o; do case $o in d) D=$OPTARG;; *) exit 2;; esac; done
for f in "$D"/spool/qmaster/qmaster.pid "$D"/spool/execd/*/execd.pid; do [ ! -s "$f" ] || kill "$(cat "$f")" 2>/dev/null; done
sleep 1
NETNS_DIR=$D/hosts "$(dirname "$0")/netns_down.sh" >/dev/null 2>&1
