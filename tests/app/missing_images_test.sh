#!/usr/bin/env bash
# Images of the table that are not there: refused with the way out, or left out by data.missing=skip and said wherever a figure is.
source tests/lib.sh
checks=$source_folder/tests/app/report_checks.py
cp -r "$phantom/images" "$scratch/images"
for name in $(sed -n '1,3p' "$phantom/train_val_list.txt") $(sed -n '4,5p' "$phantom/test_list.txt"); do rm "$scratch/images/$name"; done
at=(--set data.images=["$scratch/images"] --set data.val_fraction=0 --set train.max_steps=2 --set eval.splits=[test])
refused 8 "5 of 160 images are missing below $scratch/images" train "$small" "${at[@]}" --out "$scratch/fails"
check "the first few are named" grep -q "e.g. those of .*Data_Entry_2017.csv:[0-9]*, .*:[0-9]*, .*:[0-9]*\. Hint" "$scratch/err.txt"
check "so is the setting" grep -q "data.missing=skip" "$scratch/err.txt"
check "no run was left" [ ! -e "$scratch/fails/config.yaml" ]

run=$scratch/run
check "with skip a run goes on without them" "$program" train "$small" "${at[@]}" --set data.missing=skip --ranks 2 --out "$run" 2>"$scratch/log"
check "it says so at the start and at the end" [ "$(grep -c 'left out, as they are not there (data.missing=skip): 3 of [0-9]* train images, 2 of [0-9]* test images' "$scratch/log")" = 2 ]
check "with the settings" grep -qE "^ *train +[0-9]+ images, 3 missing and left out, sha256" "$scratch/log"
check "and with the scores" grep -q "images (2 more are missing)" "$scratch/log"
check "results.json has them for each split" python3 "$checks" missing_images "$run"
left_out="not there, and are left out of all that is said here (data.missing: skip): 3 of train, 2 of test"
check "the report has" grep -qF "$left_out." "$run/report.html"
check "the model card too" eval 'tr -d "\\\\" <"$run/model_card.md" | grep -qF "$left_out"'
"$program" evaluate "$run" --json >"$scratch/evaluated.json" 2>"$scratch/log"
check "evaluate counts those of its split" look 'assert a["missing"] == 2 and a["images"] > 10, a' "$scratch/evaluated.json"
rm "$scratch/images/$(sed -n 7p "$phantom/train_val_list.txt")"
refused 4 "training split" train "$small" "${at[@]}" --set data.missing=skip --set train.max_steps=3 --ranks 2 --out "$run" --resume
finish
