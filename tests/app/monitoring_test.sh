#!/usr/bin/env bash
# What Prometheus sees of runs: a real one reads `status --listen` and, through a real node exporter, run.prometheus. The
# rules fire when they should, and dashboard and rules name nothing that the program does not write.
for needed in prometheus promtool prometheus-node-exporter; do
  command -v $needed >/dev/null || { echo "skipped: no $needed (scripts/setup --cluster-tests)"; exit 77; }
done
source tests/lib.sh
started=()
stop() { for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done; rm -rf "$scratch"; }
trap stop EXIT
node=$scratch/node runs=$scratch/runs
mkdir "$node" "$runs"
short=(--set train.batch=16 --set data.val_fraction=0.3 --set eval.batch=32 --set run.prometheus="$node")
await() {  # await TEXT COMMAND...: looks until it succeeds
  local text=$1; shift
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && { echo "ok: $text"; return; }; sleep 0.1; done
  echo "FAILED: $text"; tail -n 5 "$scratch"/*.log; exit 1
}
port_of() { grep -o '127.0.0.1:[1-9][0-9]*' "$1" | head -n 1 | cut -d : -f 2; }  # port_of LOG
pages() { find "$node" -mindepth 1 -printf '%f\n' | sed 's/_[0-9a-f]\{8\}\.prom$//' | sort | paste -sd ' '; }
page() { python3 -c 'import sys,urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' "$1"; }

# A run that is over, and one that runs until it is stopped.
check "a run with run.prometheus" "$program" train "$small" "${short[@]}" --set train.max_steps=4 --out "$runs/over" 2>"$scratch/over.log"
check "leaves one file there" [ "$(pages)" = chexnet_train_over ]
nice -n 19 "$program" train "$small" "${short[@]}" --set train.max_steps=100000 --set train.epochs=100000 --out "$runs/live" 2>"$scratch/live.log" & live=$!
started+=("$live")
refused 2 "run.prometheus = $scratch/absent: no folder that this user may write in" train "$small" --out "$scratch/refused" --set run.prometheus="$scratch/absent"
check "which leaves no run" [ ! -e "$scratch/refused" ]
refused 2 "excludes" status "$runs" --listen 0 --json
refused 2 "is no address and port. Hint: 9400" status "$runs" --listen 127.0.0.1:http
refused 2 "an IPv6 address stands in brackets" status "$runs" --listen ::1:9400
refused 4 "absent: is no folder" status "$scratch/absent" --listen 0
await "a run writes a checkpoint" grep -q '"event":"checkpoint"' "$runs/live/metrics.jsonl"
"$program" status "$runs" --openmetrics >"$scratch/status.prom"
# Somebody's damaged run does not hide the others.
mkdir "$scratch/with-bad"; ln -s "$runs"/* "$scratch/with-bad/"; mkdir "$scratch/with-bad/damaged"; echo x >"$scratch/with-bad/damaged/config.yaml"
check "a damaged run hides no other one" eval '"$program" status "$scratch/with-bad" --openmetrics 2>"$scratch/bad.log" | grep -q live'
check "and is named" grep -q "damaged/config.yaml:1: " "$scratch/bad.log"
refused 2 "damaged/config.yaml:1: " status "$scratch/with-bad/damaged"
check "promtool accepts the text" promtool check metrics <"$scratch/status.prom"
check "and that of a file" promtool check metrics <"$node"/chexnet_train_over_*.prom

# The page, asked for in the ways there are.
"$program" status "$runs" --listen 0 2>"$scratch/status.log" & server=$!
prometheus-node-exporter --web.listen-address=127.0.0.1:0 --collector.disable-defaults --collector.textfile \
  --collector.textfile.directory="$node" 2>"$scratch/node.log" & started+=("$server" $!)
await "status listens, of the loopback" grep -q 'http://127.0.0.1:[0-9]*/metrics, until Ctrl-C' "$scratch/status.log"
await "the node exporter listens" grep -q 'Listening on.*127.0.0.1:' "$scratch/node.log"
ours=$(port_of "$scratch/status.log") theirs=$(port_of "$scratch/node.log")
refused 2 "the port is in use. Hint: choose another one" status "$runs" --listen "$ours"
check "requests" python3 - "$ours" <<'END'
import http.client, sys
def ask(method, path="/metrics", accept=None, body=None):
    global answer
    link = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    link.request(method, path, body, {"Accept": accept} if accept else {})
    answer = link.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read(), int(answer.getheader("Content-Length"))
status, kind, text, size = ask("GET")
assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8"), (status, kind)
assert text.endswith(b"# EOF\n") and size == len(text)
status, kind, text, _ = ask("GET", accept="application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"), (status, kind)
status, kind, text, size = ask("HEAD")
assert status == 200 and text == b"" and size > 0, (status, text, size)
assert ask("GET", "/")[0] == 404 and ask("GET", "/metrics/../config.yaml")[0] == 404
link = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
link.request("GET", "/metrics", headers={"Range": "bytes=" + ",".join(["0-"] * 2000)})  # the page, 2,000 times
refused = link.getresponse()
assert refused.status == 416 and len(refused.read()) == 0, refused.status
for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
    for body in (None, b"x" * 1000):
        assert ask(method, body=body)[0] == 405 and answer.getheader("Allow") == "GET, HEAD", (method, body)
END

# A real Prometheus, with the rules.
cat >"$scratch/prometheus.yml" <<YAML
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$source_folder/configs/monitoring/alerts.yml]
scrape_configs:
  - {job_name: status, static_configs: [{targets: ["127.0.0.1:$ours"]}]}
  - {job_name: node, static_configs: [{targets: ["127.0.0.1:$theirs"]}]}
YAML
check "rules" promtool check rules configs/monitoring/alerts.yml
check "config" promtool check config --lint=none "$scratch/prometheus.yml"
prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/data" --web.listen-address=127.0.0.1:0 \
  --log.level=info 2>"$scratch/prometheus.log" & started+=($!)
check "alerts fire when they should" promtool test rules tests/app/monitoring_alerts.yml
await "Prometheus listens" grep -q 'Listening on.*127.0.0.1:[1-9]' "$scratch/prometheus.log"
cat >"$scratch/ask.py" <<'END'
import json, sys, urllib.parse, urllib.request
def api(path, **query):
    url = f"http://127.0.0.1:{sys.argv[1]}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    return json.load(urllib.request.urlopen(url))["data"]
def query(text): return [(r["metric"], float(r["value"][1])) for r in api("query", query=text)["result"]]
def by_job(text): return {labels["job"]: value for labels, value in query(text)}
END
asked=$(port_of "$scratch/prometheus.log")
api() { PYTHONPATH=$scratch python3 - "$asked" "$@"; }
both() { api "$1" <<<'from ask import *; assert set(by_job(sys.argv[2])) == {"status", "node"}, by_job(sys.argv[2])'; }
answers() { api "$1" <<<'from ask import *; assert query(sys.argv[2])'; }
await "it reads both" both 'up == 1'
await "and the figures of both runs" both 'chexnet_train_step{run="live"} > 1 and on() chexnet_train_step{run="over"}'
await "and has computed the rules" answers 'chexnet_train:age_seconds{run="live"}'
check "the figures are the run's" api "$runs" "$(hostname)" <<'END'
import math
from ask import *
runs = sys.argv[2]
lines = [json.loads(line) for line in open(f"{runs}/over/metrics.jsonl")]
last = lambda kind: [line for line in lines if line["event"] == kind][-1]
best = [line for line in lines if line["event"] == "val" and line["best"] == "yes"][-1]
wanted = {"step": 4, "planned_steps": 4, "ranks": 1, "resumes": 0, "exit_code": 0, "best_step": best["step"],
          "loss": last("train")["loss"], "images_per_second": last("train")["images_per_s"],
          "validation_auroc": best["mean_auroc"], 'state{state="finished"}': 1, 'state{state="running"}': 0,
          'final_auroc{split="test"}': last("final")["mean_auroc"]}
for name, value in wanted.items():
    name, _, labels = name.partition("{")
    text = f'chexnet_train_{name}{{run="over",folder="{runs}/over",{labels or "}"}'
    assert by_job(text) == {"status": value, "node": value}, (text, value, by_job(text))
assert by_job('chexnet_train_state{run="live",state="running"}') == {"status": 1, "node": 1}
assert by_job('node_textfile_scrape_error') == {"node": 0}
host = {labels["host"] for labels, _ in query('chexnet_train_run_info')}
assert host == {lines[0]["host"]}, host
for name in ("written", "checkpoint"):
    for run in ("over", "live"):
        ages = by_job(f'time() - chexnet_train_{name}_timestamp_seconds{{run="{run}"}}')
        assert set(ages) == {"status", "node"} and all(-5 < age < 600 for age in ages.values()), ages
assert not query('chexnet_train_remaining_seconds{run="over"}') and query('chexnet_train_remaining_seconds{run="live"} > 0')
names = {labels["__name__"] for labels, _ in query('{__name__=~"exported_.*|.*_exported"} or {exported_job!=""}')}
assert not names, names  # no label of ours is one of Prometheus' own
END
check "its rules are in order" api <<'END'
from ask import *
rules = [rule for group in api("rules")["groups"] for rule in group["rules"]]
assert len(rules) >= 7 and all(rule["health"] in ("ok", "unknown") for rule in rules), rules
END

# Dashboard and rules name what there is, and Prometheus can compute what the dashboard asks for.
"$program" status "$runs" --openmetrics >"$scratch/status.prom"
check "dashboard, rules and docs name gauges that are written" python3 - "$scratch/status.prom" <<'END'
import json, re, sys
helps = dict(re.findall(r"^# HELP (\S+) (.*)$", open(sys.argv[1]).read(), re.M))
rules = open("configs/monitoring/alerts.yml").read()
dashboard = open("configs/monitoring/grafana-dashboard.json").read()
for text in (rules, dashboard):
    unknown = set(re.findall(r"\bchexnet_train_\w+", text)) - set(helps)
    assert not unknown, unknown
recorded = set(re.findall(r"record: (\S+)", rules))
assert set(re.findall(r"chexnet_train:\w+", rules)) == recorded and "chexnet_train:" not in dashboard
docs = open("docs/monitoring.md").read()
table = dict(re.findall(r"^\| `(chexnet_train_\w+)[^`]*` \| (.*?) \|$", docs, re.M))
assert table == helps, {k: (table.get(k), helps.get(k)) for k in set(table) ^ set(helps) | {k for k in helps if table.get(k) != helps[k]}}
for alert in re.findall(r"alert: (\S+)", rules): assert alert in docs, alert
END
check "the dashboard can be drawn" api <<'END'
from ask import *
board = json.load(open("configs/monitoring/grafana-dashboard.json"))
ids = [panel["id"] for panel in board["panels"]]
assert len(set(ids)) == len(ids) and {v["name"] for v in board["templating"]["list"]} == {"datasource", "run"}
cells = [(x, y) for p in board["panels"] for g in [p["gridPos"]] for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24, "panels overlap"
empty = []
for panel in board["panels"]:
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"], panel["title"]
        if not query(target["expr"].replace("$run", ".*")): empty.append(target["expr"])
# A run of one rank, outside a batch system.
assert all("slowest_rank" in text or "job_remaining" in text for text in empty), empty
assert api("label/run/values") == ["live", "over"]
END

# Ends: of a run, of a folder, of the server though a client holds a connection and sends hardly anything.
kill -TERM "$live"; wait "$live"
check "the file of a run that was stopped says so" grep -q 'state="stopped"} 1' "$node"/chexnet_train_live_*.prom
rm -rf "$runs/live"
check "a run that vanishes leaves the page" bash -c "! grep -q live <<<'$(page "http://127.0.0.1:$ours/metrics")'"
check "the next run takes its file away" "$program" train "$small" "${short[@]}" --set train.max_steps=1 --set eval.splits=[] --out "$runs/next" 2>"$scratch/next.log"
check "and leaves the others" [ "$(pages)" = "chexnet_train_next chexnet_train_over" ]
check "60 clients that are idle or stop within a request keep nobody waiting" python3 - "$ours" <<'END'
import socket, sys, urllib.request
def cut_off(link):
    try: return link.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError: return False
    except ConnectionResetError: return True
def is_answered_beside(count, sent):  # the page, before a client that came earlier is given up
    links = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(count)]
    for link in links: link.sendall(sent)
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read()
    held = not any(cut_off(link) for link in links)
    for link in links: link.close()
    return held
for sent in (b"", b"G", b"GET /metrics HTTP/1.1\r\nHost: a\r\n"):
    assert any(is_answered_beside(60, sent) for _ in range(30)), sent  # once, on a machine that may be slow
END
python3 - "$ours" >"$scratch/slow.log" 2>&1 <<'END' & slow=$!
import socket, sys, time
links = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(4)]
while True:
    for link in links: link.sendall(b"G")
    print("sent", flush=True)
    time.sleep(0.2)
END
started+=("$slow")
await "clients that are slow" grep -q sent "$scratch/slow.log"
check "keep nobody else waiting" page "http://127.0.0.1:$ours/metrics" >/dev/null
refused 2 "--listen: is empty" status "$runs" --listen ''
check "lines of a request without end take no memory" python3 - "$ours" "$server" <<'END'
import socket, sys, time
def memory_mb(): return int(open(f"/proc/{sys.argv[2]}/status").read().split("VmHWM:")[1].split()[0]) / 1024
before = memory_mb()
links = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(4)]
end = time.monotonic() + 5
for link in links: link.setblocking(False)
while time.monotonic() < end:
    for link in links:
        try: link.send(b"X: aaaaaaaaaaaaaaaa\r\n" * 100)
        except BlockingIOError: time.sleep(0.001)
        except OSError: pass  # cut off
print(f"{memory_mb() - before:.0f} MB more")
sys.exit(memory_mb() - before > 48)
END
# More connections than the process may have files.
(ulimit -n 48; exec "$program" status "$runs" --listen 0 >/dev/null 2>"$scratch/flood.log") & flooded=$!
started+=("$flooded")
await "a server with few descriptors" grep -q "metrics, until" "$scratch/flood.log"
python3 - "$(sed -n 's|.*127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$scratch/flood.log")" >"$scratch/many.log" 2>&1 <<'END' & many=$!
import socket, sys, time
links = []
for _ in range(100):
    link = socket.socket()
    link.settimeout(0.05)
    link.connect_ex(("127.0.0.1", int(sys.argv[1])))
    links.append(link)
print("held", flush=True)
time.sleep(60)
END
started+=("$many")
await "clients that hold more than there are" grep -q held "$scratch/many.log"
sleep 2  # it looks at its connections once a second
kill -TERM "$flooded"
await "a server without descriptors ends, too" bash -c "! kill -0 $flooded"
wait "$flooded"; rc=$?
check "with exit 0 ($rc)" test "$rc" = 0
kill -INT "$server"
await "Ctrl-C ends the server all the same" bash -c "! kill -0 $server"
rc=0; wait "$server" || rc=$?
check "with exit 0 ($rc)" [ $rc = 0 ]
check "it said nothing else" [ "$(grep -vc 'until Ctrl-C' "$scratch/status.log")" = 0 ]
finish
