#!/usr/bin/env bash
# Twenty steps on one rank and on two, and a prediction, under valgrind's memcheck (scripts/robustness/memcheck): nothing leaked, no wrong access of ours. And
# a leak that is planted is found. About 45 minutes. The figures are in docs/robustness.md.
source tests/lib.sh
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed (scripts/setup --dev)"; exit 77; }
memcheck() { "$source_folder/scripts/robustness/memcheck" --folder "$scratch" "$@"; }
for command in train predict; do check "$command" memcheck --program "$program" --command $command; done
check "two ranks" memcheck --program "$program" --ranks 2

mkdir "$scratch/planted"
cat >"$scratch/leaks.cpp" <<'CPP'
#include <unistd.h>
#include <cstdlib>
#include <string_view>
__attribute__((noinline)) char* take() { return new char[333]; }
int main(int count, char** words) {
  if (count > 1 && std::string_view(words[1]) == "phantom") execv(getenv("PROGRAM"), words);
  volatile char* lost = take();
  lost[0] = 1;
  lost = nullptr;
}
CPP
g++ -std=c++20 -O0 -o "$scratch/planted/chexnet-train" "$scratch/leaks.cpp" || exit 1
PROGRAM=$program memcheck --program "$scratch/planted/chexnet-train" --steps 1 >"$scratch/found"
check "a planted leak is found" grep -q 'Leak_DefinitelyLost, 333 bytes: take() of chexnet-train' "$scratch/found"
finish
