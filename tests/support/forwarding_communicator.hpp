// A communicator around another, for tests that change one thing of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// What must be there is passed on to `inner`, which outlives it.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}
  const World& world() const override { return inner_.world(); }
  void begin_step() override { inner_.begin_step(); }
  void start(const GradientBuffer& buffer) override { inner_.start(buffer); }
  void poll() override { inner_.poll(); }
  void finish() override { inner_.finish(); }
  void gather(const double* own, double* all, size_t count) override {
    inner_.gather(own, all, count);
  }
  void set_compression(GradientCompression compression) override {
    inner_.set_compression(compression);
  }
  void all_reduce(std::span<double> values, ReduceOp op) override {
    inner_.all_reduce(values, op);
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    inner_.broadcast(bytes, root);
  }
  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) override {
    return inner_.all_gather(bytes);
  }
  void barrier() override { inner_.barrier(); }
  std::string description() const override { return inner_.description(); }

 private:
  Communicator& inner_;
};

}  // namespace chexnet
