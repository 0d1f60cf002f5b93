// Scores of a split for TensorBoard, beside the scalars of metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "chexnet/report/scores_output.hpp"
#include "chexnet/report/tensorboard.hpp"

namespace chexnet {

// How the scores of each finding are distributed, where the label says it is
// there and where it says it is not: <event>/<finding>/{positive,negative}.
// None where scores are no probabilities.
void show_distributions(TensorBoardLog& log, const std::string& event,
                        int64_t step, const Predictions& predictions);

// The figures of final scores, each under its tag:
// final/<split>/{average_precision,brier,...}/<finding>, with the ends of the
// AUROC's interval as auroc_low and auroc_high.
void show_figures(TensorBoardLog& log, int64_t step, const SplitScores& result);

// The pictures of RUN/examples: examples/<finding>/<kind>. None where there are
// none.
void show_examples(TensorBoardLog& log, int64_t step,
                   const std::filesystem::path& run);

}  // namespace chexnet
