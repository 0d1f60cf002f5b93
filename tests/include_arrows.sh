#!/usr/bin/env bash
# Includes point one way, src/CMakeLists.txt links what is included, and docs/design.md draws it.
exec "$(dirname "$0")/../scripts/include_graph" --check
