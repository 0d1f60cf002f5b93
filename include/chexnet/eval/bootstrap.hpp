// Intervals by the bootstrap of patients (Efron 1979; whole clusters are drawn
// as in Field and Welsh, "Bootstrapping clustered data", JRSS B 2007). A
// patient's images resemble each other: drawing images would give intervals
// that are too narrow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chexnet/eval/interval.hpp"
#include "chexnet/eval/ranked_cases.hpp"

namespace chexnet {

// The patients of a list of cases, numbered in the order of their names: the
// order of the cases does not matter.
struct PatientNumbers {
  std::vector<uint32_t> of_case;  // [N]
  uint32_t count = 0;
};
PatientNumbers number_patients(std::span<const std::string> patients);
// Each case counts as another patient.
PatientNumbers one_patient_per_case(size_t cases);

// Fewer patients that are positive, or negative, give no interval: resamples of
// so few are too much alike. With 150 negatives, intervals of one positive hold
// the true AUROC in 17 of 100 experiments, of two in 56, of four in 83, of ten
// in 90 (tests/eval/bootstrap_test.cpp).
inline constexpr size_t kLeastPatients = 5;
bool has_enough_patients(const RankedCases& column,
                         const PatientNumbers& patients);

struct BootstrapOptions {
  size_t resamples = 10000;
  uint64_t seed = 0;
  int threads = 1;  // at least one; the figures do not depend on it
  // The calling thread tells it the fraction that is done, 0..1, now and then;
  // empty: nobody is told.
  std::function<void(double)> progress = {};
};

// One finding's figures in each resample; NaN where the resample has no
// positive or no negative.
struct Replicates {
  std::vector<double> auroc, average_precision;  // [resamples]
};

// For each resample as many patients are drawn with replacement as there are,
// and each brings all its cases. The patients of resample r depend on the seed,
// r and the number of patients alone, so all `columns` (findings, models,
// subgroups) of one call, or of calls with equal arguments, see the same ones:
// differences and means of columns are taken resample by resample. Their cases
// are indices into `patients.of_case`; at most 4 million. Equal to the last bit
// on any number of threads and on any machine.
std::vector<Replicates> bootstrap(std::span<const RankedCases> columns,
                                  const PatientNumbers& patients,
                                  const BootstrapOptions& options);

// Values of cases, which are indices into `patients.of_case`.
struct CaseValues {
  std::vector<double> values;   // [n]
  std::vector<uint32_t> cases;  // [n]
};
bool has_enough_patients(const CaseValues& column,
                         const PatientNumbers& patients);
// Of each column the mean of the drawn cases' values in each resample, with the
// draws of bootstrap(): [column][resamples]; NaN where a resample has none.
std::vector<std::vector<double>> bootstrap_means(
    std::span<const CaseValues> columns, const PatientNumbers& patients,
    const BootstrapOptions& options);

// a - b, resample by resample.
std::vector<double> difference(std::span<const double> a,
                               std::span<const double> b);

// The mean of the columns' values in each resample; NaN where one has none.
std::vector<double> mean_of(std::span<const std::span<const double>> columns);

// Two-sided p of "the difference is 0": twice the smaller fraction of resamples
// on one side of 0, with one more on either side, so never 0 (Davison and
// Hinkley, "Bootstrap Methods and their Application", 1997, section 4.2). Empty
// when no resample is defined.
std::optional<double> bootstrap_p(std::span<const double> differences);

}  // namespace chexnet
