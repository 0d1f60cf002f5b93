#!/usr/bin/env bash
# What Prometheus sees of runs: a real one reads run.prometheus through a real node exporter. The rules fire when they should,
# and dashboard and rules name nothing that the program does not write.
for needed in prometheus promtool prometheus-node-exporter; do
  command -v $needed >/dev/null || { echo "skipped: no $needed (scripts/setup --cluster-tests)"; exit 77; }
done
source tests/lib.sh
node=$scratch/node runs=$scratch/runs
mkdir "$node" "$runs"
short=(--set train.batch=16 --set data.val_fraction=0.3 --set eval.batch=32 --set run.prometheus="$node")
port_of() { grep -o '127.0.0.1:[1-9][0-9]*' "$1" | head -n 1 | cut -d : -f 2; }  # port_of LOG
pages() { find "$node" -mindepth 1 -printf '%f\n' | sed 's/_[0-9a-f]\{8\}\.prom$//' | sort | paste -sd ' '; }

# A run that is over, and one that runs until it is stopped.
check "a run with run.prometheus" "$program" train "$small" "${short[@]}" --set train.max_steps=4 --out "$runs/over" 2>"$scratch/over.log"
check "leaves one file there" [ "$(pages)" = chexnet_train_over ]
nice -n 19 "$program" train "$small" "${short[@]}" --set train.max_steps=100000 --set train.epochs=100000 --out "$runs/live" 2>"$scratch/live.log" & live=$!
refused 2 "run.prometheus = $scratch/absent: no folder that this user may write in" train "$small" --out "$scratch/refused" --set run.prometheus="$scratch/absent"
check "which leaves no run" [ ! -e "$scratch/refused" ]
refused 2 "excludes" status "$runs" --openmetrics --json
await "a run writes a checkpoint" grep -q '"event":"checkpoint"' "$runs/live/metrics.jsonl"
"$program" status "$runs" --openmetrics >"$scratch/status.prom"
# Somebody's damaged run does not hide the others.
mkdir "$scratch/with-bad"; ln -s "$runs"/* "$scratch/with-bad/"; mkdir "$scratch/with-bad/damaged"; echo x >"$scratch/with-bad/damaged/config.yaml"
check "a damaged run hides no other one" eval '"$program" status "$scratch/with-bad" --openmetrics 2>"$scratch/bad.log" | grep -q live'
check "and is named" grep -q "damaged/config.yaml:1: " "$scratch/bad.log"
refused 2 "damaged/config.yaml:1: " status "$scratch/with-bad/damaged"
check "promtool accepts the text" promtool check metrics <"$scratch/status.prom"
check "and that of a file" promtool check metrics <"$node"/chexnet_train_over_*.prom

# A real Prometheus, with the rules.
prometheus-node-exporter --web.listen-address=127.0.0.1:0 --collector.disable-defaults --collector.textfile \
  --collector.textfile.directory="$node" 2>"$scratch/node.log" &
await_logs=("$scratch"/*.log)
await "the node exporter listens" grep -q 'Listening on.*127.0.0.1:' "$scratch/node.log"
theirs=$(port_of "$scratch/node.log")
cat >"$scratch/prometheus.yml" <<YAML
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$source_folder/configs/monitoring/alerts.yml]
scrape_configs:
  - {job_name: node, static_configs: [{targets: ["127.0.0.1:$theirs"]}]}
YAML
check "rules" promtool check rules configs/monitoring/alerts.yml
check "config" promtool check config --lint=none "$scratch/prometheus.yml"
prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/data" --web.listen-address=127.0.0.1:0 \
  --log.level=info 2>"$scratch/prometheus.log" &
await_logs=("$scratch"/*.log)
check "alerts fire when they should" promtool test rules tests/app/monitoring_alerts.yml
await "Prometheus listens" grep -q 'Listening on.*127.0.0.1:[1-9]' "$scratch/prometheus.log"
cat >"$scratch/ask.py" <<'END'
import json, sys, urllib.parse, urllib.request
def api(path, **query):
    url = f"http://127.0.0.1:{sys.argv[1]}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    return json.load(urllib.request.urlopen(url))["data"]
def query(text): return [(r["metric"], float(r["value"][1])) for r in api("query", query=text)["result"]]
def value(text):
    [(_, found)] = query(text)
    return found
END
asked=$(port_of "$scratch/prometheus.log")
api() { PYTHONPATH=$scratch python3 - "$asked" "$@"; }
answers() { api "$1" <<<'from ask import *; assert query(sys.argv[2])'; }
await "it reads the node exporter" answers 'up == 1'
await "and the figures of both runs" answers 'chexnet_train_step{run="live"} > 1 and on() chexnet_train_step{run="over"}'
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
for name, figure in wanted.items():
    name, _, labels = name.partition("{")
    text = f'chexnet_train_{name}{{run="over",folder="{runs}/over",{labels or "}"}'
    assert value(text) == figure, (text, figure, value(text))
assert value('chexnet_train_state{run="live",state="running"}') == 1
assert value('node_textfile_scrape_error') == 0
host = {labels["host"] for labels, _ in query('chexnet_train_run_info')}
assert host == {lines[0]["host"]}, host
for name in ("written", "checkpoint"):
    for run in ("over", "live"):
        age = value(f'time() - chexnet_train_{name}_timestamp_seconds{{run="{run}"}}')
        assert -5 < age < 600, age
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

# Ends: of a run, of a folder.
kill -TERM "$live"; wait "$live"
check "the file of a run that was stopped says so" grep -q 'state="stopped"} 1' "$node"/chexnet_train_live_*.prom
rm -rf "$runs/live"
check "the next run takes its file away" "$program" train "$small" "${short[@]}" --set train.max_steps=1 --set eval.splits=[] --out "$runs/next" 2>"$scratch/next.log"
check "and leaves the others" [ "$(pages)" = "chexnet_train_next chexnet_train_over" ]
finish
