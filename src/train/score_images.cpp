// A split of n images on R ranks in batches of B. Rank r scores the images r,
// r + R, r + 2R, …, and after each batch all ranks get the results of all:
//
//   B = 2    batch 0        batch 1        a line: its means, then one Flag;
//   rank 0: | 0 | 3 |      | 6 | - |       the end is padding, which is
//   rank 1: | 1 | 4 |      | 7 | - |       computed and not sent
//   rank 2: | 2 | 5 |      | - | - |
//
// So the images b B R … (b + 1) B R - 1 are complete after batch b, image i as
// line i / R - b B of rank i % R. Every rank takes every line, so all of them
// know which logits are not finite without asking again.
#include "chexnet/train/score_images.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <deque>
#include <list>
#include <vector>

#include "batch_tensors.hpp"
#include "batch_upload.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/data/damage.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/train/host_copy.hpp"
#include "crops.hpp"
#include "device_deadline.hpp"

namespace chexnet {
namespace {

// kDamaged: no logits that count, and a message why; kNoted: a message, too.
enum Flag : int { kSound, kDamaged, kNoted };

// What happened, without what to do about it.
std::string reason_of(const std::string& message) {
  return message.substr(0, message.find(". Hint: "));
}

[[noreturn]] void refuse_not_finite(const Split& split, size_t not_finite,
                                    size_t all) {
  throw NumericError(
      "[evaluate] the {} split: {} of {} logits are not finite: the network "
      "has diverged. Hint: start a new run with a lower train.lr or with "
      "train.clip_norm; earlier checkpoints are untouched",
      split.name, not_finite, all);
}

// A batch whose logits are computed: the part to keep when the loader has gone
// on.
struct UnderWay {
  std::vector<Sample> samples;
  std::vector<std::string> errors, notes;
  HostCopy logits;  // double [members, crops, its images, K]

  UnderWay(const Batch& batch, const at::Tensor& computed)
      : samples(batch.samples),
        errors(batch.errors),
        notes(batch.notes),
        logits(computed) {}
};

bool any_message(const std::vector<std::vector<std::byte>>& lines,
                 size_t line_length) {
  for (const auto& of_rank : lines) {
    for (size_t end = line_length * sizeof(double); end <= of_rank.size();
         end += line_length * sizeof(double)) {
      double flag = 0;
      std::memcpy(&flag, &of_rank[end - sizeof(double)], sizeof(double));
      if (static_cast<int>(flag) != kSound) return true;
    }
  }
  return false;
}

class Scoring {
 public:
  Scoring(const RunContext& run, const Split& split,
          const ScoringRequest& request)
      : run_(run),
        split_(split),
        request_(request),
        batch_(static_cast<size_t>(run.config.eval.batch)),
        deadline_(run.device.where, run.config.launch.timeout_s,
                  "a batch of the evaluation"),
        images_deadline_(
            images_deadline(run.config.launch.timeout_s, "the evaluation")),
        networks_(run.networks()),
        findings_(run.dataset.manifest.finding_count()),
        width_(findings_ * (networks_.size() > 1 ? 2 : 1)) {}

  // False on all ranks when any of them wants to stop. While a GPU computes a
  // batch, the host takes in the next one; the logits are read when that one is
  // launched.
  bool score();
  // Depends only on what all ranks know: all throw the same, or none does.
  void check() const {
    accept_damage(DamagePolicy::of(run_.config.data), damaged_,
                  split_.rows.size(), split_.name, "", run_.comm);
    if (not_finite_ > 0)
      refuse_not_finite(split_, not_finite_, split_.rows.size() * findings_);
  }

 private:
  at::Tensor logits_of(const Crops& crops, const at::Tensor& images) const;
  void share(UnderWay& batch);
  void take(const std::vector<std::vector<std::byte>>& lines,
            const std::vector<std::string>& messages);

  const RunContext& run_;
  const Split& split_;
  const ScoringRequest& request_;
  size_t batch_;
  DeviceDeadline deadline_;
  std::unique_ptr<WaitDeadline> images_deadline_;
  std::vector<Network*> networks_;
  size_t findings_, width_;           // of a line without its flag
  size_t taken_ = 0;                  // images
  std::vector<std::string> damaged_;  // messages of this rank
  size_t not_finite_ = 0;
};

bool Scoring::score() {
  const auto ranks = static_cast<size_t>(run_.comm.size());
  const size_t per_rank = (split_.rows.size() + ranks - 1) / ranks;
  const size_t batches = (per_rank + batch_ - 1) / batch_;

  const DataConfig& data = run_.config.data;
  const Crops crops(run_.config.eval.crops, data);
  const ImageReader reader(*run_.dataset.images, crops.of_reader(),
                           Augmentation::none(), 0);
  const EvalSampler sampler(split_.rows, run_.comm.rank(), run_.comm.size());
  Loader::Options options = loader_options(data, static_cast<int>(batch_),
                                           reader.source(), run_.device.cores);
  options.absent_is_damage = request_.absent_is_damage;
  options.notes = request_.notes;
  // A small split is scored before a loader has found out how many it needs.
  if (!options.workers) options.workers = options.max_workers;
  Loader loader(run_.dataset.manifest, reader, sampler, options,
                run_.device.batch_memory());

  Progress progress(request_.progress && run_.comm.rank() == 0);
  BatchUpload upload(run_.device.where);
  // A CPU's logits are read at once, before its memory is used again.
  const size_t behind = run_.device.where.is_cpu() ? 0 : 1;
  std::deque<UnderWay> under_way;
  const double start = now_s();
  for (size_t b = 0; b < batches; ++b) {
    {
      const auto wait = deadline_.wait();
      upload.wait();  // the loader refills the last batch's memory, or ends
    }
    const Batch* next = [&] {
      const auto wait = images_deadline_->wait();
      return loader.next_unless(request_.stop);
    }();
    if (any_rank(run_.comm, next == nullptr)) {
      progress.clear();
      return false;
    }
    {
      const auto wait = deadline_.wait();
      const BatchTensors tensors = upload.upload(tensors_of(*next));
      under_way.emplace_back(*next, logits_of(crops, tensors.images));
    }
    if (under_way.size() > behind) {
      share(under_way.front());
      under_way.pop_front();
    }
    const double done =
        static_cast<double>(b + 1) / static_cast<double>(batches);
    progress.show("evaluating " + split_.name + ": " +
                  percent_and_time_left(done, now_s() - start));
  }
  for (UnderWay& last : under_way) share(last);
  progress.clear();
  return true;
}

// [members, crops, N, K]
at::Tensor Scoring::logits_of(const Crops& crops,
                              const at::Tensor& images) const {
  std::vector<at::Tensor> of_members;
  for (Network* network : networks_)
    of_members.push_back(crops.logits(*network, images));
  return of_members.size() == 1 ? of_members.front().unsqueeze(0)
                                : at::stack(of_members);
}

// Collective. Waits for the device.
void Scoring::share(UnderWay& batch) {
  const at::Tensor& logits = [&]() -> const at::Tensor& {
    const auto wait = deadline_.wait();
    return batch.logits.wait();
  }();
  std::vector<double> lines;
  std::string messages;  // a line each
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    if (batch.samples[i].padding) continue;
    append_means(logits, i, lines);
    const std::string& error = batch.errors[i];
    const std::string& note = batch.notes[i];
    Flag flag = note.empty() ? kSound : kNoted;
    if (!error.empty()) flag = kDamaged;
    lines.push_back(flag);
    if (flag == kSound) continue;
    if (flag == kDamaged) {
      log_warning(error);
      damaged_.push_back(error);
    }
    std::string line = flag == kDamaged ? reason_of(error) : note;
    std::ranges::replace(line, '\n', ' ');
    messages += line + "\n";
  }
  const auto all_lines = run_.comm.all_gather(std::as_bytes(std::span(lines)));
  // All ranks see the same flags, so all gather messages, or none does.
  take(all_lines, any_message(all_lines, width_ + 1)
                      ? gather_text(run_.comm, messages)
                      : std::vector<std::string>(all_lines.size()));
}

void Scoring::take(const std::vector<std::vector<std::byte>>& lines,
                   const std::vector<std::string>& messages) {
  const size_t ranks = lines.size();
  const size_t first = taken_;  // a multiple of the ranks
  const size_t end = std::min(split_.rows.size(), first + batch_ * ranks);
  std::vector<size_t> read(ranks, 0);  // of a rank's messages
  std::vector<double> line(width_ + 1);
  const size_t line_bytes = line.size() * sizeof(double);
  for (; taken_ < end; ++taken_) {
    const size_t rank = taken_ % ranks;
    const size_t at = (taken_ - first) / ranks * line_bytes;
    assert(at + line_bytes <= lines[rank].size());
    std::memcpy(line.data(), lines[rank].data() + at, line_bytes);
    const auto flag = static_cast<int>(line.back());
    ImageLogits image{.index = taken_};
    if (flag != kSound) {
      std::string& message = flag == kNoted ? image.note : image.error;
      const size_t line_end = messages[rank].find('\n', read[rank]);
      message = messages[rank].substr(read[rank], line_end - read[rank]);
      read[rank] = line_end + 1;
    }
    if (flag != kDamaged) {
      image.logits = std::span(line).first(findings_);
      image.spreads = std::span(line).subspan(findings_, width_ - findings_);
      for (const double logit : image.logits)
        if (!std::isfinite(logit)) ++not_finite_;
    }
    request_.take(image);
  }
}

}  // namespace

bool score_images(const RunContext& run, const Split& split,
                  const ScoringRequest& request) {
  std::list<Network::FixedWeights> fixed;
  for (Network* network : run.networks()) fixed.emplace_back(*network);
  Scoring scoring(run, split, request);
  if (!scoring.score()) return false;
  scoring.check();
  return true;
}

}  // namespace chexnet
