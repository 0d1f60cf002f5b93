#!/usr/bin/env bash
# A type name of a namespace is defined in one file: two definitions in one program break the one-definition rule, and the linker
# says nothing. Types of anonymous namespaces and of classes may repeat. usage: one_name_test.sh [FOLDER...]
set -u
[ $# -gt 0 ] || set -- include src
# The format puts what a namespace holds into the first column and closes it with "}  // namespace NAME".
names=$(find "$@" -name '*.hpp' -o -name '*.cpp' | sort | xargs awk '
  FNR == 1 { depth = 0; anonymous = 0 }
  /^namespace .*[{]$/ { depth++; scope[depth] = $2 == "{" ? "" : $2; if ($2 == "{") anonymous++; next }
  /^}  \/\/ namespace/ { if (scope[depth] == "") anonymous--; depth--; next }
  { gsub(/\[\[[a-z_:]+\]\] |alignas\([^)]*\) /, ""); sub(/^template <[^>]*> /, "") }  # what stands before the name
  anonymous == 0 && depth > 0 && /^using [A-Za-z_0-9]+ =/ { print_name($2); next }
  anonymous == 0 && depth > 0 && /^(struct|class|union|enum|enum class) [A-Za-z_]/ && (/[{]/ || !/;$/) {
    name = $2 == "class" ? $3 : $2
    if (name ~ /::/) next  # a nested type
    sub(/[^A-Za-z0-9_].*/, "", name)
    print_name(name)
  }
  function print_name(name,  where, i) {
    where = ""
    for (i = 1; i <= depth; i++) where = where scope[i] "::"
    print where name, FILENAME ":" FNR
  }')
twice=$(echo "$names" | awk '{ places[$1] = places[$1] " " $2; count[$1]++ } END { for (n in count) if (count[n] > 1) print n " is defined at" places[n] }' | sort)
[ -z "$twice" ] || { echo "$twice"; exit 1; }
[ "$(echo "$names" | wc -l)" -gt 100 ] || { echo "only $(echo "$names" | wc -l) types found: wrong folder?"; exit 1; }
# Two headers of one name would be two things of one name.
twice=$(find "$@" -name '*.hpp' -printf '%f %p\n' | awk '{ places[$1] = places[$1] " " $2; count[$1]++ } END { for (n in count) if (count[n] > 1) print n " is at" places[n] }' | sort)
[ -z "$twice" ] || { echo "$twice"; exit 1; }
