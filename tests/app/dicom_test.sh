#!/usr/bin/env bash
# chexnet-dicom on files written here value by value (and by gdcmconv in compressed forms where it is installed), and on
# the real ones where they are: every step of the display pipeline, what is skipped, pseudonyms.
set -u
source tests/lib.sh
checks=$source_folder/tests/app/dicom_checks.py
converter=$CHEXNET_BUILD/chexnet-dicom
[ -x "$converter" ] || { echo "skipped: built without GDCM"; exit 77; }
cd "$scratch"
python3 "$checks" displays
"$converter" in --out plain --ids keep --json >json 2>err; rc=$?
check "converts" [ $rc = 0 ]
check "each step of the display pipeline, value by value" python3 "$checks" displayed
"$converter" in --out hidden >/dev/null 2>err
check "pseudonyms by default" [ $? = 0 ]
check "no id or name in what is passed on" bash -c '! grep -rqiE "doe|roe|jane|1\.2\.3\." hidden'
check "the map has them, for its owner only" bash -c 'grep -q "Doe^Jane 17" hidden.map.csv && [ "$(stat -c %a hidden.map.csv)" = 600 ] && [ "$(stat -c %a hidden.key)" = 600 ]'
"$converter" in --out again --key-file hidden.key >/dev/null 2>&1
check "the same key gives the same pseudonyms" cmp -s hidden/images.csv again/images.csv
"$converter" in --out other >/dev/null 2>&1
check "another key gives others" bash -c '! cmp -s hidden/images.csv other/images.csv'
cat >cfg.yaml <<'YAML'
data:
  manifest: {format: csv, path: hidden/images.csv, columns: {image: image, patient: patient, age: age, sex: sex, view: view}}
YAML
if command -v gdcmconv >/dev/null; then
  mkdir coded
  for form in jpegls j2k jpeg rle; do gdcmconv --$form raw/64.dcm coded/$form.dcm || check "gdcmconv --$form" false; done
  "$converter" raw --out raw.out --ids keep >/dev/null 2>&1
  "$converter" coded --out coded.out --ids keep >/dev/null 2>&1
  for i in 0 1 2 3; do check "compressed form $i is lossless" cmp -s coded.out/images/Doe_Jane_17-7b45d0ed_00$i.png raw.out/images/Doe_Jane_17-7b45d0ed_000.png; done
  python3 "$checks" cut_pixels
  "$converter" short --out short.out --ids keep --json >json 2>err; rc=$?
  check "compressed pixels that are cut off are damage" test "$rc $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "3 0 20"
  "$converter" ended --out ended.out --ids keep >/dev/null 2>&1
  for i in 0 1 2 3; do check "whole compressed pixels ($i) without a mark behind them" cmp -s ended.out/images/Doe_Jane_17-7b45d0ed_00$i.png raw.out/images/Doe_Jane_17-7b45d0ed_000.png; done
else
  echo "skipped: compressed forms (no gdcmconv)"
fi
# What says that it is no chest X-ray is not converted, unless it is asked for; what does not say it is.
python3 "$checks" parts_of_bodies
"$converter" parts --out parts.out --ids keep --outcomes-file parts.csv --json >json 2>err
check "only chest X-rays are converted" test "$(tail -n +2 parts.out/images.csv | sed 's/_000.*//' | sort | tr '\n' ' ')" = \
  "blank capture chest coded digitized named no_modality small_letters thorax "
check "the others are counted" grep -qF '"skipped":{"not_xray":6,"other_body_part":4}' json
for reason in "no_ct.dcm: not converted: it says that it is no X-ray (Modality is CT). Hint: --any-dicom" "no_class.dcm: not converted: it says that it is no X-ray (no Modality; SOPClassUID is 1.2.840.10008.5.1.4.1.1.2)" \
  "no_tibia.dcm: not converted: it is not of the chest alone (BodyPartExamined is EXTREMITY)" "no_coded_hand.dcm: not converted: it is not of the chest alone (AnatomicRegionSequence is Hand)"; do
  check "$reason" grep -qF "$reason" parts.csv
done
check "what does not say it has a note" test "$(grep -o '/[a-z_]*.dcm,.*,\(secondary capture\|no Modality\)$' parts.csv | sed 's/[/.].*,/:/; s|^/||' | sort | tr '\n' ' ')" = \
  ":no Modality :secondary capture :secondary capture "
check "whoever reads the outcomes needs no line of them" [ ! -s err ]
"$converter" parts --out any.out --ids keep --any-dicom --outcomes-file any.csv 2>/dev/null
check "those that may be no chest X-rays are marked" grep -q ",may be no chest X-ray$" any.out/images.csv
check "--any-dicom converts all" [ "$(tail -n +2 any.out/images.csv | wc -l)" = 19 ]
check "and notes what they say" grep -q "no_tibia.dcm,.*,BodyPartExamined is EXTREMITY$" any.csv

# Patients' data: only known codes and ages, whatever a file holds.
python3 "$checks" patients
"$converter" said --out said.out --ids keep >/dev/null 2>&1
check "no free text as sex, view or age; 90 is the highest age" test "$(cut -d, -f3- said.out/images.csv)" = "view,age,sex,note
,90,,
AP,89,O,
,,F,"

check "nor in how the values became 8 bits" bash -c '! grep -q "DOE JANE" said.out/conversion.json'

# Names of patients and files, whatever an id holds: distinct, short enough, and JSON is UTF-8.
"$converter" ids --out $'ids\xfc.out' --ids keep --json >json 2>err; rc=$?
check "a damaged file and a folder named in another encoding" test "$rc $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "0 4 1"
check "and their JSON is UTF-8" python3 -c "import json, glob; json.load(open('json', encoding='utf-8')); json.load(open(glob.glob(b'ids*.out/conversion.json')[0], encoding='utf-8'))"
check "--ids keep: other ids, other patients; one that is a name stays as it is" test "$(tail -n +2 ids*.out/images.csv | cut -d, -f2 | sort -u | wc -l) $(grep -c '^A_1_000.png,A_1,' ids*.out/images.csv)" = "4 1"
for ids in keep pseudonym; do
  "$converter" nobody --out nobody.$ids --ids $ids >/dev/null 2>&1
  "$converter" studies --out studies.$ids --ids $ids >/dev/null 2>&1
  check "--ids $ids: without a patient's id a study is a patient" test "$(tail -n +2 studies.$ids/images.csv | cut -d, -f2 | sort | uniq -c | awk '{print $1}' | sort | tr '\n' ' ')" = "1 2 "
  "$converter" two_bytes --out two_bytes.$ids --ids $ids >/dev/null 2>&1
  check "--ids $ids: a byte of a character is no end of an id" test "$(tail -n +2 two_bytes.$ids/images.csv | cut -d, -f2 | sort -u | wc -l)" = 2
  check "--ids $ids: without any id each image is a patient of its own" test "$(tail -n +2 nobody.$ids/images.csv | cut -d, -f2 | sort -u | wc -l)" = 3
done
"$converter" order --out order.out >/dev/null 2>&1
cp -r order moved && "$converter" moved --out moved.out --key-file order.out.key >/dev/null 2>&1
check "the rows follow the pseudonyms" bash -c 'cmp -s <(tail -n +2 order.out/images.csv) <(tail -n +2 order.out/images.csv | LC_ALL=C sort)'
check "the times of the pictures do not follow the names of files" bash -c '! cmp -s <(cd order.out/images; ls -tr) <(grep order/ order.out.map.csv | sort -t, -k6 | cut -d, -f1)'
check "the same files elsewhere have the same names" cmp -s order.out/images.csv moved.out/images.csv

# A folder that cannot be read and links that lead nowhere cost nothing but themselves.
mkdir -p odd/closed; cp in/a_full_range.dcm odd/; ln -s round odd/round; ln -s /nowhere odd/gone; ln -s .. odd/up; mkfifo odd/pipe
user=(); [ "$(id -u)" != 0 ] || { chmod 711 .; mkdir -p theirs && chown 65534 theirs && user=(setpriv --reuid=65534 --regid=65534 --clear-groups); }
mkdir -p theirs; chmod 000 odd/closed
"${user[@]}" "$converter" odd --out theirs/odd.out --json >json 2>err; rc=$?
check "they are counted and the folder is named" test "$rc $(grep -c 'odd/closed: this folder cannot be read' err) $(cat json)" = \
  '0 1 {"images":1,"skipped":{"broken_link":2,"no_file":1},"damaged":1,"out":"theirs/odd.out","system_calls_filtered":true}'
check "in the map only" bash -c '! grep -q closed theirs/odd.out/conversion.json && grep -q "^unreadable folder 1,,,,,odd/closed" theirs/odd.out.map.csv'
chmod 700 odd/closed
timeout 20 "$converter" odd/pipe in/a_full_range.dcm --out pipe.out --json >json 2>err; rc=$?
check "a pipe that is named is counted at once" test "$rc $(grep -c 'odd/pipe: is a pipe' err) $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "0 1 1 1"

# Files at which GDCM ends the process (failed assertions, in builds that have them) are damaged files like others.
mkdir cut; for i in a c; do cp in/a_full_range.dcm cut/$i-whole.dcm; done
for length in 140 150 160 170 180 190 200 210 220 230 240 260 280 300 320; do head -c $length in/a_full_range.dcm >cut/b-$length.dcm; done
"$converter" cut --out cut.out --json >json 2>err; rc=$?
check "cut-off files are counted, the others converted" test "$rc $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "0 2 15"
check "the map says which they were" [ "$(grep -c '^damaged file [0-9]*,,,,,cut/b-' cut.out.map.csv)" = 15 ]
check "what is passed on does not" bash -c '! grep -q "b-140" cut.out/conversion.json'

# A file that takes over its reader can do nothing but read and answer: where GDCM would end by a failed assertion, the reader
# tries to do more. (Debian's GDCM is built with assertions.)
cc -shared -fPIC -o rogue.so "$source_folder/tests/support/rogue_parser.c" || exit 1
mkdir rogue; printf '\010\0\0\0' >rogue/a.dcm; cp in/a_full_range.dcm rogue/b.dcm; touch precious
attack() {  # attack NAME COMMAND...: of a reader that does NAME
  ROGUE=$1 LD_PRELOAD=$PWD/rogue.so "${@:2}" "$converter" rogue --out "rogue.$1" --json >json 2>err
}
counts() { sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json; }
attack nothing
if grep -q 'its reader died: Aborted' err; then
  check "a filter of system calls is in force, or said not to be" \
    test "$(grep -c '"system_calls_filtered":true' json) $(grep -c seccomp err)" = "1 0"
  for name in socket execve fork ptrace open; do
    attack $name
    check "a reader that asks for $name ends, its file is damaged and the next one converted" \
      test "$(grep -c 'rogue/a.dcm: its reader died: Bad system call' err) $(counts)" = "1 1 1"
  done
  attack unlink
  check "a reader cannot remove a file" test "$(counts) $(ls precious)" = "1 1 precious"
  check "no reader has written a file" [ ! -e stolen ]
  if [ "$(uname -m)" = x86_64 ]; then
    rm -rf rogue.*; attack socket "$source_folder/tests/support/refuse_seccomp.py"
    check "where the kernel refuses a filter, it goes on and says so once" test \
      "$(grep -c '"system_calls_filtered":false' json) $(grep -c 'refuse a filter of system calls' err) $(counts)" = "1 1 1 1"
    check "and a reader is not ended by it" grep -q 'its reader died: Aborted' err
  fi
else
  echo "skipped: readers that are taken over (this GDCM has no assertions)"
fi

python3 "$checks" lies
cp "$source_folder/tests/fuzz/regressions/dicom/value-of-gigabytes" lies/e_found.dcm
python3 "$checks" most_kb "$converter" lies --out lies.out --ids keep --json >most_kb
check "values longer than their file are damage, each named with its reason, and the next file is read" test \
  "$(counts) $(grep -c 'asks for more memory than a file of [0-9]* bytes can need. Hint: is it damaged' err)" = "1 4 4"
case $(nm -D "$converter" 2>/dev/null) in
  *__asan_*) echo "skipped: memory of a reader (under a sanitizer)" ;;
  *) check "nor do they take memory ($(cat most_kb) KB)" test "$(cat most_kb)" -lt 200000 ;;
esac

mkdir late; cp in/a_full_range.dcm late/slow_one.dcm; cp in/a_full_range.dcm late/
cat >late.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
FILE* fopen64(const char* path, const char* mode) {
  while (strstr(path, "slow_one")) pause();
  return ((FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, "fopen64"))(path, mode);
}
C
gcc -shared -fPIC -o late.so late.c -ldl
LD_PRELOAD=$PWD/late.so timeout 60 "$converter" late --out late.out --max-seconds 1 --json >json 2>err; rc=$?
check "a file that takes long costs its time and no more" test "$rc $(grep -c 'takes longer than 1 s' err)" = "0 1"

# A conversion without a picture leaves nothing that blocks the next one.
"$converter" nope --out mistyped >/dev/null 2>err; rc=$?
check "a path that is not there is told so" test "$rc $(grep -c 'nope: no such file' err)" = "3 1"
check "and there is neither set nor map" test ! -e mistyped -a ! -e mistyped.map.csv
: >nothing.dcm
"$converter" nothing.dcm --out mistyped >/dev/null 2>err; rc=$?
check "exit 3 says why" test "$rc $(grep -c '^error: \[dicom\] mistyped: not written, as no file was converted; the first skipped: nothing.dcm is no DICOM file. Hint: ' err)" = "3 1"
"$converter" in/a_full_range.dcm --out mistyped >/dev/null 2>&1
check "the corrected command goes through" test "$? $(ls mistyped/images | wc -l)" = "0 1"
"$converter" --out= in/a_full_range.dcm >/dev/null 2>err; rc=$?
check "a folder without a name is not the next word" test "$rc $(grep -c -- '--out: is empty' err)" = "2 1"
"$converter" --help >/dev/full 2>err; rc=$?
check "--help that cannot be written" test "$rc $(grep -c 'could not be written' err)" = "4 1"
"$converter" in/a_full_range.dcm --out unsaid --json >/dev/full 2>err; rc=$?
check "--json that cannot be written" test "$rc $(grep -c 'could not be written' err)" = "4 1"

# Key and map stay outside of the set that is passed on, and only their owner can read them.
one=in/a_full_range.dcm
"$converter" $one --out slash/ >/dev/null 2>&1
check "--out with a slash at its end" test "$(stat -c %a slash.key slash.map.csv | tr '\n' ' ')" = "600 600 "
check "nothing private inside" bash -c "! find slash -name '*.key' -o -name '*.map.csv' -o -name '.*' | grep -q ."
mkdir dot && (cd dot && "$converter" ../$one --out . >/dev/null 2>&1)
check "--out ." test -e dot.key -a -e dot.map.csv -a ! -e dot/.key
mkdir inner; ln -s inner way
for where in inner/k inner/../inner/k way/k inner/sub/k; do
  "$converter" $one --out inner --key-file $where >/dev/null 2>err; rc=$?
  check "a key inside the set ($where) is refused" test "$rc $(grep -c 'is inside the set' err)" = "4 1"
  "$converter" $one --out way/ --map-file $where >/dev/null 2>err; rc=$?
  check "a map inside the set ($where) is refused" test "$rc $(grep -c 'is inside the set' err)" = "4 1"
done
"$converter" $one --out mine >/dev/null 2>&1; mv mine.map.csv kept.csv
chmod 644 mine.key; "$converter" $one --out next --key-file mine.key >/dev/null 2>err; rc=$?
check "a key that others can read is refused" test "$rc $(grep -c 'no key of this user alone' err)" = "4 1"
cp kept.csv fresh.map.csv; "$converter" $one --out fresh >/dev/null 2>err; rc=$?
check "the map of another set is not overwritten" test "$rc $(grep -c 'is there already' err) $(cmp kept.csv fresh.map.csv && echo same)" = "4 1 same"
cp $one original.dcm
for file in original.dcm kept.csv mine.key; do
  cp $file before; "$converter" original.dcm --out another --outcomes-file $file >/dev/null 2>err; rc=$?
  check "outcomes go into no file that is there ($file)" test "$rc $(grep -c 'is there already' err) $(cmp before $file && echo same)" = "4 1 same"
done
for two in "--key-file k --map-file k" "--map-file k --outcomes-file ./k" "--key-file k --outcomes-file k"; do
  "$converter" $one --out another $two >/dev/null 2>err; rc=$?
  check "two outputs in one file ($two) are refused" test "$rc $(grep -c 'would be one file' err)" = "4 1"
done
mkdir originals && cp original.dcm originals/; ln -s originals leads
for out in originals leads/ .; do
  "$converter" originals --out $out >/dev/null 2>err; rc=$?
  check "a set around its originals (--out $out) is refused" test "$rc $(grep -c 'would hold the originals' err)" = "4 1"
done
check "and nothing was made" test ! -e another -a ! -e k -a ! -e originals/images
touch taken_name; "$converter" $one --out taken_name >/dev/null 2>err; rc=$?
check "--out that is a file is told in a sentence" test "$rc $(grep -c "error: \[dicom\] taken_name: the set's folder cannot be made: .*Hint: --out names a folder" err)" = "4 1"
touch elsewhere; ln -s elsewhere planted.map.csv; "$converter" $one --out planted >/dev/null 2>err; rc=$?
check "nor is a planted link followed" test "$rc $(stat -c %s elsewhere)" = "4 0"
if [ "$(id -u)" = 0 ]; then
  chmod 711 .; mkdir common && chmod 1777 common
  setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'umask 0; for f in set.key set.map.csv; do : >common/$f.partial; done; head -c 32 /dev/urandom >common/taken.key; chmod 600 common/taken.key'
  "$converter" $one --out common/set >/dev/null 2>&1
  check "files that others made before become neither key nor map" test "$(stat -c '%u %a' common/set.key common/set.map.csv | sort -u)" = "0 600"
  "$converter" $one --out common/taken >/dev/null 2>err; rc=$?
  check "a key that somebody else made is refused" test "$rc $(grep -c 'no key of this user alone' err)" = "4 1"
else
  echo "skipped: files of another user (not root)"
fi
xray=${CHEXNET_XRAY_DIR:-$source_folder/../shared/xray}
if [ -d "$xray/odd" ]; then
  "$converter" "$xray/odd" --out real --ids keep --json >json 2>/dev/null
  check "the two real files: means 180.06, and 255 - 160.4 (MONOCHROME1)" python3 "$checks" real_means
fi
finish
