// The allocators of the fake GPU. Device memory is kept for reuse as
// PyTorch's CUDA allocator keeps it: what is freed goes to the next tensor of
// the same stream at once, although kernels that use it may not have run yet;
// another stream gets it never. So a tensor that a second stream uses must be
// recorded on it, or live until an event says that the stream is done.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <cstddef>

namespace fake_gpu {

c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);
// A copy from or to this pinned memory has just been launched on the current
// stream: the memory is not reused before it is done.
void copied_now(const void* address);

// The memory is not reused before the present work of `stream` is done.
void used_on(const c10::DataPtr& data, const c10::Stream& stream);
// A larger piece with the old one's bytes.
void resize_storage(const c10::Storage& storage, size_t bytes);
// Separate memory for graphs. Memory taken from now on is of `pool`, 0 = of no
// graph; a released pool's free memory is everybody's.
int new_pool();
void take_from_pool(int pool);
void release_pool(int pool);
// Of the present device: the bytes that tensors hold, the most that they held
// at once since the start or restart_peak(), and what they may still take.
size_t bytes_in_use();
size_t peak_bytes();
size_t peak_held_bytes();  // with the gaps between them
size_t free_bytes();
void restart_peak();

}  // namespace fake_gpu
