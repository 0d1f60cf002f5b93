// By itself, as the kernel's header and the C library's exclude each other.
#pragma once

#include <cstdint>

namespace chexnet {

// What a TCP connection has taken in; 0 where the kernel does not count it.
uint64_t received_bytes(int socket);

}  // namespace chexnet
