#!/usr/bin/env bash
# predict --dicom on files written here value by value: what comes back belongs to patient and study of its picture, says
# what predict says, and is read by dcmtk (where it is installed).
set -u
source tests/lib.sh
checks=$source_folder/tests/app/dicom_checks.py
[ -x "$CHEXNET_BUILD/chexnet-dicom" ] || { echo "skipped: built without GDCM"; exit 77; }
cd "$scratch"
python3 "$checks" scored
cp "$phantom"/images/00000001_000.png in/
check "a model" "$program" train "$small" --out run --set train.max_steps=4 2>log
check "predict with reports and captures" "$program" predict run in --out scores.csv --dicom out --heatmaps maps --heatmap-findings Mass,Effusion 2>log
check "a file without UIDs has no report, and a warning" grep -q "c.dcm: has no UIDs of study, series and instance" log
check "so has one whose UID is none" grep -q "e.dcm: 'not a uid' is no UID" log
check "two reports, two captures of each file, nothing else" [ "$(ls -A out | wc -l) $(ls out/*_{Mass,Effusion}.dcm | wc -l)" = "6 4" ]
check "patient, study and picture are those of the source" python3 "$checks" belong_to_their_source
check "two ranks" "$program" predict run in --ranks 2 --dicom out2 --heatmaps maps2 --heatmap-findings Mass,Effusion 2>log
check "write as many" [ "$(ls -A out2)" = "$(ls -A out)" ]
if command -v dsrdump >/dev/null; then
  dsrdump -Ec +Pu +Pl "$(ls out/*_a.dcm | head -1)" >dump 2>err; check "dcmtk reads the report" [ $? = 0 ]
  check "without an error" sh -c '! grep -q "^E:" err'
  check "its numbers are those of the table" python3 "$checks" numbers_of_the_table
else
  echo "skipped: no dsrdump (dcmtk)"
fi
# What is no chest X-ray has no score and no report, unless it is asked for; then the report says what it is.
check "a CT, a tibia and a capture" "$program" predict run parts --out parts.csv --dicom parts.dicom --heatmaps parts.maps --heatmap-findings Mass 2>log
check "one is scored, with a note" [ "$(cut -d, -f1,2 parts.csv | grep -c 'dcm,0')  $(grep -c '^parts/capture.dcm,0.*,,secondary capture$' parts.csv)" = "1  1" ]
check "the others say why not" eval 'grep -q "^parts/ct.dcm,,.*(Modality is CT; BodyPartExamined is ABDOMEN)" parts.csv && grep -q "^parts/tibia.dcm,,.*(BodyPartExamined is EXTREMITY)" parts.csv'
check "and have no report and no capture" [ "$(ls -A parts.dicom | wc -l) $(ls parts.dicom/*_Mass.dcm | wc -l)" = "2 1" ]
check "nothing is said of a temporary folder" sh -c "! grep -q chexnet-predict log"
check "--any-dicom scores all" "$program" predict run parts --out any.csv --dicom any.sr --any-dicom 2>log
check "with notes" [ "$(grep -cE ',,(secondary capture|BodyPartExamined is EXTREMITY|Modality is CT; BodyPartExamined is ABDOMEN)$' any.csv)" = 3 ]
check "which the reports have" [ "$(grep -la 'BodyPartExamined is EXTREMITY' any.sr/* | wc -l)" = 1 ]
check "a folder that holds something is refused (exit 4)" sh -c "'$program' predict run in --dicom out >/dev/null 2>log; [ \$? = 4 ] && grep -q 'is not an empty folder' log"
check "pictures that are not DICOM: said, and no folder" sh -c "'$program' predict run in/00000001_000.png --dicom none >/dev/null 2>log && grep -q 'none of the scored images is a DICOM file' log && [ ! -e none ]"
check "a long name is cut" sh -c "'$program' predict run xxx*.dcm --dicom long >/dev/null 2>log && [ \$(ls long | wc -l) = 1 ]"
touch file; ln -s nowhere link
for place in file link; do check "no folder: $place (exit 4, before the work)" sh -c "'$program' predict run in --out early.csv --dicom $place >/dev/null 2>log; [ \$? = 4 ] && [ ! -e early.csv ]"; done
mkfifo pipe.dcm
python3 "$checks" requests
converter=$CHEXNET_BUILD/chexnet-dicom
check "names in another script" sh -c "'$converter' --results fine | grep -q '\"reports\":1'"
! command -v dsrdump >/dev/null || check "dcmtk reads them" sh -c "dsrdump -Ec +Pu fine.sr >dump 2>err && ! grep -q '^E:' err && [ \$(grep -c 'contains NUM' dump) = 3 ]"
check "a picture that was exchanged has no report" sh -c "'$converter' --results swapped 2>log | grep -q '\"failed\":1' && [ ! -e swapped.sr ] && grep -q 'is another picture than the one that was scored' log"
check "a pipe holds nobody" timeout 20 sh -c "'$converter' --results pipe 2>log | grep -q '\"failed\":1'"
check "a report is not written over (exit 4)" sh -c "'$converter' --results fine >/dev/null 2>log; [ \$? = 4 ] && grep -q 'is there already' log"
check "what is no request (exit 3)" sh -c "echo '{}' >no; '$converter' --results no >/dev/null 2>log; [ \$? = 3 ] && grep -q 'is no list of results' log"
mkdir tmp; check "nothing stays among the temporary files" env TMPDIR="$scratch/tmp" sh -c "'$program' predict run in --dicom sr3 --heatmaps sr3 >/dev/null 2>&1; [ -z \"\$(ls tmp)\" ]"

# kill -9 in the midst: nobody goes on writing, and the next command removes what is left, pictures of patients too.
mkdir many tmp2 && for i in $(seq 30); do cp other.dcm "many/$i.dcm"; done
reports() { ls killed 2>/dev/null | grep -c dcm; }
slow_images 500  # each report is half a second late
TMPDIR=$scratch/tmp2 "${slow[@]}" SLOW_NAME=.dcm "$program" predict run many --dicom killed >/dev/null 2>&1 & process=$!
await "two reports are written" eval '[ "$(reports)" -ge 2 ]'
kill -9 $process; wait $process 2>/dev/null
await "nobody goes on writing" eval '! pgrep -f -- "chexnet-dicom --results $scratch/tmp2"'
check "reports were being written, and are not any more ($(reports))" [ "$(reports)" -lt 30 ]
check "pictures and the request stayed" [ -n "$(ls tmp2)" ]
check "the next command writes all" env TMPDIR="$scratch/tmp2" "$program" predict run many --dicom killed --out killed.csv
check "and nothing else is left" eval '[ "$(reports)" = 30 ] && [ ! -e killed/unfinished ] && [ -z "$(ls tmp2)" ]'
finish
