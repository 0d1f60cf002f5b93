#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/eval/predictions.hpp"
#include "eval/auroc.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("AUROC equals the share of won pairs, ties half") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed, Purpose::kTest, 0);
    std::vector<double> scores(200);
    std::vector<float> labels(200);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = random.below(seed < 10 ? 7 : 1000000);
      labels[i] = random.chance(0.1) ? NAN : (random.chance(0.3) ? 1.0f : 0.0f);
    }
    double won = 0, pairs = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      for (size_t j = 0; j < scores.size(); ++j)
        if (labels[i] == 1 && labels[j] == 0) {
          ++pairs;
          won += scores[i] > scores[j] ? 1 : (scores[i] == scores[j] ? 0.5 : 0);
        }
    REQUIRE(auroc(scores, labels));
    CHECK(*auroc(scores, labels) == Approx(won / pairs).epsilon(1e-14));
  }
  CHECK_FALSE(auroc(std::vector<double>{1, 2}, std::vector<float>{1, 1}));
  CHECK_FALSE(auroc({}, {}));
}

TEST_CASE(
    "a score that is no number leaves the AUROC undefined, and every loop "
    "ends") {
  const std::vector<float> labels = {1, 0, 1, 0, NAN};
  CHECK_FALSE(auroc(std::vector<double>{NAN, 1, 2, NAN, 0}, labels));
  // Not labeled.
  CHECK(auroc(std::vector<double>{3, 1, 2, 0, NAN}, labels) == Approx(1.0));
  CHECK(auroc(std::vector<double>{INFINITY, -INFINITY, INFINITY, INFINITY, 0},
              labels) == Approx(0.75));
  Predictions p;
  p.findings = {"A"};
  p.images = {"1", "2"};
  p.labels = {1, 0};
  p.probabilities = {NAN, 0.5};
  const Scores s = score(p);
  CHECK_FALSE(s.auroc[0]);
  CHECK_FALSE(s.mean_auroc);
  CHECK_FALSE(s.any_finding_auroc_mean_logit);
}

TEST_CASE("predictions survive the way through CSV, to the last bit") {
  Predictions p;
  p.findings = {"A", "B, c"};
  p.images = {"x.png", "y,z.png"};
  p.labels = {1, NAN, 0, 1};
  p.probabilities = {0.1, 1.0 / 3, 5e-324, 0.9999999999999999};
  const ScratchFolder folder;
  const auto q =
      read_predictions(folder.write("p.csv", predictions_csv(p)), nullptr);
  CHECK(q.findings == p.findings);
  CHECK(q.images == p.images);
  CHECK(q.probabilities == p.probabilities);
  CHECK(std::isnan(q.labels[1]));
  CHECK(q.labels[3] == 1);
}

TEST_CASE(
    "an image that was not scored has blank probabilities and counts nowhere") {
  Predictions p;
  p.findings = {"A", "B"};
  p.images = {"1", "2", "3", "4"};
  p.labels = {1, 0, 0, 1, 1, 1, 0, 0};
  p.probabilities = {0.9, 0.1, 0.2, 0.8, NAN, NAN, 0.3, 0.4};
  p.reasons = {"", "", "damaged PNG: cut off, at byte 3", ""};
  const ScratchFolder folder;
  const std::string text = predictions_csv(p);
  CHECK(text.find("\n3,1,1,,,\"damaged PNG: cut off, at byte 3\"\n") !=
        std::string::npos);
  const auto q = read_predictions(folder.write("p.csv", text), nullptr);
  CHECK(q.reasons == p.reasons);
  for (const auto& predictions : {p, q}) {
    const Scores s = score(predictions);
    CHECK((s.images == 3 && s.damaged == 1));
    CHECK(s.positives == std::vector<size_t>{1, 1});
    CHECK((*s.auroc[0] == 1 && *s.auroc[1] == 1 &&
           *s.any_finding_auroc_mean_logit == 1));
    CHECK(images_text(s) == "3 of 4 images, 1 damaged");
  }
  for (const char* name : {"prob:A", "prob_A"}) {
    const auto table = read_predictions(
        folder.write("n.csv",
                     "image,label:A," + std::string(name) + "\nx,1,0.5\n"),
        nullptr);
    CHECK(table.findings == std::vector<std::string>{"A"});
  }
  // Of anybody's table: no reason, or a row that is only half filled.
  const auto r = read_predictions(
      folder.write("q.csv", "image,label:A,prob:A\nx,1,0.5\ny,0,\n"), nullptr);
  CHECK((score(r).images == 1 && score(r).damaged == 0 &&
         score(r).not_scored == 1));
  CHECK(error_of<DataError>([&] {
          read_predictions(
              folder.write("h.csv",
                           "image,label:A,label:B,prob:A,prob:B\nx,1,0,0.5,\n"),
              nullptr);
        }).find("'' is not a number") != std::string::npos);
}

TEST_CASE("an image of a path has the labels of a manifest's name") {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.findings = {"A"};
  manifest.images = {"x.png", "b/y.png", "c/y.png"};
  manifest.labels = {1, 0, 1};
  for (uint32_t row = 0; row < 3; ++row)
    manifest.rows[manifest.images[row]] = row;
  manifest.path = "m.csv";
  const auto read = [&](const std::string& rows) {
    return read_predictions(folder.write("p.csv", "image,prob:A\n" + rows),
                            &manifest);
  };
  const Predictions p = read("in/x.png,0.5\n/in/b/y.png,0.25\n");
  CHECK(p.images == Strings{"x.png", "b/y.png"});
  CHECK(p.labels == std::vector<float>{1, 0});
  const auto refused = [&](const std::string& rows) {
    return error_of<DataError>([&] { read(rows); });
  };
  CHECK(refused("y.png,0.5\n").find("may be") != std::string::npos);
  CHECK(refused("a/y.png,0.5\n").find("none of its images is in m.csv") !=
        std::string::npos);
  CHECK(refused("x.png,0.5\nin/x.png,0.5\n").find("same image as line 2") !=
        std::string::npos);
}

TEST_CASE("means skip what is not defined") {
  Predictions p;
  p.findings = {"A", "B"};
  p.images = {"1", "2", "3"};
  p.labels = {1, 0, 0, 0, 1, 0};
  p.probabilities = {0.9, 0.5, 0.1, 0.4, 0.2, 0.3};
  const Scores s = score(p);
  CHECK(*s.auroc[0] == Approx(1.0));
  CHECK_FALSE(s.auroc[1]);
  CHECK(*s.mean_auroc == Approx(1.0));
}

TEST_CASE("a mean, which also chooses checkpoints, is of frequent findings") {
  // Of 40 images the first ones have a finding. A score of `turned` positives
  // is the lowest.
  struct Finding {
    const char* name;
    size_t positives, turned;
  };
  const auto scored = [](const std::vector<Finding>& findings,
                         size_t images_of_patient = 1) {
    Predictions p;
    for (const auto& f : findings) p.findings.emplace_back(f.name);
    for (size_t i = 0; i < 40; ++i) {
      p.images.push_back(std::to_string(100 + i));
      p.patients.push_back(std::to_string(i / images_of_patient));
      for (const auto& f : findings) {
        const bool positive = i < f.positives;
        p.labels.push_back(positive ? 1.0f : 0.0f);
        p.probabilities.push_back(i < f.turned ? 0.1 : positive ? 0.9 : 0.5);
      }
    }
    return score(p);
  };
  const Scores s = scored({{"Rare", 9, 0},
                           {"Frequent", 10, 4},
                           {"Nearly always", 31, 31},
                           {"No Finding", 20, 20}});
  CHECK(*s.mean_auroc == Approx(0.6));
  // A rare finding that rises by chance does not make a better checkpoint.
  CHECK(*scored({{"Rare", 9, 9}, {"Frequent", 10, 4}}).mean_auroc ==
        Approx(0.6));
  // All are rare: the mean is of all that have an AUROC.
  CHECK(*scored({{"Rare", 9, 0}, {"Rarer", 4, 2}, {"None", 0, 0}}).mean_auroc ==
        Approx(0.75));
  // Ten images of four patients are of few.
  CHECK(*scored({{"Of four", 10, 0}, {"Of seven", 20, 10}}, 3).mean_auroc ==
        Approx(0.5));
  CHECK_FALSE(scored({{"None", 0, 0}}).mean_auroc);
}

namespace {

// One image, x, which has the one finding, A.
Manifest manifest_of_x() {
  Manifest manifest;
  manifest.findings = {"A"};
  manifest.images = {"x"};
  manifest.labels = {1};
  manifest.rows = {{"x", 0}};
  manifest.path = "m.csv";
  return manifest;
}

}  // namespace

TEST_CASE("images that the manifest does not have are left out") {
  const ScratchFolder folder;
  const Manifest manifest = manifest_of_x();
  const Predictions read = read_predictions(
      folder.write("p.csv", "image,A\ny,0.25\nx,0.5\nz,\n"), &manifest);
  CHECK(read.images == std::vector<std::string>{"x"});
  CHECK(read.probabilities == std::vector<double>{0.5});
  CHECK(read.labels == std::vector<float>{1});
}

TEST_CASE("a table of predictions that does not fit is refused") {
  const ScratchFolder folder;
  const Manifest manifest = manifest_of_x();
  const auto refused = [&](const std::string& text, const Manifest* m) {
    return error_of<DataError>(
        [&] { read_predictions(folder.write("p.csv", text), m); });
  };
  CHECK(refused("image,A\nx,0.5\n", &manifest).empty());
  CHECK(refused("image;A\nx;0.5\n", &manifest).empty());
  CHECK(refused("\xEF\xBB\xBFimage\tA\r\nx\t0.5\r\n", &manifest).empty());
  CHECK(refused("image;A\nx;0,5\n", &manifest)
            .find("'0,5' is not a number. Hint: probabilities are decimals "
                  "with a point") != std::string::npos);
  CHECK(refused("image,B\nx,0.5\n", &manifest)
            .find("no column for a finding of m.csv (A)") != std::string::npos);
  CHECK(refused("image,A\ny,0.5\n", &manifest)
            .find("p.csv:2: none of its images is in m.csv, as y. Hint: is it "
                  "the right manifest?") != std::string::npos);
  CHECK(refused("", &manifest).find("p.csv:1: the file is empty") !=
        std::string::npos);
  CHECK(refused("image,A\nx,high\n", &manifest)
            .find("p.csv:2: 'high' is not a number") != std::string::npos);
  CHECK(refused("image,A\nx,nan\n", &manifest).find("not finite") !=
        std::string::npos);
  CHECK(refused("image,A\nx,1\nx,1\n", &manifest)
            .find("p.csv:3: the image of this row appears twice, first on line "
                  "2") != std::string::npos);
  CHECK(refused("image,A\nx,\n", &manifest).find("no image has a score") !=
        std::string::npos);
  CHECK(
      refused("image,prob:Effusion,prob:pleural effusion\nx,1,1\n", nullptr)
          .find(
              "finding 'pleural effusion' appears twice, also as 'Effusion'") !=
      std::string::npos);
  CHECK(refused("image,label:A,prob:A,prob_A\nx,1,1,1\n", nullptr)
            .find("finding 'A' appears twice") != std::string::npos);
  CHECK(refused("image,A\nx,1\n", nullptr).find("--manifest") !=
        std::string::npos);
  CHECK(refused("image,A\nM\xFCller,1\n", &manifest)
            .find("p.csv:2: is not UTF-8") != std::string::npos);
  CHECK(refused("image,A\n", &manifest).find("no rows") != std::string::npos);
}

TEST_CASE("a column that counts and is there twice is refused") {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.findings = {"Effusion", "Mass"};
  manifest.images = {"x"};
  manifest.labels = {1, 0};
  manifest.rows = {{"x", 0}};
  const auto refused = [&](const std::string& header, const Manifest* m) {
    const auto columns = std::ranges::count(header, ',');
    std::string row = "x";
    for (int c = 0; c < columns; ++c) row += ",1";
    return error_of<DataError>([&] {
      read_predictions(folder.write("p.csv", header + "\n" + row + "\n"), m);
    });
  };
  struct Case {
    const char *header, *text;
    bool with_manifest = true;
  };
  for (const auto& c : std::initializer_list<Case>{
           {"image,Effusion,Effusion,Mass",
            "p.csv:1: finding 'Effusion' appears twice"},
           {"image,Effusion,effusion",
            "finding 'effusion' appears twice, also as 'Effusion'"},
           {"image,Mass,Effusion,Pleural Effusion",
            "finding 'Pleural Effusion' appears twice, also as 'Effusion'"},
           {"image,prob:Mass,prob_Mass", "finding 'Mass' appears twice"},
           {"image,Mass,label:Mass,label:Mass",
            "finding 'Mass' appears twice. Hint: each finding has one column "
            "of labels"},
           {"image,label:Mass,label:Mass,prob:Mass",
            "finding 'Mass' appears twice. Hint: each finding has one column "
            "of labels",
            false},
           {"image,label:Mass,label:mass,prob:Mass",
            "finding 'mass' appears twice, also as 'Mass'", false},
           {"image,Image Index,Mass",
            "columns 'image' and 'Image Index' are both in the header"},
           {"Path,image,Mass", "columns 'Path' and 'image' are both"},
           {"image,Mass,image", "column 'image' is in the header twice"},
           {"image,Mass,reason,reason",
            "column 'reason' is in the header twice"}}) {
    INFO(c.header);
    CHECK(
        refused(c.header, c.with_manifest ? &manifest : nullptr).find(c.text) !=
        std::string::npos);
  }
  // A column that we do not read may be there twice, and plain columns where
  // others are of probabilities.
  for (const char* header :
       {"image,note,note,Mass", "image,Edema,edema,Mass", "Path,Mass,,",
        "x,y,y,Mass", "image,Mass,mass,prob:Mass", "Image Index,Mass,Image"})
    CHECK(refused(header, &manifest).empty());
}

namespace {
// Two findings and what else a table may hold.
Predictions of_names(const std::vector<std::string>& findings) {
  Predictions p;
  p.findings = findings;
  p.images = {"1", "2", "3", "4"};
  p.labels = {1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1};
  p.probabilities = {0.9, 0.1, 0.3, 0.2, 0.8, 0.6,
                     0.7, 0.7, 0.2, 0.1, 0.3, 0.9};
  return p;
}
}  // namespace

TEST_CASE(
    "No Finding is in no mean, and neither it nor a device is a disease") {
  const Scores s = score(of_names({"Edema", "No Finding", "Support Devices"}));
  CHECK(*s.auroc[0] == Approx(1.0));
  CHECK(*s.mean_auroc == Approx((*s.auroc[0] + *s.auroc[2]) / 2));
  CHECK(*s.any_finding_auroc_mean_logit == Approx(*s.auroc[0]));
  CHECK_FALSE(score(of_names({"No Finding", "Support Devices", "no_finding"}))
                  .any_finding_auroc_mean_logit);
}

TEST_CASE("only eval.findings are scored") {
  const Predictions p = of_names({"A", "B", "C"});
  const Scores s = score(p, {"C", "A"});
  CHECK(s.findings == std::vector<std::string>{"C", "A"});
  CHECK(s.auroc[1] == score(p).auroc[0]);
  CHECK(*s.mean_auroc == Approx((*s.auroc[0] + *s.auroc[1]) / 2));
  CHECK(error_of<ConfigError>([&] {
          score(p, {"D"});
        }).find("no finding 'D'") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          score(p, {"A", "A"});
        }).find("appears twice") != std::string::npos);
}

TEST_CASE(
    "findings of a manifest and columns of a predictions table meet by name") {
  const ScratchFolder folder;
  Manifest manifest;
  manifest.findings = {"No Finding", "Pleural Effusion", "Edema"};
  manifest.images = {"x"};
  manifest.labels = {0, 1, 0};
  manifest.rows = {{"x", 0}};
  const auto p = read_predictions(
      folder.write("p.csv",
                   "image,Pleural Effusion,prob:edema,prob:Effusion,prob:Mass\n"
                   "x,0.1,0.2,0.3,0.4\n"),
      &manifest);
  CHECK(p.findings == std::vector<std::string>{"Pleural Effusion", "Edema"});
  CHECK(p.probabilities == std::vector<double>{0.3, 0.2});
  CHECK(p.labels == std::vector<float>{1, 0});
  CHECK(score(p, {"effusion"}).findings ==
        std::vector<std::string>{"Pleural Effusion"});
}

TEST_CASE(
    "an image without a 1 and with a blank says nothing about any finding") {
  Predictions p;
  p.findings = {"A", "B"};
  p.images = {"1", "2", "3"};
  p.labels = {1, NAN, 0, 0, 0, NAN};
  p.probabilities = {0.8, 0.7, 0.1, 0.2, 0.99, 0.99};
  // The third is left out.
  CHECK(*score(p).any_finding_auroc_mean_logit == Approx(1.0));
}

TEST_CASE("an image without a prediction is in no figure of any finding") {
  Predictions p;
  p.findings = {"A"};
  p.images = {"1", "2", "3"};
  p.labels = {1, 0, 1};
  p.probabilities = {0.8, 0.2, NAN};
  CHECK(score(p).probabilities);
  CHECK(*score(p).any_finding_auroc_mean_logit == Approx(1.0));
}

TEST_CASE("scores that are no probabilities have no mean logit") {
  Predictions p = of_names({"A", "No Finding", "Support Devices"});
  CHECK(score(p).any_finding_auroc_mean_logit);
  p.probabilities[0] = 1.7;
  const Scores s = score(p);
  CHECK_FALSE(s.probabilities);
  CHECK_FALSE(s.any_finding_auroc_mean_logit);
  CHECK(s.mean_auroc);
}
