// Seconds come from the profiler, which always knows what the main thread is
// in. Of a window of kWindow steps each rank sends one object of medians:
//
//   | step | step | … | step |  evaluation, checkpoint  | step | …
//   ^ window_start_    last_ ^       skip() moves last_ ^ here
//
// What lies before skip() is in no step, so neither long evaluations nor
// checkpoints make a straggler.
#include "chexnet/train/run/run_watch.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "chexnet/comm/gather_json.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/report/gpu_totals.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

constexpr size_t kWindow = 10;  // steps
// Seconds between two `system` lines of the metrics.
constexpr double kWriteEvery = 10;
// Between its `gpus` lines, after so many seconds: a short run that is killed
// has one, a long one lacks at most five minutes.
double gpus_pause_s(double age_s) { return std::min(age_s, 300.0); }

double of(const Profiler::Seconds& seconds, Phase phase) {
  return seconds[static_cast<size_t>(phase)];
}
// All but waiting for other ranks.
double own_of(const Profiler::Seconds& seconds) {
  double own = 0;
  for (int o = 0; o < kPhases; ++o)
    if (const auto phase = static_cast<Phase>(o); !is_collective(phase) &&
                                                  phase != Phase::kEvaluate &&
                                                  phase != Phase::kCheckpoint)
      own += of(seconds, phase);
  return own;
}

IdleCause idle_cause(Phase phase) {
  if (phase == Phase::kDataWait) return IdleCause::kInput;
  if (is_collective(phase)) return IdleCause::kCommunication;
  if (phase == Phase::kCheckpoint) return IdleCause::kCheckpoint;
  if (phase == Phase::kEvaluate) return IdleCause::kEvaluation;
  return IdleCause::kHost;
}

// A rank's part of a `gpus` event; without figures where its GPU tells nothing.
json gpu_json(const Usage& whole, double peak_flops) {
  if (whole.gpu_percent < 0) return {{"peak_flops", peak_flops}};
  json figures = {{"utilization", whole.gpu_percent},
                  {"busy_fraction", whole.gpu_busy_fraction},
                  {"full_fraction", whole.gpu_full_fraction},
                  {"memory_bytes", whole.gpu_most_memory_bytes},
                  {"power_w", whole.gpu_power_w},
                  {"energy_j", whole.gpu_energy_j},
                  {"clock_mhz", whole.gpu_clock_mhz},
                  {"throttled_fraction", whole.throttled_fraction}};
  for (size_t i = 0; i < kIdleCauses; ++i)
    figures[std::string("idle_") + kIdleCauseNames[i]] = whole.gpu_idle[i];
  return {{"peak_flops", peak_flops},
          {"figures", std::move(figures)},
          {"reasons", whole.throttle_reasons}};
}

json usage_json(const Usage& usage) {
  return {{"cpu", usage.host_cpu_percent},
          {"gpu", usage.gpu_percent},
          {"memory", usage.gpu_memory_bytes},
          {"power", usage.gpu_power_w},
          {"clock", usage.gpu_clock_mhz},
          {"temperature", usage.gpu_temperature_c},
          {"throttled", usage.throttled_fraction},
          {"reasons", usage.throttle_reasons},
          {"xids", usage.xids},
          {"rss", peak_rss_bytes()}};
}

}  // namespace

RunWatch::RunWatch(Communicator& comm, const Profiler& profiler,
                   MetricsLog* metrics, const Machine& machine)
    : comm_(comm),
      profiler_(profiler),
      metrics_(metrics),
      placements_(machine.placements),
      threads_(machine.threads),
      monitor_(machine.gpu_uuid,
               [&profiler] { return idle_cause(profiler.phase()); }),
      watch_({}),
      last_(mark()),
      window_start_(last_),
      begin_s_(now_s()),
      batch_(machine.batch),
      peak_flops_(machine.peak_flops) {
  assert(placements_.size() == static_cast<size_t>(comm.size()));
  assert((metrics != nullptr) == (comm.rank() == 0));
}

RunWatch::Mark RunWatch::mark() const { return {profiler_.seconds(), cpu_s()}; }

void RunWatch::skip() { last_ = mark(); }

void RunWatch::count_wait() { count_until(mark()); }

StepTimes RunWatch::times(const Loader::Stats& loader) const {
  double all_s = own_of(of_steps_);
  for (size_t o = 0; o < kPhases; ++o)
    if (const auto phase = static_cast<Phase>(o); is_collective(phase))
      all_s += of(of_steps_, phase);
  return {loader.loading_s, loader.exposed_s, of(of_steps_, Phase::kDataWait),
          all_s, steps_};
}

void RunWatch::count_until(const Mark& now) {
  for (size_t o = 0; o < of_steps_.size(); ++o)
    of_steps_[o] += now.seconds[o] - last_.seconds[o];
  last_ = now;
}

void RunWatch::step_done(int64_t step, double flops_per_image) {
  flops_ += static_cast<double>(batch_) * flops_per_image;
  const Mark now = mark();
  own_s_.push_back(own_of(now.seconds) - own_of(last_.seconds));
  data_s_.push_back(of(now.seconds, Phase::kDataWait) -
                    of(last_.seconds, Phase::kDataWait));
  count_until(now);
  ++steps_;
  if (own_s_.size() < kWindow) return;
  exchange(step);
  count_until(mark());
  window_start_ = last_;
  own_s_.clear();
  data_s_.clear();
}

// One figure of each rank that has it, by the rank as MetricFields name it.
using FigureOfRanks = std::map<std::string, double>;

struct RunWatch::Figures {
  FigureOfRanks own_ms, host_cpu, rss, gpu, gpu_memory, gpu_power, gpu_clock;

  void add(const std::string& rank, const json& said) {
    const auto note = [&](FigureOfRanks& into, double value) {
      if (value >= 0) into[rank] = value;
    };
    const json& usage = said["usage"];
    note(own_ms, 1e3 * said["own"].get<double>());
    note(host_cpu, usage["cpu"]);
    note(rss, usage["rss"]);
    note(gpu, usage["gpu"]);
    note(gpu_memory, usage["memory"]);
    note(gpu_power, usage["power"]);
    note(gpu_clock, usage["clock"]);
  }

  MetricFields fields() const {
    MetricFields fields = {{"own_ms_per_step", own_ms},
                           {"host_cpu_percent", host_cpu},
                           {"rss_bytes", rss}};
    if (gpu.empty()) return fields;
    fields.emplace_back("gpu_utilization", gpu);
    fields.emplace_back("gpu_memory_bytes", gpu_memory);
    fields.emplace_back("gpu_power_w", gpu_power);
    fields.emplace_back("gpu_clock_mhz", gpu_clock);
    return fields;
  }
};

// CPU time of the whole process (loader threads too) against what the compute
// threads could use in the time this rank did not wait: little means that
// others are on its cores.
double RunWatch::cpu_fraction() const {
  const double own = own_of(last_.seconds) - own_of(window_start_.seconds);
  if (threads_ == 0 || own <= 0) return 1;
  return std::min(1.0, (last_.cpu_s - window_start_.cpu_s) / (own * threads_));
}

void RunWatch::warn_of(const StragglerWatch::Alarm& alarm, int64_t step) {
  const PlacementRow& row = placements_[static_cast<size_t>(alarm.rank)];
  log_warning("[straggler] " + named(row) + " is " + fixed(alarm.ratio, 2) +
              " times slower than the others (" + fixed(1e3 * alarm.own_s, 1) +
              " ms per step against " + fixed(1e3 * alarm.others_s, 1) +
              "): " + alarm.cause);
  metrics_->write("straggler", step,
                  {{"rank", static_cast<int64_t>(alarm.rank)},
                   {"host", row.host},
                   {"ratio", alarm.ratio},
                   {"cause", alarm.cause}});
}

void RunWatch::exchange(int64_t step) {
  const json mine = {{"own", median(own_s_)},
                     {"data", median(data_s_)},
                     {"cpu_fraction", cpu_fraction()},
                     {"usage", usage_json(monitor_.take())},
                     {"gpu", gpu_json(monitor_.whole(), peak_flops_)}};
  const auto all = gather_json(comm_, mine);
  if (comm_.rank() != 0) return;

  std::vector<RankPace> paces;
  Figures figures;
  for (size_t r = 0; r < all.size(); ++r) {
    const json& said = all[r];
    const std::string rank = std::to_string(r);
    const bool throttled = said["usage"]["throttled"].get<double>() > 0.5;
    paces.push_back({said["own"], said["data"], said["cpu_fraction"],
                     throttled ? 1.0 : 0.0});
    figures.add(rank, said);
    for (const auto& xid : said["usage"]["xids"])
      log_warning("[gpu] rank " + rank + " on " + placements_[r].host + ": " +
                  xid.get<std::string>() +
                  ". Hint: dmesg on that host; Xid codes are in NVIDIA's XID "
                  "Errors guide");
  }
  for (const auto& alarm : watch_.add(paces)) warn_of(alarm, step);

  if (now_s() - written_s_ < kWriteEvery) return;
  written_s_ = now_s();
  metrics_->write("system", step, figures.fields());
  if (written_s_ < gpus_written_s_) return;
  gpus_written_s_ = written_s_ + gpus_pause_s(written_s_ - begin_s_);
  if (const MetricFields gpus = gpu_fields(all); !gpus.empty())
    metrics_->write("gpus", step, gpus);
}

MetricFields RunWatch::gpu_fields(const std::vector<json>& all) const {
  std::map<std::string, FigureOfRanks> by_figure;
  std::string reasons;
  double peak_flops = 0;  // of all GPUs, also of those that tell nothing
  bool knows_peaks = true;
  for (size_t r = 0; r < all.size(); ++r) {
    const json& gpu = all[r]["gpu"];
    const double peak = gpu["peak_flops"];
    peak_flops += peak;
    knows_peaks = knows_peaks && peak > 0;
    if (!gpu.contains("figures")) continue;
    for (const auto& [name, value] : gpu["figures"].items())
      if (value.get<double>() >= 0) by_figure[name][std::to_string(r)] = value;
    if (const std::string more = gpu["reasons"];
        !more.empty() && reasons.find(more) == std::string::npos)
      reasons += (reasons.empty() ? "" : "; ") + more;
  }
  if (by_figure.empty()) return {};
  double seconds = 0;  // of steps, without what lies between
  for (const double of_phase : of_steps_) seconds += of_phase;
  const auto images = static_cast<double>(steps_ * batch_);
  MetricFields fields = {{"seconds", now_s() - begin_s_},
                         {"images", images},
                         {"ranks", static_cast<int64_t>(all.size())},
                         {"throttle_reasons", reasons}};
  if (seconds > 0 && knows_peaks && flops_ > 0)
    fields.emplace_back("flops_utilization", flops_ / (seconds * peak_flops));
  for (auto& [name, of_ranks] : by_figure)
    fields.emplace_back(name, std::move(of_ranks));
  return fields;
}

std::string RunWatch::summary(int64_t step) {
  const double steps = std::max<double>(1, static_cast<double>(steps_));
  const auto ms_of = [&](Phase o) { return 1e3 * of(of_steps_, o) / steps; };
  std::vector<double> mine = {
      1e3 * own_of(of_steps_) / steps, ms_of(Phase::kDataWait),
      ms_of(Phase::kAllReduceWait), ms_of(Phase::kControl)};
  const auto all = comm_.all_gather(std::as_bytes(std::span(mine)));
  const std::string gpus = tell_gpus(step);
  if (comm_.rank() != 0) return "";
  std::vector<std::vector<std::string>> lines = {
      {"rank", "host", "own ms per step", "of that data wait",
       "all-reduce wait", "other waits"}};
  std::map<std::string, double> own;
  std::array<double, 4> mean{};
  for (size_t r = 0; r < all.size(); ++r) {
    std::memcpy(mine.data(), all[r].data(), all[r].size());
    lines.push_back({std::to_string(r), placements_[r].host, fixed(mine[0], 1),
                     fixed(mine[1], 1), fixed(mine[2], 1), fixed(mine[3], 1)});
    own[std::to_string(r)] = mine[0];
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += mine[i] / static_cast<double>(all.size());
  }
  const double whole = std::max(1e-9, mean[0] + mean[2] + mean[3]);
  const auto cell = [&](double ms) {
    return fixed(ms, 1) + " (" + fixed(100 * ms / whole, 1) + " %)";
  };
  lines.push_back(
      {"mean", "", cell(mean[0]), cell(mean[1]), cell(mean[2]), cell(mean[3])});
  metrics_->write("ranks", step, {{"own_ms_per_step", own}});
  std::string text = comm_.size() > 1 ? columns(lines) : "";
  return text + gpus;
}

std::string RunWatch::tell_gpus(int64_t step) {
  const auto all = gather_json(
      comm_, json{{"gpu", gpu_json(monitor_.whole(), peak_flops_)}});
  if (comm_.rank() != 0) return "";
  const MetricFields fields = gpu_fields(all);
  if (fields.empty()) return "";
  const auto totals =
      gpu_totals(json::parse(metrics_->write("gpus", step, fields)));
  if (!totals) return "";  // a driver that says what cannot be
  return "GPUs: " + gpu_figures_text(*totals) + "\n" + gpu_rule_text(*totals) +
         "\n";
}

}  // namespace chexnet
