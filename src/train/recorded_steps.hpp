// Steps of training that a device gets as one launch each. After a few steps
// one is recorded, compared with two that are not, and launched again for every
// batch that lies where the recorded one lay:
//
//   steps     1 .. 3    4              5              6      7
//             eager     recorded for   recorded for   the    the    ..
//                       one buffer     the other      first  second
//
// Two recordings, as the host is one step ahead of the device: what it still
// reads of a step is not of the recording that is launched next. Every rank
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
  // How a step is launched piece by piece, and what it changes.
  struct Step {
    std::function<at::Tensor()> compute;  // returns the step's figures
    std::vector<at::Tensor> state;
    std::function<void()> settle;  // waits for the steps before
  };
  // A recorder that is null records nothing. With `required`, a step that
  // cannot be recorded is a DeviceError.
  RecordedSteps(std::unique_ptr<Recorder> recorder, Communicator& comm,
                bool required);

  // Launches a step on `inputs` (undefined tensors may be among them); returns
  // its figures, on the device.
  at::Tensor run(const std::vector<at::Tensor>& inputs, const Step& step);
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
  at::Tensor compute_and_wait(const Step& step);
  Recording recorded(const Inputs& inputs, const Step& step);
  bool record(const Inputs& inputs, const Step& step);
  at::Tensor compared(const Inputs& inputs, const Step& step);
  void give_up(const std::string& problem);

  Communicator& comm_;
  bool required_;
  int eager_ = 0;
  std::vector<Recording> recordings_;
  std::unique_ptr<Recorder> recorder_;  // null: nothing is recorded any more
  std::optional<size_t> last_;          // of the step before
};

}  // namespace chexnet
