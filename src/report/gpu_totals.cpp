#include "chexnet/report/gpu_totals.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "chexnet/core/text_format.hpp"
#include "significant.hpp"

namespace chexnet {
namespace {

using nlohmann::json;
constexpr double kBusyRule = 0.8, kMeanRule = 90;

// By cause: what the GPU waited for, and the remedy.
struct CauseText {
  const char *what, *help;
};
constexpr std::array<CauseText, kIdleCauses> kCauses = {{
    {"for data", "`status RUN` says what reading lacks"},
    {"for the host to launch work",
     "a larger train.batch; train.record_step=auto where it is off"},
    {"for other ranks", "`doctor`, and the stragglers of `status RUN`"},
    {"for checkpoints", "a larger checkpoint.every_steps, or a faster disk"},
    {"in evaluations", "a smaller validation split"},
}};

double most_of(const ByRank& figures) {
  double most = 0;
  for (const auto& [rank, value] : figures) most = std::max(most, value);
  return most;
}

double mean_of(const ByRank& figures) {
  return figures.empty()
             ? 0
             : sum_of(figures) / static_cast<double>(figures.size());
}

double number_in(const json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

std::string percent(double value) { return fixed(value, 0) + " %"; }

std::string idle_figure(size_t cause) {
  return std::string("idle_") + kIdleCauseNames[cause];
}

// The figure of one GPU; 0: unknown.
double figure_of(const GpuTotals& totals, const std::string& name, int rank) {
  const auto figure = totals.by_rank.find(name);
  if (figure == totals.by_rank.end()) return 0;
  const auto of_rank = figure->second.find(rank);
  return of_rank == figure->second.end() ? 0 : of_rank->second;
}

int least_of(const ByRank& figures) {
  return std::ranges::min_element(
             figures, {}, [](const auto& of_rank) { return of_rank.second; })
      ->first;
}

// Of a rule that does not hold: the rank that keeps it least.
int rule_breaker(const GpuTotals& totals) {
  const auto busy = totals.by_rank.find("busy_fraction");
  const bool by_utilization = totals.least_utilization < kMeanRule ||
                              busy == totals.by_rank.end() ||
                              busy->second.empty();
  return by_utilization ? totals.least_rank : least_of(busy->second);
}

}  // namespace

ByRank figures_by_rank(const json& of_ranks) {
  ByRank figures;
  for (const auto& [name, value] : of_ranks.items()) {
    int rank = 0;
    const auto parsed =
        std::from_chars(name.data(), name.data() + name.size(), rank);
    if (parsed.ec == std::errc() && value.is_number())
      figures[rank] = value.get<double>();
  }
  return figures;
}

double sum_of(const ByRank& figures) {
  double sum = 0;
  for (const auto& [rank, value] : figures) sum += value;
  return sum;
}

std::optional<double> GpuTotals::joules_per_image() const {
  if (energy_j <= 0 || images <= 0) return std::nullopt;
  return energy_j / images;
}

bool GpuTotals::keeps_rule() const {
  const auto busy = by_rank.find("busy_fraction");
  return least_utilization >= kMeanRule && busy != by_rank.end() &&
         std::ranges::all_of(busy->second, [](const auto& of_rank) {
           return of_rank.second >= kBusyRule;
         });
}

std::optional<GpuTotals> gpu_totals(const json& event) {
  GpuTotals totals;
  for (const auto& [name, value] : event.items())
    if (value.is_object()) totals.by_rank[name] = figures_by_rank(value);
  auto& by_rank = totals.by_rank;
  const ByRank& utilization = by_rank["utilization"];
  const bool is_damaged = std::ranges::any_of(utilization, [](const auto& of) {
    return of.second < 0 || of.second > 100;
  });
  if (utilization.empty() || is_damaged) return std::nullopt;
  totals.gpus = static_cast<int>(utilization.size());
  totals.seconds = number_in(event, "seconds");
  totals.images = number_in(event, "images");
  totals.utilization = mean_of(utilization);
  totals.least_rank = least_of(utilization);
  totals.least_utilization = utilization.at(totals.least_rank);
  totals.busy_fraction = mean_of(by_rank["busy_fraction"]);
  totals.full_fraction = mean_of(by_rank["full_fraction"]);
  totals.memory_bytes = most_of(by_rank["memory_bytes"]);
  totals.ranks =
      std::max(totals.gpus, static_cast<int>(number_in(event, "ranks")));
  // Of some of them alone a sum would mislead.
  const auto whole_sum = [&](const char* figure) {
    const ByRank& values = by_rank[figure];
    const bool is_whole = std::cmp_equal(values.size(), totals.ranks);
    return is_whole ? sum_of(values) : 0;
  };
  totals.power_w = whole_sum("power_w");
  totals.energy_j = whole_sum("energy_j");
  totals.clock_mhz = mean_of(by_rank["clock_mhz"]);
  totals.throttled_fraction = most_of(by_rank["throttled_fraction"]);
  const auto reasons = event.find("throttle_reasons");
  if (reasons != event.end() && reasons->is_string())
    totals.throttle_reasons = reasons->get<std::string>();
  if (const double share = number_in(event, "flops_utilization"); share > 0)
    totals.flops_utilization = share;
  for (size_t i = 0; i < kCauses.size(); ++i)
    totals.idle[i] = mean_of(by_rank[idle_figure(i)]);
  return totals;
}

std::string gpu_figures_text(const GpuTotals& totals) {
  std::string text = percent(totals.utilization) + " busy in the mean";
  if (totals.gpus < totals.ranks)
    text += " of " + std::to_string(totals.gpus) + " (" +
            counted(totals.ranks - totals.gpus, "other") + " told nothing)";
  if (totals.gpus > 1)
    text += " (rank " + std::to_string(totals.least_rank) + " least, " +
            percent(totals.least_utilization) + ")";
  text += ", over 90 % in " + percent(100 * totals.full_fraction) +
          " of the samples";
  if (totals.memory_bytes > 0)
    text += ", at most " + readable_bytes(totals.memory_bytes) + " each";
  if (totals.power_w > 0) text += ", " + fixed(totals.power_w, 0) + " W";
  if (totals.clock_mhz > 0) text += ", " + fixed(totals.clock_mhz, 0) + " MHz";
  if (const auto joules = totals.joules_per_image())
    text += ", " + fixed(*joules, 2) + " J an image";
  if (totals.flops_utilization)
    text += ", " + significant(100 * *totals.flops_utilization, 2) +
            " % of the peak FLOP/s";
  if (totals.throttled_fraction > 0)
    text += ", throttled in " + percent(100 * totals.throttled_fraction) +
            " of the samples" + (totals.gpus > 1 ? " of one" : "") + " (" +
            totals.throttle_reasons + ")";
  return text;
}

std::string gpu_rule_text(const GpuTotals& totals) {
  const std::string rule =
      "the rule (over 90 %, busy at least 80 % of the time) ";
  if (totals.keeps_rule()) return rule + "holds";
  const int rank = rule_breaker(totals);
  const double utilization = figure_of(totals, "utilization", rank);
  std::array<double, kIdleCauses> idle{};
  std::vector<size_t> order(kCauses.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    idle[i] = figure_of(totals, idle_figure(i), rank);
  }
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t cause) { return idle[cause]; });
  std::vector<std::string> parts;
  for (const size_t cause : order)
    if (idle[cause] >= 1)
      parts.push_back(fixed(idle[cause], 0) + " " + kCauses[cause].what);
  std::string text = rule + "does not hold";
  if (totals.gpus > 1)
    text += " for rank " + std::to_string(rank) + ", " + percent(utilization) +
            " busy";
  if (parts.empty()) return text;
  return text + ": of the " + percent(100 - utilization) + " idle, " +
         listed(parts, parts.size()) + ". Hint: " + kCauses[order[0]].help;
}

Json gpu_totals_json(const std::optional<GpuTotals>& totals) {
  if (!totals) return nullptr;
  const auto known = [](double value) -> Json {
    if (value <= 0) return nullptr;
    return value;
  };
  Json idle = Json::object(), by_rank = Json::object();
  for (size_t i = 0; i < kCauses.size(); ++i)
    idle[kIdleCauseNames[i]] = totals->idle[i];
  for (const auto& [figure, values] : totals->by_rank)
    for (const auto& [rank, value] : values)
      by_rank[figure][std::to_string(rank)] = value;
  return {{"gpus", totals->gpus},
          {"ranks", totals->ranks},
          {"seconds", totals->seconds},
          {"images", totals->images},
          {"utilization", totals->utilization},
          {"least_utilization", totals->least_utilization},
          {"least_rank", totals->least_rank},
          {"busy_fraction", totals->busy_fraction},
          {"full_fraction", totals->full_fraction},
          {"memory_bytes", known(totals->memory_bytes)},
          {"power_w", known(totals->power_w)},
          {"energy_j", known(totals->energy_j)},
          {"joules_per_image", known(totals->joules_per_image().value_or(0))},
          {"clock_mhz", known(totals->clock_mhz)},
          {"throttled_fraction", totals->throttled_fraction},
          {"throttle_reasons", totals->throttle_reasons},
          {"flops_utilization", known(totals->flops_utilization.value_or(0))},
          {"idle", std::move(idle)},
          {"keeps_rule", totals->keeps_rule()},
          {"figures", gpu_figures_text(*totals)},
          {"rule", gpu_rule_text(*totals)},
          {"by_rank", std::move(by_rank)}};
}

}  // namespace chexnet
