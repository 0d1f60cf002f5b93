// Lines between the hosts of a run: reports of ranks, and an observer's
// answers.
#include <cmath>

#include "comm/watch/messages.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

constexpr size_t kRanks = 4;

std::vector<RankView> fresh() {
  std::vector<RankView> views(kRanks);
  for (size_t i = 0; i < kRanks; ++i) views[i].rank = static_cast<int>(i);
  return views;
}

bool same(const RankView& a, const RankView& b) {
  return a.rank == b.rank && a.pid == b.pid && a.phase == b.phase &&
         a.ended == b.ended && a.gone == b.gone && a.sequence == b.sequence &&
         a.step == b.step;
}

void run(Bytes bytes) {
  const std::string line = text_of(bytes);
  auto views = fresh();
  const auto ranks = read_report(line, views);
  for (size_t i = 0; i < kRanks; ++i) {
    require(views[i].rank == static_cast<int>(i), "no rank is renamed");
    require(std::isfinite(views[i].heartbeat_age_s) &&
                std::isfinite(views[i].phase_age_s),
            "ages are numbers");
    if (!ranks) require(same(views[i], fresh()[i]), "no report, no change");
  }
  if (ranks) {
    auto again = fresh();
    require(read_report(report_line(views), again).has_value(),
            "a report that is written is read");
    for (size_t i = 0; i < kRanks; ++i)
      require(same(again[i], views[i]), "and says the same");
    detect_failure(views, {});
  }
  if (const auto end = read_answer(line, "secret"))
    require(read_answer(answer_line("secret", *end), "secret") == *end,
            "an answer that is written reads back equal");
}

std::vector<std::string> seeds() {
  auto views = fresh();
  views[2].pid = 4711;
  views[2].step = 40;
  views[3].gone = true;
  return {report_line(views), report_line({}), answer_line("secret", 0),
          answer_line("secret", 7), answer_line("guess", 7)};
}

const Registered kTarget{{"observer", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
