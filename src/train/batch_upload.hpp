// Batches on their way from the host to the device. A separate CUDA stream
// fills two buffers there in turn, so a batch travels while the one before is
// computed:
//
//   copies    [ batch k ][ batch k+1 ]         [ batch k+2 ]
//   computes             [ step k       ][ step k+1      ][ step k+2
//
// The order is kept by events on the device. One thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <array>
#include <optional>

#include "batch_tensors.hpp"

namespace chexnet {

class BatchUpload {
 public:
  // Nothing is copied where `device` is a CPU.
  explicit BatchUpload(at::Device device);
  // The batch on the device, ordered on the compute stream: valid for what is
  // launched before the call after the next. The host's images stay in use
  // until wait(), its labels and weights do not.
  BatchTensors upload(const BatchTensors& host);
  // Returns when the images of the last upload() may be overwritten.
  void wait();

 private:
  struct Buffer {
    BatchTensors there;  // on the device
    BatchTensors here;   // pinned; without images, which the loader pinned
    std::optional<c10::Event> copied, computed;
  };
  // True where the buffer's memory is new.
  bool fit(Buffer& buffer, const BatchTensors& host) const;
  at::Device device_;
  std::optional<c10::Stream> copies_;
  std::array<Buffer, 2> buffers_;
  size_t next_ = 0;
};

}  // namespace chexnet
