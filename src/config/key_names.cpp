// Messages for an unknown key: an earlier version had it under this name,
// another program calls it so, or it is misspelled. An old name is refused and
// never understood, so that a config says what it does.
#include <algorithm>
#include <map>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/near_name.hpp"

namespace chexnet {
namespace {

std::string last_word(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

}  // namespace

// Names that other programs have for a key; edit distance leads elsewhere.
std::string key_of_word(std::string word) {
  std::ranges::replace(word, '-', '_');
  static const std::map<std::string, std::string> kElsewhere = {
      {"learning_rate", "train.lr"},
      {"learningrate", "train.lr"},
      {"rate", "train.lr"},
      {"batch_size", "train.batch"},
      {"num_workers", "data.workers"},
      {"num_epochs", "train.epochs"},
      {"image_size", "data.crop"},
      {"img_size", "data.crop"},
      {"input_size", "data.crop"},
      {"accumulation_steps", "train.accumulate"},
      {"backbone", "model.arch"},
      {"architecture", "model.arch"},
      {"pretrained", "model.weights"},
      {"labels", "data.findings"},
      {"classes", "data.findings"}};
  const auto known = kElsewhere.find(word);
  if (known != kElsewhere.end()) return known->second;
  std::string key;
  for (const auto& option : option_keys()) {
    if (last_word(option) != word) continue;
    if (!key.empty()) return "";
    key = option;
  }
  return key;
}

namespace {

bool holds_keys(const std::string& name) {
  return std::ranges::any_of(option_keys(), [&](const auto& option) {
    return option.starts_with(name + ".");
  });
}

}  // namespace

std::string likely_keys(const std::string& key) {
  const std::string meant = key_of_word(last_word(key));
  constexpr size_t kTypingError = 2;
  const bool is_misspelled =
      std::ranges::any_of(option_keys(), [&](const auto& option) {
        return edit_distance(key, option) <= kTypingError;
      });
  if (!is_misspelled && !meant.empty()) return "'" + meant + "'";
  return nearest_names(key, option_keys());
}

const std::vector<RemovedName>& removed_names() {
  static const std::vector<RemovedName> kRemoved = {
      {"data.folds", "write data.fold: 1/5, the first of five folds"},
      {"data.uncertain_by_finding",
       "write data.uncertain: [ignore, Edema=one]"},
      {"data.random_crop", "write data.train_crop: random"},
      {"data.random_resized_crop", "write data.train_crop: resized"},
      {"data.cycle_length", "it is 10, as in the article"},
      {"data.shuffle_files", "shards are always shuffled"},
      {"data.shuffle_records", "the buffer holds 500, as in the article"},
      {"data.max_pixels", "the limit is 64 million pixels"},
      {"data.corrupt_limit", "write the fraction as data.corrupt: 0.02"},
      {"train.plateau_factor", "write train.decay_factor"},
      {"train.step_factor", "write train.decay_factor"},
      {"train.beta1", "write train.betas: [0.9, 0.999]"},
      {"train.beta2", "write train.betas: [0.9, 0.999]"},
      {"train.convolutions", "write train.engine: direct"},
      {"eval.threads",
       "write launch.threads; scores do not depend on it with our own engine"},
      {"train.swa", "write train.ema: 0.999"},
      {"run.world_readable", "chmod -R o+rX FOLDER opens a run to everybody"},
      {"train.loss_weights", "write train.class_weights"},
      {"model.freeze_backbone", "write model.freeze_until: backbone"},
      {"data.scale_jitter", "write data.zoom"},
      {"data.contrast_jitter", "write data.contrast"},
      {"train.sampling=balanced", "write train.sampling: rare_first"},
      {"train.nan_policy", "write train.not_finite"},
      {"checkpoint.every_epochs",
       "a checkpoint is written at the end of each epoch"},
      {"train.max_seconds", "write launch.time_limit: 1:00:00"},
      {"launch.ranks=0", "write launch.ranks: auto"},
      {"launch.ranks_per_node=0", "write launch.ranks_per_node: auto"},
      {"launch.threads=0", "write launch.threads: auto"},
      {"data.eval_resize=0", "write data.eval_resize: auto"},
  };
  return kRemoved;
}

std::string written_instead(const std::string& name) {
  const auto found =
      std::ranges::find(removed_names(), name, &RemovedName::name);
  return found == removed_names().end() ? "" : found->instead;
}

std::string unknown_key_text(const std::string& key) {
  const std::string instead = written_instead(key);
  if (holds_keys(key))
    return "'" + key + "' holds keys, and has a value here. Hint: write them " +
           "below it, or remove it";
  return instead.empty() ? "unknown key '" + key + "'. Hint: nearest are " +
                               likely_keys(key)
                         : "'" + key + "' is no key any more. Hint: " + instead;
}

}  // namespace chexnet
