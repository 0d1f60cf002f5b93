#!/usr/bin/env bash
# swift_down.sh FOLDER: ends what swift_up.sh FOLDER started, whole process groups by their ids.
for file in "$1"/*.pid; do
  [ ! -e "$file" ] || kill -KILL -- "-$(cat "$file")" 2>/dev/null
  rm -f "$file"
done
exit 0
