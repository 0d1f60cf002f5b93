// How the fake NCCL combines the ranks' values, in each type.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>

#include "chexnet/comm/half.hpp"
#include "fakes/fake_nccl/rendezvous.hpp"

namespace fake_nccl {

// The types as their arithmetic sees them: sums of 16-bit floats are formed in
// fp32 and rounded once.
struct Fp16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};
inline double wide(double v) { return v; }
inline float wide(float v) { return v; }
inline float wide(Fp16 v) { return chexnet::from_fp16(v.bits); }
inline float wide(Bf16 v) { return chexnet::from_bf16(v.bits); }
inline void store(double& to, double v) { to = v; }
inline void store(float& to, float v) { to = v; }
inline void store(Fp16& to, float v) { to.bits = chexnet::to_fp16(v); }
inline void store(Bf16& to, float v) { to.bits = chexnet::to_bf16(v); }

inline size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return 8;
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

template <class T>
inline void combine(Rendezvous& meeting, int ranks, void* to, size_t count,
                    ncclRedOp_t op) {
  for (size_t i = 0; i < count; ++i) {
    decltype(wide(T{})) sum = 0;
    for (int r = 0; r < ranks; ++r)
      sum += wide(reinterpret_cast<const T*>(meeting.slot(r))[i]);
    if (op == ncclAvg) sum /= static_cast<decltype(sum)>(ranks);
    store(static_cast<T*>(to)[i], sum);
  }
}

inline void combine(Rendezvous& meeting, int ranks, void* to, size_t count,
                    ncclDataType_t type, ncclRedOp_t op) {
  if (type == ncclFloat64)
    return combine<double>(meeting, ranks, to, count, op);
  if (type == ncclFloat32) return combine<float>(meeting, ranks, to, count, op);
  if (type == ncclFloat16) return combine<Fp16>(meeting, ranks, to, count, op);
  combine<Bf16>(meeting, ranks, to, count, op);
}

}  // namespace fake_nccl
