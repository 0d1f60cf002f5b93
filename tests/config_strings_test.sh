#!/usr/bin/env bash
# Values of a config are types: outside config/ none is compared with a text literal, where a misspelling would compile and mean
# "the other case". A member of a config is what a key names (`.optimizer`), compared as `== "sgd"` or looked up in a list of texts.
# And nothing changes a loaded config: a command's own options are the last argument of load_config().
# usage: config_strings_test.sh [FOLDER...]; prints the places and how many there are, and fails unless there are none.
set -u
[ $# -gt 0 ] || set -- include src
# The last parts of all keys, from the page that is printed from the table of options.
keys=$(grep -oE '^\| `[a-z0-9_.]+`' docs/config.md | sed -E 's/.*[.`]([a-z0-9_]+)`$/\1/' | sort -u)
[ "$(echo "$keys" | wc -l)" -gt 60 ] || { echo "only $(echo "$keys" | wc -l) keys found in docs/config.md"; exit 1; }
any=$(echo "$keys" | paste -sd '|')
# A chain that ends in a key and starts in something that holds a config: `config.train.optimizer`, `parts_.config.data.corrupt`,
# `launch.bind`, `config_.optimizer`. Files are joined, since a comparison may go over the end of a line.
owner='(config|config_|conf|c|run|data|manifest|columns|s3|model|train|eval|checkpoint|launch|launch_config|options\.train)'
value="\\b$owner(\\.|->)($any)\\b" named='choice_name\([^")]*\)\)?'
text='(std::string(_view)?[({])?"[^"]+"'
places=$(find "$@" \( -name '*.hpp' -o -name '*.cpp' \) -not -path '*/config/*' | sort | while read -r file; do
  sed -E 's,//.*$,,' "$file" | tr '\n' ' ' |
    grep -oE "($value|$named) *[=!]= *$text|$text\)? *[=!]= *([a-z_.]*$value|$named)|$value\.(starts_with|compare)\($text" | sed "s,^,$file: ,"
done)
count=$(echo -n "$places" | grep -c .)
[ -z "$places" ] || echo "$places"
echo "comparisons of config values with text outside config/: $count"
# What a run decided is written into the copy that its config.yaml keeps.
changed=$(grep -rnE '\bconfig_?\.[a-z_]+\.[a-z_.]+ = ' "$@" | grep -vE '/config/|/run/run_decisions.cpp:' || true)
[ -z "$changed" ] || { echo 'a loaded config is changed:'; echo "$changed"; }
[ "$count" = 0 ] && [ -z "$changed" ]
