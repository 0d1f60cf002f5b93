// What the GPUs of a run did since its last start, of one `gpus` event of
// metrics.jsonl: for the log, `status`, results.json and the report.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "chexnet/core/idle_cause.hpp"
#include "chexnet/core/json.hpp"

namespace chexnet {

// One figure of each rank that has it.
using ByRank = std::map<int, double>;
// Of an event's object {"<rank>": figure}; leaves out values that are no
// numbers.
ByRank figures_by_rank(const nlohmann::json& of_ranks);
double sum_of(const ByRank& figures);

struct GpuTotals {
  int gpus = 0;            // of ranks with a known utilization
  int ranks = 0;           // of the run, each with a GPU
  double seconds = 0;      // from the first step of this start on
  double images = 0;       // trained in them
  double utilization = 0;  // percent of the time, mean of the GPUs
  double least_utilization = 0;
  int least_rank = 0;
  double busy_fraction = 0, full_fraction = 0;  // means; usage_monitor.hpp
  // The most of a GPU; of all together; 0: not known, of one at least.
  double memory_bytes = 0, power_w = 0, energy_j = 0;
  double clock_mhz = 0;           // mean
  double throttled_fraction = 0;  // of the GPU with the most
  std::string throttle_reasons;
  // The steps' FLOP as a fraction of the GPUs' peak (MFU): 6 FLOP for each
  // multiply-add that the network as published takes forward.
  std::optional<double> flops_utilization;
  // Percent of the time in which they were idle, mean of the GPUs.
  std::array<double, kIdleCauses> idle{};
  std::map<std::string, ByRank> by_rank;  // by figure

  std::optional<double> joules_per_image() const;
  // Dell's tips for GPU runs: utilization stays over 90 %, with occasional dips
  // down to 10-25 %, and a GPU is busy at least 80 % of the job's time. Of each
  // GPU.
  bool keeps_rule() const;
};

// Nothing where no GPU has a known utilization.
std::optional<GpuTotals> gpu_totals(const nlohmann::json& event);
// Figures; whether they meet the rule, and if not, the causes of idle time,
// longest first, and what helps.
std::string gpu_figures_text(const GpuTotals& totals);
std::string gpu_rule_text(const GpuTotals& totals);
// As docs/json.md says; null without totals.
Json gpu_totals_json(const std::optional<GpuTotals>& totals);

}  // namespace chexnet
