// DICOM files, as a worker of chexnet-dicom reads them. GDCM itself is not
// instrumented. Debian's has assertions that files of others break: they end
// the worker, which chexnet-dicom names as a damaged file, so here they end the
// reading of an input.
#include <gdcmTrace.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <utility>

#include "fuzz/memory_file.hpp"
#include "tools/dicom/radiograph.hpp"

namespace {

// Of run(). An exception would not come through GDCM: its compiler knew that
// nothing comes back from a failed assertion, and left no way out of there.
std::jmp_buf behind_the_input;

}  // namespace

// Replaces the C library's, for this program.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" void __assert_fail(const char* what, const char* file, unsigned,
                              const char*) noexcept {
  if (std::string_view(file).find("gdcm") == std::string_view::npos) {
    std::fprintf(stderr, "%s: assertion %s\n", file, what);
    std::abort();
  }
  std::longjmp(behind_the_input, 1);
}

namespace {

// Large memory that this input's reading holds: at a failed assertion GDCM
// frees nothing, and a few inputs of 64 MB each would end the fuzzer.
constexpr size_t kLarge = size_t{1} << 20;
std::array<void*, 256> large_memory;

void replace_in_large_memory(void* old, void* by) noexcept {
  auto* place = std::ranges::find(large_memory, old);
  if (place != large_memory.end()) *place = by;
}

void release(void* memory) noexcept {
  if (memory != nullptr && malloc_usable_size(memory) >= kLarge)
    replace_in_large_memory(memory, nullptr);
  std::free(memory);
}

void release_large_memory() noexcept {
  for (void*& memory : large_memory) std::free(std::exchange(memory, nullptr));
}

}  // namespace

// Does the work of MemoryBound, which has no effect under the sanitizers.
void* operator new(size_t bytes) {
  constexpr size_t kMost = size_t{64} << 20;
  void* memory = bytes > kMost ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  if (bytes >= kLarge) replace_in_large_memory(nullptr, memory);
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);  // libFuzzer's
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }

namespace chexnet::fuzz {
namespace {

void read(const std::string& path) {
  Radiograph picture;
  Skip skip = Skip::kNone;
  if (!accepted<DataError>(
          [&] { skip = read_radiograph(path, {1 << 20}, picture); }))
    return;
  require(*skip_words(skip).name != '\0', "what is passed over has a name");
  if (skip != Skip::kNone) return;
  require(picture.width > 0 && picture.height > 0, "a picture has pixels");
  require(picture.pixels.size() == static_cast<size_t>(picture.width) *
                                       static_cast<size_t>(picture.height),
          "all of them");
}

void run(Bytes bytes) {
  static MemoryFile file;
  static std::string path;
  path = file.holding(bytes);
  large_memory.fill(nullptr);  // older ones are the fuzzer's
  // What little else GDCM holds at a failed assertion is lost.
  // NOLINTNEXTLINE(cert-err52-cpp)
  if (setjmp(behind_the_input) == 0) {
    read(path);
  } else {  // warnings went into an object that has left the stack
    release_large_memory();
    gdcm::Trace::SetWarning(false);
    gdcm::Trace::SetWarningStream(std::cerr);
  }
}

std::string little(unsigned value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// An element of explicit VR, little endian.
std::string element(unsigned group, unsigned number, const std::string& vr,
                    std::string value) {
  if (value.size() % 2 != 0) value += vr == "UI" || vr == "OW" ? '\0' : ' ';
  const auto size = static_cast<unsigned>(value.size());
  const bool is_long = vr == "OW" || vr == "OB" || vr == "SQ";
  return little(group, 2) + little(number, 2) + vr +
         (is_long ? little(0, 2) + little(size, 4) : little(size, 2)) + value;
}

// A file's attributes of its pixels. There are always 16 of them.
struct Pixels {
  unsigned allocated = 16, stored = 12;  // bits
  bool is_signed = false;
  unsigned side = 4;
};

// A file with elements of the groups before 0028 and of those from there
// on.
std::string file_of(const std::string& photometric, const std::string& more,
                    const std::string& before = "", Pixels pixel = {}) {
  const std::string sop = "1.2.840.10008.5.1.4.1.1.1";
  const std::string meta = element(2, 2, "UI", sop) +
                           element(2, 3, "UI", "1.2.3") +
                           element(2, 16, "UI", "1.2.840.10008.1.2.1");
  std::string file(128, '\0');
  file += "DICM" +
          element(2, 0, "UL", little(static_cast<unsigned>(meta.size()), 4)) +
          meta + element(8, 0x16, "UI", sop) + element(8, 0x18, "UI", "1.2.3") +
          element(0x10, 0x20, "LO", "Doe") + element(0x10, 0x40, "CS", "F") +
          before + element(0x28, 2, "US", little(1, 2)) +
          element(0x28, 4, "CS", photometric) +
          element(0x28, 0x10, "US", little(pixel.side, 2)) +
          element(0x28, 0x11, "US", little(pixel.side, 2)) +
          element(0x28, 0x100, "US", little(pixel.allocated, 2)) +
          element(0x28, 0x101, "US", little(pixel.stored, 2)) +
          element(0x28, 0x102, "US", little(pixel.stored - 1, 2)) +
          element(0x28, 0x103, "US", little(pixel.is_signed ? 1 : 0, 2)) + more;
  const auto bytes = static_cast<int>(pixel.allocated / 8);
  std::string pixels;
  for (unsigned i = 0; i < 16; ++i) pixels += little(273 * i, bytes);
  return file + element(0x7fe0, 0x10, "OW", pixels);
}

// A sequence of one lookup table that claims `count` entries.
std::string lut_of(unsigned count) {
  const std::string table =
      element(0x28, 0x3002, "US",
              little(count, 2) + little(0, 2) + little(8, 2)) +
      element(0x28, 0x3006, "OW",
              little(1, 2) + little(9, 2) + little(99, 2) + little(250, 2));
  return little(0xfffe, 2) + little(0xe000, 2) +
         little(static_cast<unsigned>(table.size()), 4) + table;
}

std::vector<std::string> seeds() {
  const std::string lut = lut_of(4);
  return {
      file_of("MONOCHROME2", ""),
      file_of("MONOCHROME1", element(0x28, 0x1050, "DS", "2048") +
                                 element(0x28, 0x1051, "DS", "4096") +
                                 element(0x28, 0x1056, "CS", "SIGMOID")),
      file_of("MONOCHROME2", element(0x28, 0x1052, "DS", "-1024") +
                                 element(0x28, 0x1053, "DS", "2.5")),
      file_of("MONOCHROME2", element(0x28, 0x3010, "SQ", lut)),
      file_of("MONOCHROME2", element(0x28, 0x3000, "SQ", lut)),
      file_of("MONOCHROME2", element(0x28, 0x3010, "SQ", lut_of(0))),
      file_of("MONOCHROME2", "", "", {8, 8}),
      file_of("MONOCHROME2", element(0x28, 0x3010, "SQ", lut), "",
              {16, 12, true}),
      file_of("MONOCHROME2", "", "", {32, 32, true}),
      file_of("MONOCHROME2", "", "", {16, 12, false, 5}),
      file_of("MONOCHROME2", "", "", {16, 12, false, 60000}),
      file_of("MONOCHROME2", "", "", {16, 12, false, 0}),
      file_of("MONOCHROME2", element(0x28, 0x1050, "DS", "2048") +
                                 element(0x28, 0x1051, "DS", "4096")),
      file_of("MONOCHROME2", element(0x28, 0x1050, "DS", "2048") +
                                 element(0x28, 0x1051, "DS", "1") +
                                 element(0x2050, 0x20, "CS", "INVERSE")),
      file_of("MONOCHROME2", element(0x28, 0x1050, "DS", "2048\\100") +
                                 element(0x28, 0x1051, "DS", "4096\\9") +
                                 element(0x28, 0x1056, "CS", "LINEAR_EXACT")),
      file_of("MONOCHROME2", element(0x28, 0x1052, "DS", "0") +
                                 element(0x28, 0x1053, "DS", "1e308")),
      file_of("MONOCHROME2", element(0x28, 0x301, "CS", "YES")),
      file_of("MONOCHROME2", "", element(0x18, 0x5101, "CS", "LL")),
      file_of("MONOCHROME2", element(0x28, 8, "IS", "3")),
      file_of("MONOCHROME2", "").substr(0, 400),
      file_of("MONOCHROME2", "").substr(0, 300),
      file_of("RGB", "")};
}

const Registered kTarget{{"dicom", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
