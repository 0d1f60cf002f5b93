#include "checkpoint_name.hpp"

#include <array>
#include <cassert>
#include <cstdio>

#include "chexnet/core/parsed_number.hpp"

namespace chexnet {
namespace {
constexpr std::string_view kPrefix = "step-";
}  // namespace

std::string checkpoint_name(int64_t step) {
  assert(step >= 0);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "step-%08lld",
                static_cast<long long>(step));
  return text.data();
}

std::optional<int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = parsed_number<int64_t>(name.substr(kPrefix.size()));
  if (!step || *step < 0 || checkpoint_name(*step) != name) return std::nullopt;
  return step;
}

}  // namespace chexnet
