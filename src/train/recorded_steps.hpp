// Steps of training that a device gets as one launch each. After a few steps
// one is recorded, compared with two that are not, and launched again for every
// batch that lies where the recorded one lay:
//
//   steps     1 .. 3    4              5              6      7
//             eager     recorded for   recorded for   the    the    ..
//                       one buffer     the other      first  second
//
// Two recordings, as the host is one step ahead of the device: the host still
// reads the figures of one recording while the other is launched. Every rank
// decides alike, as every rank's batches have the same shapes in turn.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/cuda_library.hpp"

namespace chexnet {

class RecordedSteps {
 public:
  // Launches a step piece by piece; returns its figures.
  using Compute = std::function<at::Tensor()>;
  // State that every step changes, and a wait for the steps before.
  struct Training {
    std::vector<at::Tensor> state;
    std::function<void()> settle;
  };
  // A recorder that is null records nothing. With `required`, a step that
  // cannot be recorded is a DeviceError.
  RecordedSteps(std::unique_ptr<Recorder> recorder, Communicator& comm,
                Training training, bool required);

  // Launches a step on `inputs` (undefined tensors may be among them); returns
  // its figures, on the device.
  at::Tensor run(const std::vector<at::Tensor>& inputs, const Compute& compute);
  size_t count() const { return recordings_.size(); }

 private:
  struct Input {
    const void* data = nullptr;
    std::vector<int64_t> sizes;
    bool operator==(const Input&) const = default;
  };
  using Inputs = std::vector<Input>;
  struct Recording {
    Inputs inputs;
    size_t number = 0;
    at::Tensor figures;
    std::shared_ptr<Communicator::Recorded> waits;
  };
  static Inputs inputs_of(const std::vector<at::Tensor>& tensors);
  std::optional<size_t> next(const Inputs& inputs) const;
  at::Tensor replay(size_t index);
  at::Tensor compute_and_wait(const Compute& compute);
  Recording recorded(const Inputs& inputs, const Compute& compute);
  bool record(const Inputs& inputs, const Compute& compute);
  at::Tensor compared(const Inputs& inputs, const Compute& compute);
  void give_up(const std::string& problem);

  Communicator& comm_;
  Training training_;
  bool required_;
  int eager_ = 0;
  std::vector<Recording> recordings_;
  std::unique_ptr<Recorder> recorder_;  // null: nothing is recorded any more
  std::optional<size_t> last_;          // of the step before
};

}  // namespace chexnet
