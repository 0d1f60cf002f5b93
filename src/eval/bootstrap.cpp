// Resamples are drawn and summed up kLanes at a time; a batch of lanes is what
// a thread takes.
#include "chexnet/eval/bootstrap.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "chexnet/core/parallel.hpp"
#include "chexnet/core/philox.hpp"
#include "resample_lanes.hpp"

namespace chexnet {
namespace {

constexpr size_t kMostCases = 4'000'000;  // sums of 32 bits hold them

void draw(uint32_t patients, uint64_t seed, size_t batch, DrawCounts& counts) {
  counts.assign(patients * kLanes, 0);
  for (size_t l = 0; l < kLanes; ++l) {
    Random random(seed, Purpose::kBootstrap, batch * kLanes + l);
    for (uint32_t i = 0; i < patients; ++i)
      ++counts[random.below(patients) * kLanes + l];
  }
}

// Calls batch(b, counts) for each batch of kLanes resamples, and tells the
// progress from the calling thread.
template <class Batch>
void for_batches(const BootstrapOptions& options, const Batch& batch) {
  const size_t batches = (options.resamples + kLanes - 1) / kLanes;
  std::atomic<size_t> done = 0;
  const auto tell = [&] {
    if (options.progress)
      options.progress(static_cast<double>(done) /
                       static_cast<double>(batches));
  };
  const auto counted = [&](size_t b, DrawCounts& counts) {
    batch(b, counts);
    ++done;
  };
  if (options.threads > 1) {
    parallel_for_with<DrawCounts>(batches, options.threads, counted, tell);
    return;
  }
  DrawCounts counts;  // a caller may be one of many threads already
  for (size_t b = 0; b < batches; ++b) {
    counted(b, counts);
    tell();
  }
}

// The same steps over patients instead of cases.
RankedCases by_patient(RankedCases column, const PatientNumbers& patients) {
  for (auto& c : column.cases) c = patients.of_case[c];
  return column;
}

// The patients that have a case, each with the sum of its values.
struct PatientSums {
  std::vector<uint32_t> patients;
  std::vector<double> sums, counts;
};

PatientSums sums_by_patient(const CaseValues& column,
                            const PatientNumbers& patients) {
  assert(column.values.size() == column.cases.size());
  std::vector<double> sums(patients.count), counts(patients.count);
  for (size_t i = 0; i < column.values.size(); ++i) {
    const uint32_t patient = patients.of_case[column.cases[i]];
    sums[patient] += column.values[i];
    ++counts[patient];
  }
  PatientSums result;
  for (uint32_t p = 0; p < patients.count; ++p) {
    if (counts[p] == 0) continue;
    result.patients.push_back(p);
    result.sums.push_back(sums[p]);
    result.counts.push_back(counts[p]);
  }
  return result;
}

double mean_of_lane(const PatientSums& column, const DrawCounts& drawn,
                    size_t lane) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < column.patients.size(); ++i) {
    const double times = drawn[column.patients[i] * kLanes + lane];
    sum += times * column.sums[i];
    count += times * column.counts[i];
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

PatientNumbers number_patients(std::span<const std::string> patients) {
  std::vector<uint32_t> order(patients.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(
      order, {}, [&](uint32_t i) -> const std::string& { return patients[i]; });
  PatientNumbers numbers;
  numbers.of_case.resize(patients.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || patients[order[i]] != patients[order[i - 1]]) ++numbers.count;
    numbers.of_case[order[i]] = numbers.count - 1;
  }
  return numbers;
}

bool has_enough_patients(const RankedCases& column,
                         const PatientNumbers& patients) {
  std::set<uint32_t> positive, negative;
  uint32_t at = 0;
  const auto add_until = [&](uint32_t end, std::set<uint32_t>& into) {
    for (; at < end; ++at)
      if (into.size() < kLeastPatients)
        into.insert(patients.of_case[column.cases[at]]);
  };
  for (const auto& step : column.steps) {
    add_until(step.tied_end, negative);
    add_until(step.positives_end, positive);
  }
  add_until(static_cast<uint32_t>(column.cases.size()), negative);
  return positive.size() >= kLeastPatients && negative.size() >= kLeastPatients;
}

bool has_enough_patients(const CaseValues& column,
                         const PatientNumbers& patients) {
  std::set<uint32_t> all;
  for (const auto c : column.cases) all.insert(patients.of_case[c]);
  return all.size() >= kLeastPatients;
}

PatientNumbers one_patient_per_case(size_t cases) {
  PatientNumbers numbers;
  numbers.of_case.resize(cases);
  std::iota(numbers.of_case.begin(), numbers.of_case.end(), 0u);
  numbers.count = static_cast<uint32_t>(cases);
  return numbers;
}

std::vector<Replicates> bootstrap(std::span<const RankedCases> columns,
                                  const PatientNumbers& patients,
                                  const BootstrapOptions& options) {
  assert(patients.of_case.size() <= kMostCases);
  if (patients.count < 2) {  // drawn again and again it is the same one
    const std::vector<double> none(options.resamples,
                                   std::numeric_limits<double>::quiet_NaN());
    return std::vector<Replicates>(columns.size(), {none, none});
  }
  std::vector<RankedCases> ranked;
  for (const auto& column : columns)
    ranked.push_back(by_patient(column, patients));
  std::vector<Replicates> replicates(columns.size());
  for (auto& r : replicates) {
    r.auroc.resize(options.resamples);
    r.average_precision.resize(options.resamples);
  }
  const auto batch = [&](size_t b, DrawCounts& counts) {
    draw(patients.count, options.seed, b, counts);
    const size_t first = b * kLanes;
    const size_t lanes = std::min(kLanes, options.resamples - first);
    for (size_t c = 0; c < ranked.size(); ++c) {
      const LaneFigures f = figures_of_lanes(ranked[c], counts);
      std::copy_n(f.auroc, lanes, &replicates[c].auroc[first]);
      std::copy_n(f.average_precision, lanes,
                  &replicates[c].average_precision[first]);
    }
  };
  for_batches(options, batch);
  return replicates;
}

std::vector<std::vector<double>> bootstrap_means(
    std::span<const CaseValues> columns, const PatientNumbers& patients,
    const BootstrapOptions& options) {
  std::vector<std::vector<double>> means(
      columns.size(),
      std::vector<double>(options.resamples,
                          std::numeric_limits<double>::quiet_NaN()));
  if (patients.count < 2) return means;
  std::vector<PatientSums> sums;
  for (const auto& column : columns)
    sums.push_back(sums_by_patient(column, patients));
  const auto batch = [&](size_t b, DrawCounts& counts) {
    draw(patients.count, options.seed, b, counts);
    const size_t first = b * kLanes;
    const size_t lanes = std::min(kLanes, options.resamples - first);
    for (size_t c = 0; c < columns.size(); ++c)
      for (size_t l = 0; l < lanes; ++l)
        means[c][first + l] = mean_of_lane(sums[c], counts, l);
  };
  for_batches(options, batch);
  return means;
}

std::vector<double> difference(std::span<const double> a,
                               std::span<const double> b) {
  assert(a.size() == b.size());
  std::vector<double> differences(a.size());
  std::ranges::transform(a, b, differences.begin(), std::minus<>());
  return differences;
}

std::vector<double> mean_of(std::span<const std::span<const double>> columns) {
  assert(!columns.empty());
  std::vector<double> means(columns.front().size());
  for (size_t r = 0; r < means.size(); ++r) {
    double sum = 0;
    for (const auto& column : columns) sum += column[r];
    means[r] = sum / static_cast<double>(columns.size());
  }
  return means;
}

std::optional<double> bootstrap_p(std::span<const double> differences) {
  size_t defined = 0, low = 0, high = 0;
  for (const double d : differences) {
    if (std::isnan(d)) continue;
    ++defined;
    if (d <= 0) ++low;
    if (d >= 0) ++high;
  }
  if (defined == 0) return std::nullopt;
  const auto tail = static_cast<double>(std::min(low, high) + 1);
  return std::min(1.0, 2 * tail / static_cast<double>(defined + 1));
}

}  // namespace chexnet
