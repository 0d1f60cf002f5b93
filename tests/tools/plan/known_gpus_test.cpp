#include "chexnet/tools/plan/known_gpus.hpp"

#include <cmath>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

TEST_CASE("the rate of a known GPU is what its memory allows") {
  constexpr double kMbPerImage = 334, kReached = 0.54;
  for (const auto& gpu : known_gpus()) {
    INFO(gpu.name);
    const double bound = kReached * 1e3 * gpu.memory_gb_per_s / kMbPerImage;
    CHECK(std::fabs(gpu.images_per_s - bound) <= 5);
    CHECK(gpu.dense_tflops > 0);
    CHECK(gpu.source.find("data sheet, 20") != std::string_view::npos);
    CHECK(&known_gpu(std::string(gpu.name)) == &gpu);
  }
}

TEST_CASE("docs/cluster.md has the table of known GPUs") {
  const std::string page = read_text(source_file("docs/cluster.md"));
  for (const auto& gpu : known_gpus()) {
    const bool whole = gpu.dense_tflops == std::floor(gpu.dense_tflops);
    std::string source(gpu.source);
    source.erase(source.find(" data sheet"), 11);
    const std::string row = "| " + std::string(gpu.name) + " | " +
                            fixed(gpu.memory_gb_per_s, 0) + " | " +
                            fixed(gpu.dense_tflops, whole ? 0 : 1) + " | " +
                            fixed(gpu.images_per_s, 0) + " | " + source + " |";
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

TEST_CASE("a GPU that is not known is told which are") {
  try {
    known_gpu("A100");
    FAIL("A100 alone says nothing of its memory");
  } catch (const ConfigError& e) {
    const std::string text = e.what();
    CHECK(text.find("A100-40GB") != std::string::npos);
    CHECK(text.find("L40S") != std::string::npos);
    CHECK(text.find("images/s of `bench step`") != std::string::npos);
  }
}
