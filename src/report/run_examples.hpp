// RUN/examples, as it may come from somebody else: only small PNG files of that
// folder itself are read, whatever its list says.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chexnet {

struct RunExample {
  std::string finding, kind;
  std::optional<double> probability, threshold;
  std::string png;  // the file's bytes: a PNG's head at least
};
// Empty where there are none. At most 48.
std::vector<RunExample> read_examples(const std::filesystem::path& run);

}  // namespace chexnet
