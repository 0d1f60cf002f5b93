// Two rounds: sums first, as texts of all ranks would be megabytes on
// thousands of them.
#include "chexnet/train/run/config_agreement.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/config/options.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

// What is read from such paths is compared itself (check_equal_on_ranks), or is
// rank 0's alone.
bool is_of_a_host(const ConfigOption& option) {
  static constexpr std::array<std::string_view, 6> kOfAHost = {
      "data.prefetch", "data.readers",   "data.workers",
      "launch.bind",   "launch.network", "launch.threads"};
  const bool is_own_place = option.is_path && option.key != "run.dir";
  return is_own_place ||
         std::ranges::find(kOfAHost, option.key) != kOfAHost.end();
}

// "key: value", a line each.
std::string compared_text(const Config& config) {
  std::string text;
  for (const auto& option : config_options())
    if (!is_of_a_host(option))
      text += option.key + ": " + option_text(option, config) + "\n";
  return text;
}

// "data.flip: false, and not true; …"
std::string differences(const std::string& text, const std::string& expected) {
  const auto lines = lines_of(text), of_rank_0 = lines_of(expected);
  std::string found;
  for (size_t i = 0; i < std::min(lines.size(), of_rank_0.size()); ++i) {
    if (lines[i] == of_rank_0[i]) continue;
    found += (found.empty() ? "" : "; ") + lines[i] + ", and not " +
             of_rank_0[i].substr(of_rank_0[i].find(": ") + 2);
  }
  // Another version of the program has other keys.
  return found.empty() ? "other keys" : found;
}

}  // namespace

void check_same_config(Communicator& comm, const Config& config) {
  if (comm.size() == 1) return;
  const std::string own = compared_text(config);
  const std::string sum = sha256_hex(own);
  const auto sums = gather_text(comm, sum + host_name());
  const auto other = std::ranges::find_if(sums, [&](const std::string& text) {
    return text.compare(0, sum.size(), sums[0], 0, sum.size()) != 0;
  });
  if (other == sums.end()) return;

  const auto rank = static_cast<size_t>(other - sums.begin());
  const auto mine = static_cast<size_t>(comm.rank());
  const bool is_shown = mine == 0 || mine == rank;
  const auto texts = gather_text(comm, is_shown ? own : "");
  throw ConfigError(
      "[config] rank {} on {} has another config than rank 0 on {}: {}. Hint: "
      "start all ranks with the same files and options",
      rank, other->substr(sum.size()), sums[0].substr(sum.size()),
      differences(texts[rank], texts[0]));
}

}  // namespace chexnet
