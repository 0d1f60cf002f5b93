// The one table of exit codes: --help, the documentation, the restarts of ranks
// and the requeueing of job scripts all read it.
#include "chexnet/core/exit_codes.hpp"

#include <algorithm>
#include <array>

namespace chexnet {
namespace {

constexpr auto kMeanings = std::to_array<ExitMeaning>({
    {ExitCode::kDone, "done", "", AfterExit::kNobody},
    {ExitCode::kUsage, "usage or config",
     "correct the command or the config; also a config that is not there",
     AfterExit::kNobody},
    {ExitCode::kData, "data", "correct the data", AfterExit::kNobody},
    {ExitCode::kCheckpoint, "checkpoint, weights or run folder",
     "see the message; nothing was overwritten; also a run that is not there",
     AfterExit::kNobody},
    {ExitCode::kDevice, "device, communication or start of ranks",
     "correct the start command, or repair the node; restarted and requeued",
     AfterExit::kAnyone},
    {ExitCode::kNumeric, "numeric", "look at the learning rate and the data",
     AfterExit::kNobody},
    {ExitCode::kHang, "a rank that hangs", "restarted and requeued",
     AfterExit::kAnyone},
    {ExitCode::kAbsent, "data that is not there",
     "correct the path or the permission", AfterExit::kNobody},
    {ExitCode::kOutage, "storage that does not answer",
     "may pass by itself; restarted and requeued", AfterExit::kAnyone},
    {ExitCode::kRequeue, "stopped with a checkpoint",
     "continue with `--resume auto`; requeued", AfterExit::kJobScript},
});
static_assert(std::ranges::is_sorted(kMeanings, {}, &ExitMeaning::code));

std::string number(const ExitMeaning& meaning) {
  return std::to_string(static_cast<int>(meaning.code));
}

}  // namespace

std::span<const ExitMeaning> exit_meanings() { return kMeanings; }

const ExitMeaning* find_exit_meaning(int exit_code) {
  const auto found = std::ranges::find(
      kMeanings, static_cast<ExitCode>(exit_code), &ExitMeaning::code);
  return found == kMeanings.end() ? nullptr : &*found;
}

std::string exit_codes_markdown() {
  std::string text = "| exit | kind | what to do |\n|---|---|---|\n";
  for (const auto& meaning : kMeanings) {
    const std::string advice = meaning.what_to_do;
    text += "| " + number(meaning) + " | " + meaning.kind + " |" +
            (advice.empty() ? " " : " " + advice + " ") + "|\n";
  }
  return text;
}

}  // namespace chexnet
