// A part of n' values with mean m' and squared deviations D' joins n, m and D
// (Chan, Golub and LeVeque):
//
//   d = m' - m,  D += D' + d^2 n n' / (n + n'),  m += d n' / (n + n')
//
// Every rank adds the same parts in the same order, so all get the same bits.
#include "chexnet/comm/moments.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace chexnet {

void combine_moments(Communicator& comm, std::span<double> mean,
                     std::span<double> deviations, double& count) {
  const size_t channels = mean.size();
  std::vector<double> own(mean.begin(), mean.end());
  own.insert(own.end(), deviations.begin(), deviations.end());
  own.push_back(count);
  const auto parts = comm.all_gather(std::as_bytes(std::span(own)));
  std::ranges::fill(mean, 0.0);
  std::ranges::fill(deviations, 0.0);
  count = 0;
  for (const auto& part : parts) {
    std::memcpy(own.data(), part.data(), part.size());
    const double more = own.back(), total = count + more;
    for (size_t c = 0; c < channels; ++c) {
      const double delta = own[c] - mean[c];
      deviations[c] +=
          own[channels + c] + delta * delta * (count * more / total);
      mean[c] += delta * (more / total);
    }
    count = total;
  }
}

}  // namespace chexnet
