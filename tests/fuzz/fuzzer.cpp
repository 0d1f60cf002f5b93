// What libFuzzer calls, for the one target that is linked.
//
//   fuzz_NAME --write-seeds DIR   writes the target's own seeds and ends
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include "chexnet/core/log.hpp"
#include "target.hpp"

using namespace chexnet;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

const fuzz::Target& target() { return fuzz::targets().front(); }

[[noreturn]] void write_seeds(const std::string& folder) {
  int number = 0;
  if (target().seeds != nullptr)
    for (const auto& seed : target().seeds())
      std::ofstream(folder + "/own-" + std::to_string(number++),
                    std::ios::binary)
          << seed;
  std::exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  if (fuzz::targets().size() != 1) {
    std::cerr << "fuzzer: not one target, but " << fuzz::targets().size()
              << "\n";
    std::exit(2);
  }
  if (*count == 3 && std::strcmp((*words)[1], "--write-seeds") == 0)
    write_seeds((*words)[2]);
  set_log_rank(1, 2);  // no information
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target().run(std::as_bytes(std::span(data, size)));
  return 0;
}

// One in four changed inputs keeps its wrong checksums.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t most, unsigned seed) {
  const size_t changed = LLVMFuzzerMutate(data, size, most);
  if (target().mend == nullptr || seed % 4 == 0) return changed;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + changed);
  target().mend(bytes);
  if (bytes.size() > most) return changed;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
