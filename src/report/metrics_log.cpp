#include "chexnet/report/metrics_log.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/safe_open.hpp"
#include "metric_lines.hpp"

namespace chexnet {
namespace {

nlohmann::json json_of(const MetricValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>)
          return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr);
        else if constexpr (std::is_same_v<std::decay_t<decltype(v)>,
                                          MetricJson>)
          return nlohmann::json::parse(v.text);
        else
          return v;
      },
      value);
}

std::string line_text(const Json& line) { return json_text(line) + "\n"; }

int64_t step_of(const nlohmann::json& event) {
  const auto found = event.find("step");
  return found != event.end() ? found->get<int64_t>() : 0;
}

// A run that goes on from a checkpoint of step s repeats what came after it:
//
//   train 1 .. s | val s, checkpoint s | train s+1 .. | final, end
//                                       ^ cut here, and at `val s` too when its
//                                         evaluation is due, and at the
//                                         `train s` of a stop
//
// Otherwise a curve would have two values at one step.
bool is_written_again(const nlohmann::json& event, MetricsLog::Start start) {
  const int64_t step = step_of(event);
  if (step != start.step) return step > start.step;
  const auto kind = event.find("event");
  if (kind == event.end()) return false;
  return *kind == "final" || *kind == "end" ||
         (*kind == "val" && start.evaluation_due) ||
         (*kind == "train" && start.has_unlogged);
}

void cut_after(const std::filesystem::path& path, MetricsLog::Start start) {
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  for_each_event(read_text(path),
                 [&](const nlohmann::json& event, const std::string& line) {
                   if (!is_written_again(event, start)) kept += line;
                 });
  write_atomically(path, kept);
}

// Before the names of an event's figures in TensorBoard.
std::string tag_of(const std::string& event, const MetricFields& fields) {
  for (const auto& [name, value] : fields)
    if (name == "split")
      return event + "/" + std::get<std::string>(value) + "/";
  return event + "/";
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, Start start)
    : tensorboard_(folder, start.step + 1), path_(folder / "metrics.jsonl") {
  cut_after(path_, start);
  lines_.open(AppendName(path_).name(), std::ios::app);
  if (!lines_ || !tensorboard_.good())
    throw CheckpointError(
        "[report] {}: cannot be written. Hint: is the run folder writable?",
        path_.string());
  sync_folder(folder);
}
MetricsLog::~MetricsLog() = default;

std::string MetricsLog::write(const std::string& event, int64_t step,
                              const MetricFields& fields) {
  Json line;
  line["event"] = event;
  line["step"] = step;
  const std::string tag = tag_of(event, fields);
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : fields) {
    assert(!line.contains(name));  // "event" and "step" are ours
    line[name] = json_of(value);
    if (const auto* number = std::get_if<double>(&value))
      scalars.emplace_back(tag + name, *number);
    if (const auto* whole = std::get_if<int64_t>(&value))
      scalars.emplace_back(tag + name, static_cast<double>(*whole));
    if (const auto* table =
            std::get_if<std::map<std::string, double>>(&value)) {
      for (const auto& [key, v] : *table) {
        scalars.emplace_back(tag + name + "/" + key, v);
        if (!std::isfinite(v)) line[name][key] = nullptr;
      }
    }
  }
  tensorboard_.scalars(step, scalars);
  errno = 0;
  std::string text = line_text(line);
  lines_ << text;
  lines_.flush();
  if (!lines_)
    throw CheckpointError(
        "[report] {}: cannot be written: {}. Hint: the earlier checkpoints are "
        "untouched; see that there is space and quota, and resume",
        path_.string(), std::strerror(errno));
  if (prometheus_) prometheus_->take(nlohmann::json::parse(text));
  return text;
}

void MetricsLog::show_in(std::unique_ptr<PrometheusFile> file) {
  prometheus_ = std::move(file);
}

void MetricsLog::sync() const { sync_file(path_); }

namespace {

// After the last event, with its step; nothing where that is one of `unless`.
void append_event(const std::filesystem::path& folder, const char* kind,
                  const Json& fields,
                  std::initializer_list<std::string_view> unless = {}) {
  const auto path = folder / "metrics.jsonl";
  std::error_code error;
  if (!std::filesystem::exists(folder / "config.yaml", error)) return;
  std::string text;
  if (std::filesystem::exists(path, error)) text = read_text(path);
  int64_t step = 0;
  std::string last;
  for_each_event(text, [&](const nlohmann::json& event, const std::string&) {
    step = step_of(event);
    last = event.value("event", "");
  });
  if (std::ranges::find(unless, last) != unless.end()) return;
  Json line = {{"event", kind}, {"step", step}};
  line.update(fields);
  std::ofstream lines(AppendName(path).name(), std::ios::app);
  if (!text.empty() && !text.ends_with('\n'))
    lines << '\n';  // a full disk tore it
  lines << line_text(line);
  lines.close();
  renew_prometheus_file(folder);
}

}  // namespace

void write_error_event(const std::filesystem::path& folder, int exit_code,
                       const std::string& sentence) {
  append_event(folder, "error",
               {{"exit_code", exit_code}, {"sentence", sentence}});
}

void write_stop_event(const std::filesystem::path& folder,
                      const std::string& reason) {
  append_event(folder, "stop", {{"reason", reason}}, {"stop", "end"});
}

}  // namespace chexnet
