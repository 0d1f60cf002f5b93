#!/usr/bin/env bash
# predict: images without a table. The probabilities that evaluate writes, from files, folders, archives, packs, objects,
# lists and stdin; what cannot be scored is a row; nothing that changes the network's input is taken.
set -u
source tests/lib.sh
checks=$source_folder/tests/app/predict_checks.py
fork_starts
shared_run plain "$scratch/run" || exit 1
run=$scratch/run
"$program" evaluate "$run" --out "$scratch/evaluate.csv" >/dev/null 2>&1
mkdir -p "$scratch/set/a" "$scratch/set/b"
mapfile -t names < <(sed 's/\r$//' "$phantom/test_list.txt")
half=$((${#names[@]} / 2))
for i in "${!names[@]}"; do cp "$phantom/images/${names[i]}" "$scratch/set/$([ "$i" -lt $half ] && echo a || echo b)/"; done
cd "$scratch"
find set -name '*.png' | sort >list.txt
predict() { "$forked" predict "$run" "$@" 2>"$scratch/log"; }

# Where images are.
mkdir kinds && cp "set/a/$(ls set/a | head -n 1)" kinds/good.png && mkfifo kinds/pipe.png && ln -s /dev/zero kinds/zero.png && ln -s nowhere kinds/gone.png
predict kinds --out kinds.csv
check "what can be no image is a row, too" [ $? = 0 ]
for row in "kinds/gone.png.*is a link that leads nowhere" "kinds/pipe.png.*is a pipe or a device" "kinds/zero.png.*is a pipe or a device"; do
  check "$row" grep -q "^$row" kinds.csv
done
refused 8 "kinds/pipe.png: is a pipe or a device" predict "$run" kinds/pipe.png --out no.csv
check "a folder, in the order of its paths" predict set --out folder.csv
same() {  # same TEXT CSV [PREFIX]: rows of evaluate.csv, bit for bit; names are list.txt's after PREFIX
  check "$1" python3 "$checks" scores_of_evaluate "$2" "${3-}"
}
same "the probabilities that evaluate writes, bit for bit" folder.csv
mapfile -t files <list.txt
check "files" predict "${files[@]}" --out files.csv
check "a list" predict @list.txt --out list.csv
check "a list on stdin" predict - --out stdin.csv <list.txt
tr '\n' '\0' <list.txt | predict - --out nul.csv
predict - --ranks 2 --out ranks.csv <list.txt
for way in files list stdin nul ranks; do check "$way: the same bytes" cmp folder.csv $way.csv; done
printf '\xef\xbb\xbf' | cat - list.txt | predict @/dev/stdin --ranks 2 --out bom.csv
check "a list that begins with a byte order mark" cmp folder.csv bom.csv
tac list.txt | predict - --out back.csv
check "rows stand in the order of naming" [ "$(tail -n +2 back.csv | tac)" = "$(tail -n +2 folder.csv)" ]
mkdir bytes && cp "${files[0]}" $'bytes/\xff.png' && cp "${files[0]}" $'bytes/\xfe.png'
predict bytes --json >bytes.json
check "names that are no UTF-8 are told apart" [ "$(grep -oE '"image_hex":"[0-9a-f]+"' bytes.json | sort -u | wc -l)" = 2 ]
check "the log says whose thresholds they are" grep -qE "^model .*: (yes or no by its thresholds|probabilities alone)" log
check "what is named twice is one row" predict set set/a @list.txt --out twice.csv
check "and nothing else changes" cmp folder.csv twice.csv
tar cf all.tar --sort=name ./set && tar czf all.tar.gz --sort=name set
for archive in all.tar all.tar.gz; do
  check "$archive" predict $archive --out archive.csv
  same "the same from $archive, named after it" archive.csv $archive/
done
(cd "$source_folder" && "$program" pack "$small" --split test --out "$scratch/test.pack" >/dev/null 2>"$scratch/log") || (cd "$source_folder" && "$program" pack "$small" --out "$scratch/test.pack" >/dev/null 2>"$scratch/log")
check "a pack" predict test.pack --out pack.csv
check "with the same probabilities" python3 "$checks" pack_scores
mkdir -p buckets/xrays && cp -r set buckets/xrays/
python3 "$source_folder/tests/support/s3_server.py" buckets --port-file port --faults 0 --log s3log &
await "the store" test -s port
export AWS_ENDPOINT_URL=http://127.0.0.1:$(cat port) AWS_ACCESS_KEY_ID=AKTEST AWS_SECRET_ACCESS_KEY=secret/with+signs
check "an object store" predict s3://xrays/set --out s3.csv
same "the same from there" s3.csv s3://xrays/
{ sed 's|^|s3://xrays/|' list.txt | head -n 2; echo s3://xrays/set/nothing.png; } | predict - --json >s3.json
check "an object of a list that is absent is a row" grep -q '"image":"s3://xrays/set/nothing.png","error":".*No such file' s3.json

# Ranks and threads.
check "two ranks" predict set --ranks 2 --out ranks.csv
check "write the same bytes" cmp folder.csv ranks.csv
check "three loader threads" predict set --set data.workers=3 --set eval.batch=8 --out threads.csv
check "too" cmp folder.csv threads.csv
cp "$run/checkpoints/last/model.safetensors" handed_on.safetensors
check "a model file alone" "$program" predict handed_on.safetensors set --set launch.threads=1 --set eval.batch=8 --out alone.csv 2>log
check "scores alike" cmp folder.csv alone.csv

# What cannot be scored is a row.
mkdir odd && cp "${files[0]}" $'odd/a,"b"\nc.png' && cp "${files[1]}" odd/sound.png && head -c 300 "${files[2]}" >odd/cut.png
mkdir odd/x odd/y && cp "${files[3]}" odd/x/1.png && cp "${files[4]}" odd/y/1.png && echo '<html>' >odd/page.png && echo a,b >odd/table.csv && : >odd/empty.jpg
predict odd nothing.png --out odd.csv; check "an absent input ends the program before any work" [ $? = 8 ]
{ echo odd/nothing.png; echo odd; } | predict - --out odd.csv --json >odd.json
check "damaged and absent ones of a list do not" [ $? = 0 ]
check "each is a row with its message, in its place" python3 "$checks" odd_rows "${files[@]:0:5}"
predict odd >odd.txt
check "the table shows what a terminal may see" grep -qF 'odd/a,"b"\x0ac.png' odd.txt
check "three findings of a scored image" grep -Eq '^  odd/sound.png +([A-Z][A-Za-z_]+ 0\.[0-9]{3}( |$)+){3}$' odd.txt
check "and the error of another" grep -Eq '^  odd/empty.jpg +error: .*the file is empty' odd.txt
rc=0; predict odd/cut.png odd/empty.jpg --json >none.json || rc=$?
check "without one scored image the program ends with 3" [ $rc = 3 ]
check "says so" grep -q "no image could be scored" log
check "and still gives every row" [ "$(wc -l <none.json)" = 3 ]
rc=0; predict odd/cut.png --ranks 2 --out none.csv || rc=$?
check "on two ranks too" [ $rc = 3 ]
{ echo gone.png; cat list.txt; } | predict @- --out gone.csv
check "@- is the list on stdin; what it names in vain is warned of" grep -q "1 place of a list not found: each is a row with an error. Hint: paths in a list are relative" log
check "and a row" grep -q '^gone.png,.*No such file' gone.csv
printf 'gone.png\nlost.png\n' >absent.txt
refused 8 "nothing that the list names is there" predict "$run" @absent.txt
mkdir empty && echo text >empty/notes.txt
refused 8 "no image is there, only 1 file of other kinds" predict "$run" empty
refused 8 "absent-list" predict "$run" @absent-list
iconv -f UTF-8 -t UTF-16 list.txt >utf16.txt
refused 3 "utf16.txt: a list in UTF-16" predict "$run" @utf16.txt
: >nothing.txt
refused 8 "no image is there" predict "$run" @nothing.txt

# A damaged archive is a row too, after those of its members before the damage.
mkdir broken && tar cf broken/b.tar --sort=name set && tar czf broken/c.tgz --sort=name set && cp "${files[0]}" broken/z.png
truncate -s $(($(stat -c %s broken/b.tar) / 2)) broken/b.tar
truncate -s $(($(stat -c %s broken/c.tgz) / 2)) broken/c.tgz
head -c 2000 /dev/urandom >broken/d.tar; echo no pack >broken/e.pack
predict broken --out broken.csv --json >broken.json
check "damaged archives do not end the job" [ $? = 0 ]
check "a warning names each" eval '[ "$(grep -c "broken/[bcde]\.[a-z]*: " log)" -ge 4 ]'
check "two ranks" predict broken --ranks 2 --out broken2.csv
check "write the same bytes" cmp broken.csv broken2.csv
check "members before the damage are scored, and each archive is a row with its error" python3 "$checks" damaged_archives
rc=0; predict broken/d.tar broken/e.pack --out none.csv || rc=$?
check "with nothing scored the program ends with 3" [ $rc = 3 ]

# What is hardly a chest X-ray is scored and noted; an X-ray is not.
python3 "$checks" draw_pictures
check "pictures that are hardly X-rays" predict hardly --out hardly.csv
check "are counted" grep -q "; 5 images may be no chest X-ray, see the notes" log
check "two ranks" predict hardly --ranks 2 --out hardly2.csv
check "write the same bytes" cmp hardly.csv hardly2.csv
predict hardly --json >hardly.json
predict hardly/strip.png >hardly.txt
check "the table shows a note" grep -qF "(note: a strip of 2000 x 20 pixels)" hardly.txt
check "each is scored, with its note" python3 "$checks" notes

# The model's own input.
for set in data.resize=40 data.crop=30 data.eval_resize=64 data.resize_kind=area data.jpeg_scale=off data.mean=[0] "data.findings=[Edema]" model.arch=resnet50; do
  refused 2 "--set ${set%%=*}: the model was trained with" predict "$run" set "--set" "$set"
done
check "what says the same is taken" predict set --set data.crop=32 --out again.csv
check "and changes nothing" cmp folder.csv again.csv
refused 2 "input is required" predict "$run"
refused 4 "no checkpoint here" predict "$scratch/set" set
refused 4 "nowhere/x.csv" predict "$run" set --out nowhere/x.csv

# Several crops of a picture; rows as they come; nothing that is read is replaced.
for crops in 2 10; do
  "$program" evaluate "$run" --set eval.crops=$crops --out truth$crops.csv >/dev/null 2>&1
  check "$crops crops" predict set --set eval.crops=$crops --out crops$crops.csv
  check "on two ranks and more loader threads" predict set --set eval.crops=$crops --ranks 2 --set data.workers=3 --out crops$crops-2.csv
  check "the same bytes" cmp crops$crops.csv crops$crops-2.csv
  mv evaluate.csv kept.csv && mv truth$crops.csv evaluate.csv
  same "the probabilities that evaluate writes with them" crops$crops.csv
  mv kept.csv evaluate.csv
  check "others than of one crop" bash -c "! cmp -s folder.csv crops$crops.csv"
done
refused 2 "eval.crops" predict "$run" set --set eval.crops=3
predict set --json >plain.jsonl
predict set --json --features >features.jsonl
check "features are what the classifier works on" python3 "$checks" features plain.jsonl features.jsonl "$(weights "$run")"
refused 2 "--features requires --json" predict "$run" set --features
refused 2 "eval.crops=2 has several of an image" predict "$run" set --features --json --set eval.crops=2
predict set --set eval.batch=2 --json >rows.jsonl
check "rows are in order" look 'assert [row.get("image") for row in a][:-1] == [line.strip() for line in open("list.txt")]' rows.jsonl
cp list.txt list.kept; cp "${files[0]}" image.kept
refused 2 "is read by this command and would be replaced" predict "$run" @list.txt --out list.txt
refused 2 "is read by this command and would be replaced" predict "$run" @list.txt --out ./list.txt
refused 2 "is read by this command and would be replaced" predict "$run" all.tar --out all.tar
refused 2 "or written twice" predict "$run" all.tar --out both --heatmaps ./both
refused 2 "inside the input set" predict "$run" set --heatmaps set/maps
ls -d set/* >folders.txt
refused 2 "set/a/maps is to be written inside the input set/a" predict "$run" @folders.txt --heatmaps set/a/maps
refused 2 "inside the input set/a" predict "$run" set/* --heatmaps set/a/maps
check "and neither was made" test ! -e both -a ! -e set/a/maps
head -n 1 list.txt >first.txt
check "inside the folder of a listed file" predict @first.txt --heatmaps set/a/maps --heatmap-findings Mass
check "they are warned of" grep -q "set/a/maps is written inside set/a, which holds images of this input" log
check "in a folder beside it they are not" eval 'predict "${files[0]}" --heatmaps beside --heatmap-findings Mass && ! grep -q "is written inside" log'
rm -r set/a/maps beside
refused 2 "was not written by this command: it is not replaced" predict "$run" set --out "${files[0]}"
refused 2 "is read by this command and would be replaced" predict handed_on.safetensors set --out handed_on.safetensors
check "they are as they were" bash -c "cmp list.txt list.kept && cmp '${files[0]}' image.kept"

# Files as found in the wild.
wild=${CHEXNET_XRAY_DIR:-$source_folder/../shared/xray}
if [ -d "$wild/odd" ]; then
  predict "$wild/odd" --json >wild.json; check "files found in the wild" [ $? = 0 ]
  check "each as its README says" python3 "$checks" wild_files "$wild/odd" "$([ -x "$CHEXNET_BUILD/chexnet-dicom" ] && echo with || echo without)"
  predict "$wild/odd_derived" --json >derived.json; check "and files made so" [ $? = 0 ]
  check "broken ones are rows that name the file" python3 "$checks" derived_files
else
  echo "skipped: no X-rays in $wild (set CHEXNET_XRAY_DIR)"
fi

# DICOM: as the PNG that chexnet-dicom writes.
if [ -x "$CHEXNET_BUILD/chexnet-dicom" ] && [ -d "$wild/odd" ]; then
  mkdir dicom && cp "$wild"/odd/*.dcm dicom/ && mv dicom/Fake_MONOHR1.dcm dicom/IM0001 && head -c 5000 dicom/IM0001 >dicom/cut.dcm
  "$CHEXNET_BUILD/chexnet-dicom" dicom --out converted --ids keep 2>/dev/null
  mkdir tmp; check "DICOM files" env TMPDIR="$scratch/tmp" "$program" predict "$run" dicom --out dicom.csv 2>log
  predict converted/images --out pictures.csv
  check "have the probabilities of the converted pictures, and a damaged one its row" python3 "$checks" dicom_rows
  check "no picture of them stays" [ -z "$(ls tmp)" ]
else
  echo "skipped: no chexnet-dicom, or no DICOM files"
fi
finish
