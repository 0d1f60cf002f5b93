#!/usr/bin/env bash
# Prometheus and runs: a real one reads run.prometheus through a real node exporter. The rules fire when they should, and
# dashboard and rules name nothing that the program does not write.
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
asked=$(port_of "$scratch/prometheus.log")
has() { python3 tests/app/monitoring_checks.py "$1" "$asked" "${@:2}"; }
await "it reads the node exporter" has answers 'up == 1'
await "and the figures of both runs" has answers 'chexnet_train_step{run="live"} > 1 and on() chexnet_train_step{run="over"}'
await "and has computed the rules" has answers 'chexnet_train:age_seconds{run="live"}'
check "the figures are the run's" has figures "$runs"
check "its rules are in order" has rules

# Dashboard and rules name metrics that exist, and Prometheus can evaluate the dashboard's queries.
"$program" status "$runs" --openmetrics >"$scratch/status.prom"
check "dashboard, rules and docs name gauges that are written" python3 tests/app/monitoring_checks.py names "$scratch/status.prom"
check "the dashboard can be drawn" has dashboard

# Ends: of a run, of a folder.
kill -TERM "$live"; wait "$live"
check "the file of a run that was stopped says so" grep -q 'state="stopped"} 1' "$node"/chexnet_train_live_*.prom
rm -rf "$runs/live"
check "the next run takes its file away" "$program" train "$small" "${short[@]}" --set train.max_steps=1 --set eval.splits=[] --out "$runs/next" 2>"$scratch/next.log"
check "and leaves the others" [ "$(pages)" = "chexnet_train_next chexnet_train_over" ]
finish
