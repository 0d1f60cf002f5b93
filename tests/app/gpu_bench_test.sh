#!/usr/bin/env bash
# scripts/bench/gpu from end to end, on the CPU: every stage gives its part of the object, and batches that do not fit are
# named.
source tests/lib.sh
export CHEXNET_PROGRAM=$program
check "the command ends well without a GPU" scripts/bench/gpu --device cpu --quick --no-compile --budget-s 1700 --out "$scratch/gpu.json" >"$scratch/table" 2>"$scratch/log"
check "every stage has its part" look '
(step,), met = a["steps"], {m["mark"]: m["met"] for m in a["marks"]}
assert all(step[how]["images_per_s"] > 0 for how in ("ours", "unrecorded", "recompute", "tf32")), step
assert any("convolution" in row["layers"] for row in a["operators"][0]["rows"]), a["operators"]
assert a["loader"][0]["images_per_s"] > 0, a["loader"]
assert len(a["tests"]) > 1 and {t["result"] for t in a["tests"]} == {"skipped"}, a["tests"]
assert [r["level"] for r in a["self_test"]] == ["SKIP"] and a["dropped"] == [], a
assert met["the self-test of doctor passes"] is None and met["the program computes steps and trains"] is True, met
if "torch" in a["pytorch"]:
    assert a["copy"]["gb_per_s"] > 0, a["copy"]
    assert step["eager"]["images_per_s"] > 0 and met["as fast as PyTorch eager or faster"] is not None, a
else:
    print("skipped: PyTorch, because python3 has no torch and torchvision")
    assert "error" in step["eager"] and met["as fast as PyTorch eager or faster"] is None, a' "$scratch/gpu.json"
check "the table has a row of the step" grep -q "^densenet121      2   64 " "$scratch/table"
check "and what our step was told" grep -qE "^  ours, unrecorded [0-9.]+ images/s, recompute [0-9.]+ images/s, tf32 " "$scratch/table"
scripts/bench/gpu --device cpu --budget-s 1 --out "$scratch/short.json" >"$scratch/table" 2>>"$scratch/log"
check "without time all is dropped by name" grep -q "^dropped for want of time: ours: resnet50, batch 256, 512 px" "$scratch/table"

cat >"$scratch/fails" <<'STUB'
#!/bin/sh
case $1 in
  doctor) echo '{"checks": [{"level": "PASS", "name": "self-test", "text": "made up"}]}' ;;
  --version) echo stub ;;
  *) echo 'CUDA error: boom' >&2; exit 5 ;;
esac
STUB
chmod +x "$scratch/fails"
rc=0; CHEXNET_PROGRAM=$scratch/fails scripts/bench/gpu --device cpu --quick --no-tests --out "$scratch/failed.json" >"$scratch/table" 2>>"$scratch/log" || rc=$?
check "a program that cannot compute is a failure ($rc)" test "$rc" = 1
check "which the table names" grep -q "^MISSED  *the program computes steps and trains (2)" "$scratch/table"
# A process that would share a GPU with all later measurements.
long=12345.$$  # a sleep of nobody else
check "a command without an end is given up" python3 -c "import runpy
assert runpy.run_path('scripts/bench/gpu')['run'](['bash', '-c', 'sleep $long & wait'], 1) == (-1, '', 'no end within 1 s')"
await "a process that a hung command started is gone" eval '! pgrep -fx "sleep $long"'  # killed, but for a moment still listed
[ "$failures" = 0 ] || tail -n 20 "$scratch/log"
finish
