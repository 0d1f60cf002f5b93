#!/usr/bin/env bash
# A real S3 server: OpenStack Swift with its s3api, one device, on the loopback, SigV4 checked, buckets by path.
#   swift_up.sh FOLDER PORT   prints the endpoint; PORT 0 is any that is free; exit code 77 where it is not installed or this is
#   not root
#   swift_up.sh --proxy FOLDER   its front end alone, once more
# Needs Debian's swift-proxy swift-account swift-container swift-object memcached (scripts/setup --cluster-tests), and
# root, as its files belong to user swift. Keys: test:tester / testing (all rights), test:reader / readonly (none).
# swift_down.sh FOLDER ends it; FOLDER/proxy.pid is its front end.
set -euo pipefail
start() {  # start NAME COMMAND...: in a new session, so that its workers end with it
  setsid "${@:2}" >>"$at/log/$1.log" 2>&1 </dev/null &
  echo $! >"$at/$1.pid"
}
answers() {
  for _ in $(seq 60); do curl -fs "http://127.0.0.1:$1/healthcheck" >/dev/null && return; sleep 1; done
  echo "swift did not come up: $at/log" >&2; exit 1
}
if [ "$1" = --proxy ]; then
  at=$2
  start proxy swift-proxy-server "$at/conf/proxy-server.conf"
  answers "$(cat "$at/port")"
  exit
fi
at=$1 port=$2
for name in swift-{proxy,account,container,object}-server swift-ring-builder memcached; do
  command -v "$name" >/dev/null || { echo "skipped: no $name (scripts/setup --cluster-tests)" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: Swift's files belong to user swift, which takes root" >&2; exit 77; }
[ "$port" != 0 ] || port=$("$(dirname "$0")/free_ports.py" 5)
mkdir -p "$at"/{conf,cache,log,srv/node/d1}
echo "$port" >"$at/port"
common="swift_dir = $at/conf
user = swift
workers = 1
log_level = WARNING"
cat >"$at/conf/swift.conf" <<CONF
[swift-hash]
swift_hash_path_suffix = s
swift_hash_path_prefix = p
[storage-policy:0]
name = gold
default = yes
CONF
own=$((port + 1))
for kind in account container object; do
  own=$((own + 1))
  cat >"$at/conf/$kind-server.conf" <<CONF
[DEFAULT]
devices = $at/srv/node
mount_check = false
bind_ip = 127.0.0.1
bind_port = $own
$common
[pipeline:main]
pipeline = healthcheck recon $kind-server
[app:$kind-server]
use = egg:swift#$kind
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:recon]
use = egg:swift#recon
recon_cache_path = $at/cache
CONF
  (cd "$at/conf"
   swift-ring-builder $kind.builder create 8 1 1
   swift-ring-builder $kind.builder add r1z1-127.0.0.1:$own/d1 1
   swift-ring-builder $kind.builder rebalance) >"$at/log/ring-$kind.log" 2>&1 || [ -e "$at/conf/$kind.ring.gz" ]
done
cat >"$at/conf/proxy-server.conf" <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
$common
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck proxy-logging cache listing_formats s3api tempauth bulk
  container-quotas slo proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:$((port + 1))
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user_test_reader = readonly
[filter:bulk]
use = egg:swift#bulk
[filter:container-quotas]
use = egg:swift#container_quotas
[filter:slo]
use = egg:swift#slo
CONF
chown -R swift:swift "$at"
start memcached memcached -l 127.0.0.1 -p $((port + 1)) -u swift
for kind in account container object; do start $kind swift-$kind-server "$at/conf/$kind-server.conf"; done
start proxy swift-proxy-server "$at/conf/proxy-server.conf"
answers "$port"
echo "http://127.0.0.1:$port"
