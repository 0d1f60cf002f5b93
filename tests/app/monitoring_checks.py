"""What the Prometheus of a port knows of the runs "over" and "live", and what dashboard, rules and docs name.
usage: monitoring_checks.py FUNCTION PORT|FILE ARGUMENTS..."""
import json
import pathlib
import re
import sys
import urllib.parse
import urllib.request

MONITORING = pathlib.Path("configs/monitoring")


def api(path, **query):
    url = f"http://127.0.0.1:{sys.argv[2]}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    return json.load(urllib.request.urlopen(url))["data"]


def query(text):
    return [(found["metric"], float(found["value"][1])) for found in api("query", query=text)["result"]]


def value(text):
    [(_, found)] = query(text)
    return found


def answers(_, text):
    assert query(text)


def figures(_, runs):
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
    assert value("node_textfile_scrape_error") == 0
    assert {labels["host"] for labels, _ in query("chexnet_train_run_info")} == {lines[0]["host"]}
    for name in ("written", "checkpoint"):
        for run in ("over", "live"):
            age = value(f'time() - chexnet_train_{name}_timestamp_seconds{{run="{run}"}}')
            assert -5 < age < 600, age
    assert not query('chexnet_train_remaining_seconds{run="over"}')
    assert query('chexnet_train_remaining_seconds{run="live"} > 0')
    names = {labels["__name__"] for labels, _ in query('{__name__=~"exported_.*|.*_exported"} or {exported_job!=""}')}
    assert not names, names  # no label of ours is one of Prometheus' own


def rules(_):
    rules = [rule for group in api("rules")["groups"] for rule in group["rules"]]
    assert len(rules) >= 7 and all(rule["health"] in ("ok", "unknown") for rule in rules), rules


def names(status):
    """They name gauges that are written."""
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", open(status).read(), re.M))
    rules, dashboard = ((MONITORING / name).read_text() for name in ("alerts.yml", "grafana-dashboard.json"))
    unknown = set(re.findall(r"\bchexnet_train_\w+", rules + dashboard)) - set(helps)
    assert not unknown, unknown
    recorded = set(re.findall(r"record: (\S+)", rules))
    assert set(re.findall(r"chexnet_train:\w+", rules)) == recorded and "chexnet_train:" not in dashboard
    docs = open("docs/monitoring.md").read()
    table = dict(re.findall(r"^\| `(chexnet_train_\w+)[^`]*` \| (.*?) \|$", docs, re.M))
    assert table == helps, {k: (table.get(k), helps.get(k)) for k in table | helps if table.get(k) != helps.get(k)}
    for alert in re.findall(r"alert: (\S+)", rules):
        assert alert in docs, alert


def dashboard(_):
    """Prometheus can evaluate its queries."""
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids) and {v["name"] for v in board["templating"]["list"]} == {"datasource", "run"}
    cells = [(x, y) for g in (panel["gridPos"] for panel in board["panels"])
             for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24, "panels overlap"
    empty = []
    for panel in board["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"]), panel["title"]
        asked = [target["expr"] for target in panel["targets"]]
        empty += [text for text in asked if not query(text.replace("$run", ".*"))]
    # A run of one rank on a CPU, outside a batch system.
    assert all(any(part in text for part in ("slowest_rank", "job_remaining", "gpu_")) for text in empty), empty
    assert api("label/run/values") == ["live", "over"]


globals()[sys.argv[1]](*sys.argv[2:])
