#!/usr/bin/env bash
# No function is longer than a screen of 80 lines, and no conditional operator stands inside another.
exec "$(dirname "$0")/../scripts/code_figures" --check
