// The element types that travel: in tensors of a file and in buffers between
// ranks.
#pragma once

#include <cstddef>

namespace chexnet {

enum class ElementType { kF64, kF32, kF16, kBF16, kI64, kU8 };
size_t element_bytes(ElementType type);

}  // namespace chexnet
