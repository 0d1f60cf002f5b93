// Layers are shown by part, a dense block or a stage each: 120 of them would
// hide the one that matters, and the one that disagrees is named anyway.
#include "self_test_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/train/precision.hpp"
#include "chexnet/train/self_test.hpp"
#include "health_table.hpp"

namespace chexnet {
namespace {

constexpr const char* kAdvice =
    "this GPU, its driver or a library computes wrongly: try another driver, "
    "or the other variant (scripts/setup --cuda). Where our own kernels do, "
    "train computes by LibTorch's alone, as with train.engine=aten";

// "features.denseblock1.denselayer2.norm1" -> "denseblock1".
std::string part_of(std::string layer) {
  static const std::string kFeatures = "features.";
  if (layer.starts_with(kFeatures)) layer.erase(0, kFeatures.size());
  return layer.substr(0, layer.find('.'));
}

// "conv0 1e-05, denseblock1 2e-05, …" in the order of the network.
std::string by_part(const std::vector<LayerDifference>& layers) {
  std::vector<std::pair<std::string, double>> parts;
  for (const auto& layer : layers) {
    const std::string part = part_of(layer.layer);
    const auto known =
        std::ranges::find(parts, part, &std::pair<std::string, double>::first);
    if (known == parts.end())
      parts.emplace_back(part, layer.difference);
    else if (!(layer.difference <= known->second))
      known->second = layer.difference;
  }
  std::string text;
  for (const auto& [part, difference] : parts)
    text +=
        (text.empty() ? "" : ", ") + part + " " + difference_text(difference);
  return text;
}

CheckResult row_of(const std::string& arch, const SelfTestResult::Step& step) {
  const std::string name =
      "self-test " + arch + " " + choice_name(step.precision);
  const std::string problem = first_disagreement(step.layers);
  if (!problem.empty()) return {Level::kFail, name, problem, kAdvice};
  const LayerDifference& worst = worst_of(step.layers);
  return {Level::kPass, name,
          "worst " + difference_text(worst.difference) + ", " + worst.what +
              " of " + worst.layer + " (" + fixed(100 * worst.of_allowed(), 0) +
              " % of what is allowed); by part: " + by_part(step.layers),
          ""};
}

std::vector<CheckResult> of_network(const std::string& arch, Communicator& comm,
                                    const Device& device, double timeout_s) {
  const SelfTestResult result =
      self_test({.arch = arch,
                 .precision = resolve_precision({}, device),
                 .own_kernels = device.own_kernels},
                device.where, comm, timeout_s);
  std::vector<CheckResult> rows;
  for (const auto& step : result.steps) rows.push_back(row_of(arch, step));
  const ReductionCheck& reduction = result.reduction;
  const bool good = reduction.difference <= reduction.allowed;
  if (comm.size() > 1)
    rows.push_back(
        {good ? Level::kPass : Level::kFail, "self-test all-reduce",
         "an element differs from the mean of the ranks by " +
             difference_text(reduction.difference) + " of the largest",
         good ? "" : "NCCL sums wrongly: NCCL_DEBUG=INFO shows how"});
  return rows;
}

}  // namespace

std::vector<CheckResult> of_self_test(Communicator& comm, const Device& device,
                                      double timeout_s) {
  if (device.cuda == nullptr)
    return {{Level::kSkip, "self-test",
             "no GPU that could be compared with the CPU engine", ""}};
  std::vector<CheckResult> rows;
  for (const char* arch : {"densenet121", "resnet50"})
    for (auto& row : of_network(arch, comm, device, timeout_s))
      rows.push_back(std::move(row));

  std::vector<CheckResult> shown = rows;
  const auto all = gather_json(comm, json_of(rows));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<int>(rank) == comm.rank()) continue;
    for (auto& row : checks_of(all[rank])) {
      if (row.level != Level::kFail) continue;
      row.name = "rank " + std::to_string(rank) + ": " + row.name;
      shown.push_back(std::move(row));
    }
  }
  return shown;
}

}  // namespace chexnet
