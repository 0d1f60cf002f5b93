"""What ranks, hosts and GPUs did, and when. usage: order_checks.py FUNCTION FILE..."""
import json
import sys


def timeline(path):
    """Of two ranks and six steps."""
    events = json.load(open(path))["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {e["pid"] for e in spans} == {0, 1}
    named = {"forward", "backward", "block 1", "stem", "waiting for data", "all-reduce of bucket 0", "optimizer",
             "checkpoint", "image"}
    for rank in (0, 1):
        of_rank = [e for e in spans if e["pid"] == rank]
        assert named <= {e["name"] for e in of_rank}, named - {e["name"] for e in of_rank}
        assert "copying to the GPU" not in {e["name"] for e in of_rank}  # it is a run on CPUs
        main = sorted((e for e in of_rank if e["tid"] == 0), key=lambda e: (e["ts"], -e["dur"]))
        open_ends = []
        for e in main:  # spans of a thread lie inside each other or apart
            while open_ends and open_ends[-1] <= e["ts"] + 0.5:
                open_ends.pop()
            assert not open_ends or e["ts"] + e["dur"] <= open_ends[-1] + 0.5, e
            open_ends.append(e["ts"] + e["dur"])
        steps = [e for e in main if e["name"] == "backward"]
        first = [e for e in of_rank if e["name"] == "all-reduce of bucket 0"]
        inside = sum(any(b["ts"] <= e["ts"] <= b["ts"] + b["dur"] for b in steps) for e in first)
        assert len(steps) == inside == 6, (len(steps), inside)  # the first bucket leaves while backward runs
    assert sum(e["ph"] == "i" for e in events) >= 12  # each rank ready for each step's last gradients


def window(path, steps):
    """Of two ranks and so many steps."""
    events = json.load(open(path))["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    for rank in (0, 1):
        spans = [e for e in events if e["ph"] == "X" and e["pid"] == rank]
        assert sum(e["name"] == "backward" for e in spans) == int(steps), [e["name"] for e in spans]
        assert not any(e["name"] in ("set-up", "writing results") for e in spans)
        images = [e for e in spans if e["name"] == "image"]
        assert images and all(names[rank, e["tid"]].startswith("loader: worker ") for e in images), names


def last_spans(path, rank):
    """Of a rank that waits for one that stands still."""
    events = json.load(open(path))["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {e["pid"] for e in spans} == {int(rank)}
    assert {"forward", "image"} <= {e["name"] for e in spans}
    last = max((e for e in spans if e["tid"] == 0), key=lambda e: e["ts"] + e["dur"])
    print("  until the end:", last["name"], f"{last['dur'] / 1e6:.1f} s")
    assert last["dur"] > 1e6, last


def waits(path, values):
    """How often ranks agreed by an all-reduce of so many values; and between two of them: launches, waits for all and
    for events, with the work that is then before the GPU."""
    rows = [[int(word) for word in line.split()] for line in open(path)]
    rows = [row[1:] for row in rows if row[0] == values]
    return len(rows), [[b - a for a, b in zip(one, two)][:3] + two[3:] for one, two in zip(rows, rows[1:])]


def steady(*paths):
    """What the host may wait for in a step, with work launched after it: twice for a batch's copy, before its memory is filled
    anew, and for the outcome of the step before."""
    for path in paths:
        agreements, steps = waits(path, 5)
        print("  launches, waits for all, for events, work left:", steps)
        assert agreements == 7
        for launches, for_all, for_events, left in steps[2:]:
            assert launches > 1000, launches
            assert for_all == 0, f"the GPU had nothing to do {for_all} times"
            assert for_events == 3, for_events
            assert left > launches / 2, "the ranks agreed when the GPU had done its step"


def recorded(*paths):
    """As steady(), from the sixth step on: two steps were recorded. A step is one launch then; beside it are the copies
    of a batch and of figures, and the two numbers that change."""
    for path in paths:
        agreements, steps = waits(path, 5)
        print("  launches, waits for all, for events, work left:", steps)
        assert agreements == 8
        for launches, for_all, for_events, left in steps[5:]:
            assert launches <= 6, launches
            assert for_all == 0, f"the GPU had nothing to do {for_all} times"
            assert for_events == 3, for_events
            assert left > 500, "the ranks agreed when the GPU had done its step"


def evaluation(*paths):
    """While a batch is evaluated the one before is computed; the end of a split is waited for."""
    for path in paths:
        batches = [row for row in waits(path, 1)[1] if 560 < row[0] < 580]  # not a step, not a checkpoint
        print("  launches, waits for all, for events, work left:", batches)
        assert len(batches) == 7, batches
        assert [row[1] for row in batches[:-1]] == [0] * 6, "the GPU had nothing to do"
        assert all(left > launches / 2 for launches, _, _, left in batches[:-1]), "the host read logits first"


globals()[sys.argv[1]](*sys.argv[2:])
