#!/usr/bin/env bash
# The walks of docs/design.md lead through code that exists: each step is "1. `function` (`folder/file`)", the file is there,
# and the function is defined in it. A walk has at most ten steps. And each test that
# docs/promises.md and docs/gpu.md name is there. usage: design_walks_test.sh [PAGE]
set -u
cd "$(dirname "$0")/.." || exit 1
page=${1:-docs/design.md}
bad=0 walks=0 steps=0
fault() { echo "$page: $*"; bad=1; }

# A definition: the name at the begin of a line or after a type, before its arguments or the brace of a class, and no call.
defines() {  # defines FILE NAME
  local name=${2//::/::}
  grep -E "^( {2,4})?([A-Za-z_][][A-Za-z0-9_:<>,*& ]*[ *&])?${name}(\(| \{|$)" "$1" |
    grep -vE '^ *(return|throw|co_return|else|delete|new) ' | grep -qvE ';$|^ *[a-z_]+\(.*\);'
}

in_walks=no
while IFS= read -r line; do
  case $line in
    '## Four walks'*) in_walks=yes; continue ;;
    '## '*) in_walks=no ;;
  esac
  [ $in_walks = yes ] || continue
  case $line in
    '### '*) [ $walks = 0 ] || [ $steps != 0 ] || fault "\"$walk\" has no steps" ;;&
    '### '*) walk=${line#\#\#\# } walks=$((walks + 1)) steps=0; continue ;;
  esac
  [[ $line =~ ^\ *[0-9]+[.\)] ]] || continue  # also one that Markdown would number otherwise
  steps=$((steps + 1))
  [ $steps -le 10 ] || fault "\"$walk\" has more than ten steps"
  if ! [[ $line =~ ^[0-9]+\.\ \`([A-Za-z_0-9:~]+)\`\ \(\`([a-z0-9_./]+)\`\) ]]; then
    fault "no \"\`function\` (\`file\`)\" at the begin of: $line"
    continue
  fi
  name=${BASH_REMATCH[1]} file=${BASH_REMATCH[2]}
  for place in "src/$file" "include/chexnet/$file" ''; do [ -f "$place" ] && break; done
  if [ -z "$place" ]; then
    fault "$walk: there is no file $file"
  elif ! defines "$place" "$name"; then
    fault "$walk: $place does not define $name"
  fi
done <"$page"
[ $steps != 0 ] || fault "\"$walk\" has no steps"
[ $walks = 4 ] || fault "$walks walks found, not four"

page=docs/promises.md
grep -nE '^\|[^|]*\| *(none)? *\|?$' $page | grep -v '| \*\*' && fault 'a promise without what holds it'
proven=$(sed -n '/^## Proven/,/^\*\*The fake/p' docs/gpu.md)
for test in $({ cat $page; echo "$proven"; } | sed -n 's/`[^`]*`//g; s/^|.*|\(.*\)|$/\1/p' | grep -oE '([a-z0-9_]+/)+[a-z0-9_]+'); do
  compgen -G "tests/${test}_test.*" >/dev/null || fault "there is no test $test"
done
exit $bad
