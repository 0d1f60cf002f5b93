// One DICOM file as an 8-bit gray picture, by the display pipeline of DICOM
// PS3.4 annex N: modality LUT (rescale) -> VOI LUT (or window) -> presentation
// LUT -> 8 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chexnet {

struct Radiograph {
  int width = 0, height = 0;
  // [height, width], bright = dense, as in MONOCHROME2
  std::vector<uint8_t> pixels;
  std::string patient, study, instance, view, sex, age;  // as in the file
  std::string rule;  // how stored values became 8 bits
  // Of a skipped file why; else what is odd about it, or nothing.
  std::string note;
};

// What is read.
struct RadiographLimits {
  int64_t max_pixels = 64'000'000;
  // Also what says that it is no chest X-ray (chest.hpp): that becomes a note.
  bool any_dicom = false;
};

// Why a file is skipped; not an error.
enum class Skip {
  kNone,
  kLateral,
  kMultiFrame,
  kBurnedIn,
  kNotGray,
  kNotDicom,
  kNotXray,
  kOtherBodyPart
};
// As it is counted, and for a person: "not_gray", "is not gray".
struct SkipWords {
  const char *name, *text;
};
SkipWords skip_words(Skip skip);

// DataError naming the file: damaged, no pixels, more than `max_pixels`, or
// lengths that ask for more memory than it can need. Sets a limit of the
// process while it reads (memory_bound.hpp).
Skip read_radiograph(const std::string& path, const RadiographLimits& limits,
                     Radiograph& into);

}  // namespace chexnet
