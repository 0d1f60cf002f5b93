// What the tests of heat maps look at: noise, and a network with five findings.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "chexnet/model/network.hpp"

namespace chexnet {

constexpr int64_t kBedFindings = 5;

// The same at each call.
inline at::Tensor noise_images(int64_t n, int64_t size) {
  at::manual_seed(11);
  return at::randint(0, 256, {n, 1, size, size}, at::kByte);
}

// A network whose classifier has a bias.
struct Made {
  Network network;
  Made(const char* arch, NetworkOptions options)
      : network(network_spec(arch), kBedFindings, std::move(options)) {
    Parameters& parameters = network.parameters();
    parameters.initialize(3);
    for (const auto& p : parameters.list())
      if (p.shape.size() == 1 && p.shape[0] == kBedFindings)
        parameters.part(parameters.flat_values(), p).fill_(0.25);
    parameters.refresh_compute_copies();
  }
};

}  // namespace chexnet
