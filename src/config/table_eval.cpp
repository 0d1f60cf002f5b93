// When and how a network is scored, and which checkpoints stay. Of these only
// the meaning of "best" is fixed for a run: its history compares by it.
#include "option_table.hpp"

namespace chexnet {
namespace {

std::vector<ConfigOption> scoring_options() {
  return {
      {
          MEMBER(eval.batch),
          .help = "images per forward pass; the last pass is padded",
          .limits = {{1, 1e5}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(eval.every_epochs),
          .help =
              "epochs between two evaluations of the validation split, each "
              "after a checkpoint; 0 = only at the end",
          .limits = {{0, 1e6}},
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(eval.crops),
          .help =
              "parts of a picture whose probabilities are averaged: 1 = the "
              "center crop, 2 = with its mirror image, 10 = with those of the "
              "four corners too (as many times the work)",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(eval.by),
          .help =
              "what every figure is of: each image, or each study (chexpert, "
              "mimic-cxr, padchest, brax, data.manifest.columns.study) or "
              "patient, as eval.combine makes one score of its images. "
              "Positive is what has a positive image; the loss stays of "
              "images",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(eval.combine),
          .help = "max: the highest probability of its images, as CheXpert's "
                  "authors have it; mean: the mean of their logits",
          .effect = Effect::kOtherResults,
      },
  };
}

// What of a split is scored, and what it is called positive by.
std::vector<ConfigOption> split_score_options() {
  return {
      {
          MEMBER(eval.splits),
          .help = "splits scored at the end of training",
          .effect = Effect::kNone,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(eval.findings),
          .help = "findings to score; empty = all that the network knows",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(eval.blank),
          .help = "what a blank label counts as in scoring: ignore, zero or "
                  "one; auto: as data.blank",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(eval.uncertain),
          .help = "what an uncertain label (-1) counts as in scoring",
          .effect = Effect::kOtherResults,
      },
      {
          MEMBER(eval.sensitivity),
          .help =
              "each evaluation of the validation split chooses, beside "
              "Youden's, a threshold of at least this sensitivity for every "
              "finding and keeps it in the checkpoint",
          .limits = {{0, 1}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(eval.specificity),
          .help = "the same of at least this specificity",
          .limits = {{0, 1}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(eval.examples),
          .help =
              "pictures with heat maps for the report: hits, misses and false "
              "alarms of the test split, kept in the run folder; 0 = none",
          .limits = {{0, 48}},
          .effect = Effect::kNone,
      },
  };
}

// Which checkpoints are written, and which stay.
std::vector<ConfigOption> checkpoint_options() {
  return {
      {
          MEMBER(checkpoint.every_steps),
          .help = "steps between two checkpoints besides those at the ends of "
                  "epochs; 0 = none",
          .limits = {{0, kNoMaximum}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(checkpoint.keep),
          .help = "newest checkpoints that are kept, besides the best one",
          .limits = {{1, 1e6}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(checkpoint.best),
          .help = "what makes a checkpoint the best on the validation split: "
                  "its loss, or its mean AUROC, of findings with at least ten "
                  "positives and ten negatives (of all where none has as many)",
      },
  };
}

}  // namespace

std::vector<ConfigOption> eval_table() {
  return joined(
      {scoring_options(), split_score_options(), checkpoint_options()});
}

}  // namespace chexnet
