#include "run_examples.hpp"

#include "chexnet/core/read_file.hpp"
#include "report_values.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// The folder may be somebody else's: a file that is too large, a link, outside
// of the folder or no PNG is not shown.
constexpr size_t kMost = 48;
constexpr uintmax_t kMostBytes = 1'000'000;
constexpr size_t kHead = 33;  // signature and IHDR

std::string png_of(const fs::path& folder, const fs::path& name) {
  const fs::path path = folder / name;
  std::error_code error;
  if (name.empty() || name != name.filename() || name.extension() != ".png" ||
      !fs::is_regular_file(fs::symlink_status(path, error)) ||
      fs::file_size(path, error) > kMostBytes)
    return "";
  std::string png = read_text(path);
  return png.starts_with("\x89PNG\r\n") && png.size() > kHead ? png : "";
}

}  // namespace

std::vector<RunExample> read_examples(const fs::path& run) {
  const fs::path folder = run / "examples", list = folder / "examples.json";
  std::error_code error;
  if (!fs::exists(list, error)) return {};
  const Json found = Json::parse(read_text(list), nullptr, false);
  std::vector<RunExample> examples;
  for (const auto& example : found) {
    if (examples.size() == kMost) break;
    std::string png = png_of(folder, text(example, "file"));
    if (!png.empty())
      examples.push_back({text(example, "finding"), text(example, "kind"),
                          number(example, "probability"),
                          number(example, "threshold"), std::move(png)});
  }
  return examples;
}

}  // namespace chexnet
