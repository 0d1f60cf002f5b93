#!/usr/bin/env bash
# Every header compiles alone, and includes the standard headers of the names that it uses: another include may bring them
# today and not tomorrow. usage: headers_test.sh [torch]; with it the headers that need LibTorch, else the others.
set -euo pipefail
cd "$(dirname "$0")/.."
torch_folders='model|train'  # those of src/CMakeLists.txt's part with LibTorch
if [ "${1:-}" = torch ]; then
  mapfile -t headers < <(find include -name '*.hpp' | grep -E "chexnet/($torch_folders)/[^/]+$" | sort)
  include=(-isystem "$(head -n 1 third_party/.torch-cuda13)/include")
else
  mapfile -t headers < <(find include -name '*.hpp' | grep -vE "chexnet/($torch_folders)/[^/]+$" | sort)
  include=()
fi
[ ${#headers[@]} -gt 5 ] || { echo "only ${#headers[@]} headers found: wrong folder?"; exit 1; }

# NAME HEADER: whoever writes std::NAME includes HEADER.
bad=0
while read -r name header; do
  for file in $(grep -lE "std::$name\\b" "${headers[@]}" || true); do
    grep -q "#include <$header>" "$file" || { echo "$file uses std::$name without <$header>"; bad=1; }
  done
done <<'TABLE'
array array
atomic atomic
deque deque
exception_ptr exception
filesystem filesystem
function functional
int64_t cstdint
jthread thread
map map
mutex mutex
optional optional
pair utility
pmr memory_resource
set set
shared_ptr memory
span span
stop_token stop_token
string string
string_view string_view
uint64_t cstdint
uint8_t cstdint
unique_ptr memory
unordered_map unordered_map
variant variant
vector vector
TABLE
[ $bad = 0 ] || exit 1

cache=$(command -v ccache || true)  # most headers are as they were; it goes by the names of sources, so they stay the same
work=build/headers; mkdir -p "$work"
# The headers of ATen's tensor are read once for all of ours that include them.
tensor='#include <ATen/core/Tensor.h>' reach=() before=-1
while [ ${#include[@]} -gt 0 ] && [ ${#reach[@]} -gt $before ]; do
  before=${#reach[@]}
  wanted=("$tensor"); for header in "${reach[@]}"; do wanted+=("#include \"${header#include/}\""); done
  mapfile -t reach < <(printf '%s\n' "${wanted[@]}" | grep -lFf - "${headers[@]}")
done
if [ ${#include[@]} -gt 0 ]; then
  [ ${#reach[@]} -gt 5 ] || { echo "only ${#reach[@]} headers found that have tensors: other include than $tensor?"; exit 1; }
  echo "$tensor" >"$work/tensor.hpp"
  "${CXX:-g++}" -std=c++20 "${include[@]}" -x c++-header "$work/tensor.hpp" -o "$work/tensor.hpp.gch"
fi
compile() {  # HEADER: as the only include of a source
  local name=${1//\//-} first=()
  [[ " ${reach[*]} " != *" $1 "* ]] || first=(-include "$work/tensor.hpp")
  printf '#include "%s"\n' "${1#include/}" >"$work/$name.cpp"
  $cache "${CXX:-g++}" -std=c++20 -Iinclude "${include[@]}" "${first[@]}" -c "$work/$name.cpp" -o "$work/$name.o" 2>"$work/$name.txt" ||
    { grep -E 'error' "$work/$name.txt" | head; return 1; }
}
jobs_failed=0
for header in "${headers[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || jobs_failed=1; done
  compile "$header" &
done
while [ -n "$(jobs -p)" ]; do wait -n || jobs_failed=1; done
[ $jobs_failed = 0 ] || { echo 'These headers do not compile alone.'; exit 1; }
