#include "chexnet/eval/scored_units.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/error.hpp"
#include "chexnet/eval/comparison.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// Patient 1 has studies a (images 0 and 2) and b (1), patient 2 a study of the
// same name as the first (3).
Manifest four_images() {
  Manifest m;
  m.path = "table.csv";
  m.findings = {"Mass", "Edema"};
  m.images = {"0", "1", "2", "3"};
  m.patients = {"1", "1", "1", "2"};
  m.studies = {"a", "b", "a", "a"};
  for (uint32_t row = 0; row < 4; ++row) m.rows[m.images[row]] = row;
  return m;
}

Predictions scores_of_images() {
  return {.findings = {"Mass", "Edema"},
          .images = {"0", "1", "2", "3"},
          .labels = {0, NAN, 1, 0, 1, 0, 0, 0},
          .probabilities = {0.2, 0.5, 0.9, 0.1, 0.6, 0.3, 0.7, 0.4},
          .spreads = {},
          .patients = {"1", "1", "1", "2"},
          .reasons = {"", "", "", ""}};
}

EvalConfig config_by(ScoredBy by, CombineImages combine) {
  EvalConfig config;
  config.by = by;
  config.combine = combine;
  return config;
}

double logit(double p) { return std::log(p / (1 - p)); }

}  // namespace

TEST_CASE("a study has the highest score of its images, and any finding") {
  const auto units =
      scored_units(scores_of_images(), four_images(),
                   config_by(ScoredBy::kStudy, CombineImages::kMax));
  CHECK(units.by == ScoredBy::kStudy);
  CHECK(units.images == std::vector<std::string>{"0", "1", "3"});
  CHECK(units.patients == std::vector<std::string>{"1", "1", "2"});
  CHECK(units.probabilities ==
        std::vector<double>{0.6, 0.5, 0.9, 0.1, 0.7, 0.4});
  const std::vector<float>& labels = units.labels;
  CHECK(labels[0] == 1);         // that of image 2
  CHECK(std::isnan(labels[1]));  // image 0 is not labeled, image 2 has none
  CHECK(labels[2] == 1);
  CHECK(std::vector<float>(labels.begin() + 3, labels.end()) ==
        std::vector<float>{0, 0, 0});
  CHECK(images_text(score(units)) == "3 studies");
}

TEST_CASE("the mean of a patient's images is that of their logits") {
  const auto units =
      scored_units(scores_of_images(), four_images(),
                   config_by(ScoredBy::kPatient, CombineImages::kMean));
  CHECK(units.images == std::vector<std::string>{"0", "3"});
  const double mean = (logit(0.2) + logit(0.9) + logit(0.6)) / 3;
  CHECK(units.probabilities[0] ==
        Approx(1 / (1 + std::exp(-mean))).epsilon(1e-14));
  CHECK(units.probabilities[2] == 0.7);  // of one image, to the bit
  CHECK(std::isnan(units.labels[1]));
}

TEST_CASE("damaged images count for nothing beside others") {
  auto images = scores_of_images();
  images.spreads = {0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4};
  const auto damage = [&images](size_t i) {
    images.reasons[i] = "cut off";
    images.probabilities[2 * i] = images.probabilities[2 * i + 1] = NAN;
  };
  damage(2);
  damage(3);
  const auto units = scored_units(
      images, four_images(), config_by(ScoredBy::kStudy, CombineImages::kMax));
  CHECK(units.probabilities[0] == 0.2);
  CHECK(units.spreads[0] == 0.1);
  CHECK(units.labels[0] == 1);  // its label is known all the same
  CHECK(units.reasons == std::vector<std::string>{"", "", "cut off"});
  CHECK(std::isnan(units.probabilities[4]));
  CHECK(images_text(score(units)) == "2 of 3 studies, 1 damaged");
}

TEST_CASE("a study has one name and score in a table of any order") {
  const auto config = config_by(ScoredBy::kStudy, CombineImages::kMean);
  const auto images = scores_of_images();
  auto reversed = images;
  std::ranges::reverse(reversed.images);
  std::ranges::reverse(reversed.patients);
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 2; ++k) {
      reversed.labels[2 * i + k] = images.labels[2 * (3 - i) + k];
      reversed.probabilities[2 * i + k] = images.probabilities[2 * (3 - i) + k];
    }
  const auto units = scored_units(reversed, four_images(), config);
  CHECK(units.images == std::vector<std::string>{"3", "0", "1"});
  CHECK(units.probabilities[2] ==
        scored_units(images, four_images(), config).probabilities[0]);
}

TEST_CASE("a study has one name in any order of the manifest, by any image") {
  const auto config = config_by(ScoredBy::kStudy, CombineImages::kMax);
  Manifest turned = four_images();
  for (auto* column : {&turned.images, &turned.patients, &turned.studies})
    std::ranges::reverse(*column);
  for (uint32_t row = 0; row < 4; ++row) turned.rows[turned.images[row]] = row;
  CHECK(scored_units(scores_of_images(), turned, config).images ==
        std::vector<std::string>{"0", "1", "3"});
  const Predictions second{.findings = {"Mass", "Edema"},
                           .images = {"2"},
                           .labels = {1, 0},
                           .probabilities = {0.6, 0.3},
                           .spreads = {},
                           .patients = {"1"},
                           .reasons = {""}};
  CHECK(scored_units(second, four_images(), config).images ==
        std::vector<std::string>{"0"});
}

TEST_CASE("scores of studies, scored again, stay") {
  const auto config = config_by(ScoredBy::kStudy, CombineImages::kMean);
  auto images = scores_of_images();
  images.images[1] = "of another table";
  const auto once = scored_units(images, four_images(), config);
  CHECK(once.images == std::vector<std::string>{"0", "of another table", "3"});
  const auto twice = scored_units(once, four_images(), config);
  CHECK(twice.images == once.images);
  CHECK(twice.probabilities == once.probabilities);
  CHECK(scored_units(once, four_images(), {}).by == ScoredBy::kStudy);
  CHECK(error_of<ConfigError>([&] {
          scored_units(once, four_images(),
                       config_by(ScoredBy::kPatient, CombineImages::kMax));
        }).find("a row for each study already") != std::string::npos);
  const auto by_image = scored_units(images, four_images(), {});
  CHECK(by_image.probabilities == images.probabilities);
}

TEST_CASE("a table of studies keeps its labels beside a table of images") {
  const ScratchFolder folder;
  auto m = four_images();
  m.labels = {0, 0, 0, 0, 0, 0, 0, 0};  // of images; the studies' are others
  const auto units = scored_units(
      scores_of_images(), m, config_by(ScoredBy::kStudy, CombineImages::kMax));
  const auto path = folder.write("s.csv", predictions_csv(units));
  const auto read = read_predictions(path, &m);
  CHECK(read.by == ScoredBy::kStudy);
  CHECK(predictions_csv(read) == predictions_csv(units));
  CHECK(read.patients == units.patients);
  CHECK(error_of<DataError>([&] {
          compare(read, scores_of_images(), {}, {});
        }).find("a row for each study, the other for each image") !=
        std::string::npos);
}

TEST_CASE("scores beyond 0 and 1 have a plain mean") {
  auto images = scores_of_images();
  images.probabilities[0] = -3;
  const auto units =
      scored_units(images, four_images(),
                   config_by(ScoredBy::kPatient, CombineImages::kMean));
  CHECK(units.probabilities[0] == Approx((-3 + 0.9 + 0.6) / 3));
}

TEST_CASE("what a table does not know cannot be scored by") {
  const auto refusal = [](const Manifest& m, ScoredBy by) {
    return error_of<ConfigError>(
        [&] { check_scored_by(m, config_by(by, CombineImages::kMax)); });
  };
  auto m = four_images();
  CHECK(refusal(m, ScoredBy::kStudy).empty());
  m.studies[2].clear();
  CHECK(refusal(m, ScoredBy::kStudy).find("row 3 of table.csv") !=
        std::string::npos);
  CHECK(refusal(m, ScoredBy::kPatient).empty());
  m.knows_patients = false;
  CHECK(refusal(m, ScoredBy::kPatient).find("columns.patient") !=
        std::string::npos);
  CHECK(refusal(m, ScoredBy::kImage).empty());
}

TEST_CASE("settings of scores that one threshold may be of") {
  EvalConfig config;
  CHECK(scored_with(config) == "eval.crops=1 eval.by=image");
  config.crops = EvalCrops::kTen;
  config.by = ScoredBy::kStudy;
  CHECK(scored_with(config) == "eval.crops=10 eval.by=study eval.combine=max");
}
