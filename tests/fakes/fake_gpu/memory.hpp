// Memory of a fake GPU that the host cannot touch: one file mapped twice.
// Tensors hold addresses of a mapping without any rights; a kernel translates
// them to the other mapping, which nobody else knows. No rights ever change, so
// threads of several streams need no agreement about them.
//
//   tensor.data_ptr()  -> [ no rights    ]  a host access ends the process
//                                |  same pages
//   kernel_view(...)   -> [ read / write ]  threads of streams only
#pragma once

#include <cstddef>

namespace fake_gpu {

// FAKE_GPU_MEMORY_MB of each device (default 2048); pages count once written.
size_t memory_bytes();

// Where device memory begins for tensors; it is mapped at the first call.
std::byte* device_memory(int device);

bool is_device_address(const void* address);
// What a kernel uses instead of a device address; another address is itself.
void* kernel_view(const void* address);

// From now on a host access to device memory says which, on stderr, and ends
// the process with kHostAccess. Other faults go on to whoever had them.
void report_host_accesses();
constexpr int kHostAccess = 97;

}  // namespace fake_gpu
