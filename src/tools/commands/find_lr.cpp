// find-lr: the learning rate to begin with, from a few steps at rising rates
// (train/rate_range.cpp).
#include <CLI/CLI.hpp>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/report/plot.hpp"
#include "chexnet/train/rate_range.hpp"
#include "measured_run.hpp"

namespace chexnet {
namespace {

struct FindLrOptions {
  MeasuredOptions run;
  RateRange range;
  std::string svg;
  bool json = false;
};

std::string rate_text(double rate) {
  std::ostringstream text;
  text << std::setprecision(2) << rate;
  return text.str();
}

// Every point would fill a screen.
Rows curve_rows(const RateCurve& curve) {
  constexpr size_t kRows = 15;
  const auto& points = curve.points();
  const auto smoothed = curve.smoothed();
  const size_t every = points.size() / kRows + 1;
  Rows rows;
  for (size_t i = 0; i < points.size(); i += every)
    rows.push_back({"train.lr " + rate_text(points[i].rate),
                    "loss " + fixed(points[i].loss, 4) + ", smoothed " +
                        fixed(smoothed[i], 4)});
  return rows;
}

std::string sentence(const RateCurve& curve) {
  const auto suggested = curve.suggested();
  std::string text =
      suggested
          ? "a rate to begin with: train.lr = " + rate_text(suggested->rate) +
                ", half-way down; the loss is lowest at " +
                rate_text(suggested->lowest)
          : "the loss falls by no more than its noise: no rate is "
            "suggested. Hint: more --steps, another range by --from and "
            "--to, a larger train.batch, or look at the data (inspect)";
  if (curve.diverged() && !curve.points().empty())
    text +=
        "; it diverges from " + rate_text(curve.points().back().rate) + " on";
  return text;
}

Json curve_json(const RateCurve& curve, int64_t batch) {
  const auto suggested = curve.suggested();
  const auto or_null = [&](double value) {
    return suggested ? Json(value) : Json(nullptr);
  };
  const auto found = suggested.value_or(RateCurve::Suggestion{});
  Json json = {{"suggested", or_null(found.rate)},
               {"lowest", or_null(found.lowest)},
               {"diverges", curve.diverged()},
               {"batch", batch},
               {"curve", Json::array()}};
  const auto smoothed = curve.smoothed();
  for (size_t i = 0; i < smoothed.size(); ++i) {
    const auto& point = curve.points()[i];
    json["curve"].push_back(
        {{"lr", point.rate}, {"loss", point.loss}, {"smoothed", smoothed[i]}});
  }
  return json;
}

std::string picture_of(const RateCurve& curve) {
  Curve loss{"loss", {}, {}}, smoothed{"smoothed", {}, {}};
  const auto means = curve.smoothed();
  const auto suggested = curve.suggested();
  for (size_t i = 0; i < means.size(); ++i) {
    const auto& point = curve.points()[i];
    loss.points.emplace_back(std::log10(point.rate), point.loss);
    smoothed.points.emplace_back(std::log10(point.rate), means[i]);
    if (suggested && point.rate == suggested->rate) smoothed.marked = {i};
  }
  return svg_plot({.title = "Loss at rising learning rates",
                   .x_label = "log10 of train.lr",
                   .y_label = "loss",
                   .curves = {loss, smoothed}});
}

int find_lr(const FindLrOptions& options, Invocation& invocation) {
  if (options.range.from >= options.range.to)
    throw ConfigError("[find-lr] --from {} is not below --to {}",
                      number_text(options.range.from),
                      number_text(options.range.to));
  const Config config = measured_config(options.run, invocation);
  prepare_own_output(options.svg, "<svg");
  RankWorld world = enter_world(config.launch, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  const MeasuredRun run(config, world);
  const RunContext& context = run.context();
  Progress progress(context.comm.rank() == 0);
  const RateCurve curve =
      measure_rates(context, run.batch(), options.range, [&](int64_t step) {
        progress.show("find-lr: step " + std::to_string(step + 1) + " of " +
                      std::to_string(options.range.steps));
      });
  progress.clear();
  if (context.comm.rank() != 0) return 0;
  if (!options.svg.empty())
    write_in_time(context.config.launch.timeout_s, options.svg,
                  picture_of(curve), "--svg");
  if (options.json)
    std::cout << json_text(curve_json(curve, run.batch())) << "\n";
  else
    std::cout << aligned(curve_rows(curve)) << "\n" << sentence(curve) << "\n";
  std::cout << std::flush;
  return 0;
}

}  // namespace

void add_find_lr(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "find-lr", "suggest train.lr: a few steps of a config at rising rates");
  auto options = std::make_shared<FindLrOptions>();
  add_measured_options(*command, options->run);
  command
      ->add_option("--from", options->range.from, "the first step's train.lr")
      ->check(CLI::Range(1e-30, 1e3))
      ->capture_default_str();
  command->add_option("--to", options->range.to, "the last step's train.lr")
      ->check(CLI::Range(1e-30, 1e3))
      ->capture_default_str();
  command
      ->add_option("--steps", options->range.steps, "from the one to the other")
      ->check(CLI::Range(int64_t{20}, int64_t{1000000}))
      ->capture_default_str();
  command
      ->add_option("--svg", options->svg, "draw the curve into this SVG file")
      ->check(in_file_system());
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return find_lr(*options, invocation);
    };
  });
}

}  // namespace chexnet
