#include "repeated_errors.hpp"

#include <utility>

namespace chexnet {
namespace {

// Longer errors are listings, which are worth saying as a whole.
constexpr int kMostFollowing = 32;
// Longer lines are no error of ours (core/error.cpp).
constexpr size_t kLongestLine = 1 << 16;

// Of "rank 12: error: …" what follows the rank (core/log.cpp).
std::string_view without_rank(std::string_view line) {
  constexpr std::string_view kRank = "rank ";
  if (!line.starts_with(kRank)) return line;
  const size_t end = line.find_first_not_of("0123456789", kRank.size());
  return end > kRank.size() && line.substr(end).starts_with(": ")
             ? line.substr(end + 2)
             : line;
}

}  // namespace

std::string RepeatedErrors::pass(std::string_view bytes) {
  std::string out;
  for (size_t end = 0; (end = bytes.find('\n')) != bytes.npos;) {
    line_ += bytes.substr(0, end + 1);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, "");
    if (!is_repeated(line)) out += line;
  }
  line_ += bytes;
  if (line_.size() > kLongestLine) out += rest();
  return out;
}

std::string RepeatedErrors::rest() { return std::exchange(line_, ""); }

// The lines after an error's first have no name of a rank and belong to it.
bool RepeatedErrors::is_repeated(std::string_view line) {
  const std::string_view text = without_rank(line);
  if (text.starts_with("error: ")) {
    const bool is_new = said_.emplace(text).second;
    within_ = is_new ? Within::kError : Within::kRepeated;
    following_ = 0;
    return !is_new;
  }
  const bool follows = text.size() == line.size() &&
                       ++following_ <= kMostFollowing &&
                       !line.starts_with("warning: ");
  if (!follows ||
      (within_ == Within::kRepeated && !said_.contains(std::string(line))))
    within_ = Within::kNothing;
  if (within_ == Within::kError) said_.emplace(line);
  return within_ == Within::kRepeated;
}

}  // namespace chexnet
