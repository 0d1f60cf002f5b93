// Moments of the union of all ranks' pixels against those of one list.
#include "chexnet/comm/moments.hpp"

#include <array>
#include <mutex>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

double deviations_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

}  // namespace

TEST_CASE(
    "moments of ranks with unequal counts are those of all their pixels") {
  // Far from zero, where a difference of large sums would lose digits.
  const std::vector<std::vector<double>> of_rank = {
      {1e6 + 1}, {1e6 - 2, 1e6 + 5, 1e6 + 6}, {1e6 + 9, 1e6 - 7}};
  std::vector<double> all;
  for (const auto& values : of_rank)
    all.insert(all.end(), values.begin(), values.end());

  std::mutex mutex;
  ThreadWorld world(3);
  world.run([&](Communicator& comm) {
    const auto& own = of_rank[static_cast<size_t>(comm.rank())];
    // The second channel has the same pixels with the other sign.
    std::array<double, 2> mean = {mean_of(own), -mean_of(own)};
    std::array<double, 2> deviations = {deviations_of(own), deviations_of(own)};
    auto count = static_cast<double>(own.size());
    combine_moments(comm, mean, deviations, count);
    const std::lock_guard one_rank_at_a_time(mutex);
    CHECK(count == 6);
    CHECK(mean[0] == Approx(mean_of(all)).epsilon(1e-14));
    CHECK(mean[1] == Approx(-mean_of(all)).epsilon(1e-14));
    CHECK(deviations[0] == Approx(deviations_of(all)).epsilon(1e-9));
    CHECK(deviations[1] == Approx(deviations_of(all)).epsilon(1e-9));
  });
}
