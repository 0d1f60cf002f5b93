// 16-bit training keeps fp32 masters: of a weight in bf16, an update below
// 1/512 of it would be rounded away.
#include "chexnet/model/network_options.hpp"

#include <cassert>

namespace chexnet {

at::ScalarType master_type(Precision precision) {
  return precision == Precision::kFp64 ? at::kDouble : at::kFloat;
}
at::ScalarType compute_type(Precision precision) {
  if (precision == Precision::kBf16) return at::kBFloat16;
  if (precision == Precision::kFp16) return at::kHalf;
  return master_type(precision);
}

Arithmetic arithmetic_of(Precision precision) {
  assert(precision != Precision::kFp16);
  if (precision == Precision::kFp64) return Arithmetic::kFp64;
  return precision == Precision::kBf16 ? Arithmetic::kBf16 : Arithmetic::kFp32;
}

bool engine_may_compute(const NetworkOptions& options) {
  return options.own_engine && options.device.is_cpu() &&
         options.precision != Precision::kFp16;
}

at::MemoryFormat weight_format(const NetworkOptions& options) {
  return engine_may_compute(options) ? at::MemoryFormat::Contiguous
                                     : activation_format(options.precision);
}

at::MemoryFormat activation_format(Precision precision) {
  return precision == Precision::kFp64 ? at::MemoryFormat::Contiguous
                                       : at::MemoryFormat::ChannelsLast;
}

}  // namespace chexnet
