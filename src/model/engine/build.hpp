// For a layer's description of itself, before there is memory: its maps go into
// the plan, with the sizes of its work space.
#pragma once

#include <algorithm>

#include "chexnet/model/engine/flat_parameters.hpp"
#include "chexnet/model/engine/memory_plan.hpp"
#include "kernels/kernels.hpp"

namespace chexnet {

// A map of a whole batch: pixels [images * height * width], one after the
// other.
struct MapShape {
  int images = 0, height = 0, width = 0;
  int64_t pixels() const {
    return static_cast<int64_t>(images) * height * width;
  }
  template <class S>
  size_t bytes(int channels) const {
    return static_cast<size_t>(pixels()) * static_cast<size_t>(channels) *
           sizeof(S);
  }
  // After a 3x3 window of stride 2 and padding 1.
  MapShape halved() const {
    return {images, (height - 1) / 2 + 1, (width - 1) / 2 + 1};
  }
};

// Moments of the plan: forward counts up from 0, backward mirrors it, so the
// backward of moment m is at kTurn - m.
inline constexpr int kTurn = 1 << 20;

template <class S>
struct Build {
  using A = Accumulator<S>;
  const Kernels<S>& kernels;
  const FlatParameters& parameters;
  int threads = 1;        // of the pool that will compute it
  bool training = false;  // the layer that is being described
  bool winograd = false;
  MemoryPlan plan{};
  int moment = 0;  // of the layer being described
  // The most that any pass needs: memory that lives within one pass.
  size_t workspace = 0;
  size_t workspace_of_thread = 0;  // the same of a pass of one thread alone
  size_t kept = 0;                 // bytes that live as long as the network

  void need_workspace(size_t bytes) { workspace = std::max(workspace, bytes); }
  void need_workspace_of_thread(size_t bytes) {
    workspace_of_thread = std::max(workspace_of_thread,
                                   rounded_up(bytes, MemoryPlan::kAlignment));
    need_workspace(workspace_of_thread * static_cast<size_t>(threads));
  }
  // An offset into the kept memory, for Run::kept_at.
  template <class T>
  size_t keep(int64_t count) {
    const size_t at = kept;
    kept += rounded_up(static_cast<size_t>(count) * sizeof(T),
                       MemoryPlan::kAlignment);
    return at;
  }
  // Packed weights of a forward pass. For training they are made anew in the
  // workspace, as weights change; for inference they live as long as the
  // network.
  size_t keep_packed(int64_t elements) {
    return training ? 0 : keep<A>(elements);
  }
  // In use from this layer's forward until its backward, or only now for
  // inference.
  int add_saved(size_t bytes) {
    return plan.add(bytes, moment, training ? kTurn - moment : moment);
  }
};

}  // namespace chexnet
