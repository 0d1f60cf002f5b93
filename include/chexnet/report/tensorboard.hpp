// One event file of TensorBoard (tensorflow/core/util/event.proto and
// framework/summary.proto, in TFRecord framing). Each call is a whole record,
// flushed, so what a kill leaves is readable up to the last one. A file that
// cannot be written loses its records: metrics.jsonl is what a run relies on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chexnet {

class TensorBoardLog {
 public:
  // A new events.out.tfevents.* in `folder`; good() tells whether it is there.
  // Readers drop what earlier files there have from `first_step` on, as it
  // comes again (PyTorch's purge_step).
  TensorBoardLog(const std::filesystem::path& folder, int64_t first_step);
  bool good() const { return file_.good(); }

  // Values that are not finite are left out.
  void scalars(int64_t step,
               const std::vector<std::pair<std::string, double>>& values);
  // Markdown, for the tab "Text".
  void text(const std::string& tag, int64_t step, const std::string& markdown);
  // The distribution of values in 0..1, in forty bins; others are left out.
  void histogram(const std::string& tag, int64_t step,
                 std::span<const double> values);
  // `png`: a file's bytes, of `width` x `height` pixels.
  void image(const std::string& tag, int64_t step, std::string_view png,
             int width, int height);

 private:
  void record(const std::string& bytes);
  std::ofstream file_;
};

}  // namespace chexnet
