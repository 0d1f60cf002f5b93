#include "chexnet/eval/subgroups.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "eval/auroc.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

using Strings = std::vector<std::string>;

Strings sexes(size_t cases) {
  Strings values;
  for (size_t i = 0; i < cases; ++i)
    values.push_back(i % 10 == 0 ? "" : (i % 3 == 0 ? "F" : "M"));
  return values;
}

// Of one finding.
Subgroups subgroups_of(const std::vector<double>& scores,
                       const std::vector<float>& labels, const Strings& values,
                       const PatientNumbers& patients,
                       const BootstrapOptions& options) {
  const std::vector<LabeledScores> one = {{scores, labels}};
  return chexnet::subgroups_of(one, values, patients, options).front();
}

}  // namespace

TEST_CASE("a subgroup has the figures of its images alone") {
  const SyntheticCases cases;
  const Strings values = sexes(400);
  const auto patients = number_patients(cases.patients);
  const BootstrapOptions options{.resamples = 500, .seed = 1};
  const auto result =
      subgroups_of(cases.a, cases.labels, values, patients, options);
  REQUIRE(result.groups.size() == 2);
  CHECK(result.unknown == 40);
  std::vector<double> scores;
  std::vector<float> labels;
  for (size_t i = 0; i < 400; ++i)
    if (values[i] == "F") {
      scores.push_back(cases.a[i]);
      labels.push_back(cases.labels[i]);
    }
  const Subgroup& f = result.groups[0];
  CHECK(f.value == "F");
  CHECK(f.images == scores.size());
  CHECK(f.positives + f.negatives == f.images);
  CHECK(f.patients <= f.images);
  CHECK(f.auroc == auroc(scores, labels));
  REQUIRE(f.interval);
  CHECK(f.interval->interval.low < *f.auroc);
  CHECK(f.interval->interval.high > *f.auroc);
}

TEST_CASE("of two groups each one's gap is the other's with its sign turned") {
  const SyntheticCases cases;
  const auto patients = number_patients(cases.patients);
  const auto groups = subgroups_of(cases.a, cases.labels, sexes(400), patients,
                                   {.resamples = 500})
                          .groups;
  REQUIRE((groups[0].gap && groups[1].gap && groups[0].gap_interval));
  CHECK(*groups[0].gap == Approx(*groups[0].auroc - *groups[1].auroc));
  CHECK(*groups[0].gap == Approx(-*groups[1].gap));
  CHECK(groups[0].gap_interval->interval.low ==
        Approx(-groups[1].gap_interval->interval.high));
}

TEST_CASE("a finding's subgroups do not depend on the findings beside it") {
  const SyntheticCases cases;
  const auto patients = number_patients(cases.patients);
  const BootstrapOptions options{.resamples = 200, .threads = 2};
  const std::vector<LabeledScores> both = {{cases.b, cases.labels},
                                           {cases.a, cases.labels}};
  const auto together =
      chexnet::subgroups_of(both, sexes(400), patients, options);
  const auto alone =
      subgroups_of(cases.a, cases.labels, sexes(400), patients, options);
  REQUIRE(together.size() == 2);
  for (size_t g = 0; g < 2; ++g) {
    const Subgroup& one = together[1].groups[g];
    CHECK(one.auroc == alone.groups[g].auroc);
    CHECK(one.gap_interval->interval == alone.groups[g].gap_interval->interval);
  }
  CHECK(together[0].groups[0].auroc != together[1].groups[0].auroc);
}

TEST_CASE("a group of one class has neither AUROC nor gap") {
  const std::vector<double> scores = {1, 2, 3, 4};
  const std::vector<float> labels = {0, 1, 1, NAN};
  const Strings values = {"x", "x", "y", "z"};
  const auto result = subgroups_of(scores, labels, values,
                                   one_patient_per_case(4), {.resamples = 50});
  REQUIRE(result.groups.size() == 3);
  CHECK((result.groups[0].auroc && result.groups[0].few_positives()));
  CHECK_FALSE(result.groups[0].gap);  // the others have no negative
  CHECK_FALSE(result.groups[1].auroc);
  CHECK_FALSE(result.groups[1].interval);
  CHECK(result.groups[2].images == 0);
  CHECK_FALSE(result.largest_gap);
}

TEST_CASE("the largest gap is between groups with ten positives") {
  // x and y are told apart, z the wrong way round.
  std::vector<double> scores;
  std::vector<float> labels;
  Strings values;
  for (int i = 0; i < 60; ++i) {
    const bool positive = i % 2 == 0, wrong = i >= 40;
    scores.push_back(positive == wrong ? 0 : 1);
    labels.push_back(positive ? 1.0f : 0.0f);
    values.push_back(i < 20 ? "x" : (i < 40 ? "y" : "z"));
  }
  const auto gap = [&] {
    return subgroups_of(scores, labels, values, one_patient_per_case(60),
                        {.resamples = 64})
        .largest_gap;
  };
  CHECK(gap() == 1);
  labels[58] = NAN;  // z's tenth positive
  CHECK(gap() == 0);
}

TEST_CASE("groups are in the order of their numbers") {
  const std::vector<double> scores(4, 0.5);
  const std::vector<float> labels = {0, 1, 0, 1};
  const Strings values = {"65+", "5-17", "PA", "18-39"};
  const auto groups = subgroups_of(scores, labels, values,
                                   one_patient_per_case(4), {.resamples = 1})
                          .groups;
  Strings names;
  for (const auto& group : groups) names.push_back(group.value);
  CHECK(names == Strings{"5-17", "18-39", "65+", "PA"});
}

TEST_CASE("a column with too many values is refused") {
  const std::vector<double> scores(60, 0.5);
  const std::vector<float> labels(60, 0);
  Strings values;
  for (int i = 0; i < 60; ++i) values.push_back("patient " + std::to_string(i));
  CHECK(error_of<DataError>([&] {
          subgroups_of(scores, labels, values, one_patient_per_case(60), {});
        }).find("more than 50 values") != std::string::npos);
}

TEST_CASE("ages are named by bands") {
  const std::vector<float> ages = {0, 17.9f, 18, 64, 65, 120, NAN, -1, 412};
  const std::vector<int> from = {18, 40, 65};
  CHECK(age_bands(ages, from) ==
        Strings{"0-17", "0-17", "18-39", "40-64", "65+", "65+", "", "", ""});
}
