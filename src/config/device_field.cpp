// A separate file, because the tests link another one instead, with a device
// that only they have.
#include "option_table.hpp"

namespace chexnet {

FieldRef field_ref(std::optional<DeviceKind>& member) {
  return field_ref<DeviceKind>(member);
}

}  // namespace chexnet
