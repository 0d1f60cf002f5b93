// Training draws other than a permutation: frequencies by finding, and partners
// of mixup.
#include "chexnet/data/balanced.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/stream.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/phantom_set.hpp"

using namespace chexnet;

namespace {

// 100 images: four with A, 25 with B (one of them with A too), others none.
Manifest rare_and_common() {
  Manifest m;
  m.findings = {"A", "B"};
  for (int i = 0; i < 100; ++i) {
    m.images.push_back("i" + std::to_string(i));
    m.labels.push_back(i < 4 ? 1.0f : 0.0f);
    m.labels.push_back(i >= 3 && i < 28 ? 1.0f : 0.0f);
  }
  return m;
}

std::map<uint32_t, int> counted(const std::vector<uint32_t>& rows) {
  std::map<uint32_t, int> counts;
  for (const auto row : rows) ++counts[row];
  return counts;
}

}  // namespace

TEST_CASE("an image's weight is that of its rarest finding") {
  const Manifest m = rare_and_common();
  const auto weights = balanced_weights(m, all_rows(m));
  CHECK(weights[0] == 5);                               // sqrt(100 / 4)
  CHECK(weights[3] == 5);                               // both
  CHECK(weights[4] == 2);                               // sqrt(100 / 25)
  CHECK(weights[99] == Approx(std::sqrt(100.0 / 72)));  // none
}

TEST_CASE("an epoch draws each image as often as its weight asks, within one") {
  const Manifest m = rare_and_common();
  const auto rows = all_rows(m);
  const auto weights = balanced_weights(m, rows);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint32_t> first;
  std::vector<double> drawn(rows.size());
  constexpr int kEpochs = 400;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Random random(7, Purpose::kTest, static_cast<uint64_t>(epoch));
    const auto order = weighted_order(rows, weights, random);
    REQUIRE(order.size() == rows.size());
    const auto counts = counted(order);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto found = counts.find(rows[i]);
      const double times = found == counts.end() ? 0 : found->second;
      CHECK(std::abs(times - 100 * weights[i] / sum) < 1.0 + 1e-9);
      drawn[i] += times;
    }
    if (epoch == 0) first = order;
    if (epoch == 1) CHECK(order != first);
  }
  // On the average exactly so often: the standard error is below 0.025.
  for (size_t i = 0; i < rows.size(); ++i)
    CHECK(std::abs(drawn[i] / kEpochs - 100 * weights[i] / sum) < 0.12);
  CHECK_FALSE(std::ranges::is_sorted(first));
}

TEST_CASE("what is drawn depends on seed and position, not on ranks") {
  const Manifest m = rare_and_common();
  StreamPart part{.seed = 5, .mixup = 0.4, .batch = 12};
  part.draw_weights = balanced_weights(m, all_rows(m));
  const TrainSampler alone(all_rows(m), part);
  part.world_size = 3;
  part.first_position = 96;
  double shares = 0;
  int own_partner = 0;
  for (part.rank = 0; part.rank < 3; ++part.rank) {
    const TrainSampler sampler(all_rows(m), part);
    for (uint64_t ticket = 0; ticket < 200; ++ticket) {
      const Sample sample = sampler.at(ticket);
      const Sample same = alone.at(sample.position);
      CHECK(same.position == sample.position);
      CHECK((sample.row == same.row && sample.partner == same.partner &&
             sample.share == same.share));
      CHECK((sample.share >= 0.5 && sample.share <= 1));
      shares += sample.share;
      own_partner += sample.partner == sample.row ? 1 : 0;
    }
  }
  // E max(s, 1 - s) of Beta(0.4, 0.4) is 0.840 (by simulation).
  CHECK(std::abs(shares / 600 - 0.840) < 0.03);
  CHECK(own_partner < 60);
}

TEST_CASE("a share of mixup is drawn at once, however small its parameter") {
  const Manifest m = rare_and_common();
  for (const double alpha : {1e-3, 1e-12, 1e-300}) {
    CAPTURE(alpha);
    const TrainSampler sampler(all_rows(m),
                               {.seed = 5, .mixup = alpha, .batch = 12});
    double least = 1;
    for (uint64_t ticket = 0; ticket < 200; ++ticket)
      least = std::min(least, double{sampler.at(ticket).share});
    CHECK((least > 0.9 && least <= 1));  // nearly always one of the images
  }
}

TEST_CASE("a batch holds the mixture of both images and of their labels") {
  const ScratchFolder folder;
  Manifest m = draw_phantom_set(folder.path(), 12, 32);
  const auto rows = all_rows(m);
  m.labels[0] = NAN;
  Stores stores;
  const ImageSource source(
      ImageIndex::scan(m, rows, {(folder / "images").string()}, stores),
      stores);
  const ImageReader reader(source, {.resize = 32, .crop = 32},
                           {.flip = true, .rotate_deg = 10}, 3);
  const TrainSampler sampler(rows, {.seed = 3, .mixup = 1, .batch = 24});
  Loader loader(m, reader, sampler, {.batch = 24, .workers = 2});
  const Batch& batch = loader.next();
  REQUIRE(batch.damaged == 0);
  ImageReader::Scratch scratch;
  std::vector<uint8_t> a(32 * 32), b(32 * 32);
  const size_t findings = m.finding_count();
  for (size_t i = 0; i < 24; ++i) {
    const Sample sample = batch.samples[i];
    reader.read({.row = sample.row, .position = sample.position}, a.data(),
                scratch);
    reader.read(
        {.row = sample.partner, .position = partner_position(sample.position)},
        b.data(), scratch);
    int worst = 0;
    for (size_t p = 0; p < a.size(); ++p) {
      const double wanted = sample.share * a[p] + (1 - sample.share) * b[p];
      const double is = batch.images[i * a.size() + p];
      worst = std::max(worst, std::abs(is - wanted) > 0.5 + 1e-9 ? 1 : 0);
    }
    CHECK(worst == 0);
    for (size_t k = 0; k < findings; ++k) {
      const float own = m.label_row(sample.row)[k],
                  other = m.label_row(sample.partner)[k];
      const float is = batch.labels[i * findings + k];
      if (std::isnan(own) || std::isnan(other))
        CHECK(std::isnan(is));
      else
        CHECK(is == Approx(sample.share * own + (1 - sample.share) * other));
    }
  }
}

TEST_CASE("the mixture's loss is that of both images with their weights") {
  const ScratchFolder folder;
  Manifest m = draw_phantom_set(folder.path(), 12, 32);
  const auto rows = all_rows(m);
  for (size_t i = 0; i < m.size(); ++i)
    m.sample_weights.push_back(static_cast<float>(i % 4));  // some have none
  Stores stores;
  const ImageSource source(
      ImageIndex::scan(m, rows, {(folder / "images").string()}, stores),
      stores);
  const ImageReader reader(source, {.resize = 32, .crop = 32}, {}, 3);
  const TrainSampler sampler(rows, {.seed = 3, .mixup = 1, .batch = 24});
  Loader loader(m, reader, sampler, {.batch = 24, .workers = 0});
  const Batch& batch = loader.next();
  REQUIRE(batch.sample_weights.size() == 24);
  const double up = 0.7, down = 1.9;  // losses of a positive and a negative
  const auto loss = [&](double label) {
    return label * up + (1 - label) * down;
  };
  for (size_t i = 0; i < 24; ++i) {
    const Sample sample = batch.samples[i];
    const double v = sample.share * m.sample_weights[sample.row],
                 w = (1 - sample.share) * m.sample_weights[sample.partner];
    for (size_t k = 0; k < m.finding_count(); ++k)
      CHECK(batch.sample_weights[i] *
                loss(batch.labels[i * m.finding_count() + k]) ==
            Approx(v * loss(m.label_row(sample.row)[k]) +
                   w * loss(m.label_row(sample.partner)[k]))
                .margin(1e-6));
  }
}
