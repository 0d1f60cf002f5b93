// Every rank knows every damaged image before any rank throws, so all ranks
// come to the same end with the same message.
#include "chexnet/data/damage.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"

namespace chexnet {
namespace {

constexpr size_t kShown = 20;

std::string first_lines(const DamageByRank& damage) {
  std::string shown;
  size_t seen = 0;
  for (const auto& of_rank : damage)
    for (const auto& text : of_rank)
      if (++seen <= kShown) shown += "\n  " + text;
  if (seen > kShown)
    shown += "\n  and " + std::to_string(seen - kShown) + " more";
  return shown;
}

// After an archive was replaced its old index makes every image look damaged;
// their messages name the index.
std::string hint_for(const DamageByRank& damage, const DamagePolicy& policy) {
  const auto first = std::ranges::find_if(
      damage, [](const auto& own) { return !own.empty(); });
  const bool by_index =
      first->front().find(" .index file") != std::string::npos;
  if (!by_index) return policy.hint();
  return "was an archive or shard replaced? Delete its .index file to index it "
         "again; else " +
         policy.hint();
}

}  // namespace

DamagePolicy DamagePolicy::of(const DataConfig& config) {
  return {config.corrupt.skip, config.corrupt.limit};
}

uint64_t DamagePolicy::allowed(uint64_t images) const {
  if (!skip || limit == 0) return 0;
  return std::max<uint64_t>(
      1, static_cast<uint64_t>(limit * static_cast<double>(images)));
}

std::string DamagePolicy::text(uint64_t damaged, uint64_t images) const {
  std::string what = std::to_string(damaged) + " of " + std::to_string(images) +
                     " images are damaged";
  if (skip)
    what += ", data.corrupt (" + fixed(100 * limit, 1) + " %) allows " +
            std::to_string(allowed(images));
  return what;
}

std::string DamagePolicy::hint() const {
  if (skip)
    return "fetch them again, leave them out of the lists, or raise "
           "the fraction of data.corrupt";
  return "fetch them again, or leave them out of the lists; data.corrupt=skip "
         "goes on without a "
         "few";
}

uint64_t count(const DamageByRank& damage) {
  uint64_t all = 0;
  for (const auto& of_rank : damage) all += of_rank.size();
  return all;
}

DamageByRank accept_damage(const DamagePolicy& policy,
                           const std::vector<std::string>& own, uint64_t images,
                           const std::string& origin, const std::string& more,
                           Communicator& comm) {
  std::string lines;
  for (std::string text : own) {
    std::ranges::replace(text, '\n', ' ');
    lines += text + "\n";
  }
  DamageByRank damage;
  for (const auto& text : gather_text(comm, lines))
    damage.push_back(lines_of(text));
  const uint64_t damaged = count(damage);
  if (damaged > policy.allowed(images))
    throw DataError("[{}] {}{}. Hint: {}:{}", origin,
                    policy.text(damaged, images), more,
                    hint_for(damage, policy), first_lines(damage));
  return damage;
}

}  // namespace chexnet
