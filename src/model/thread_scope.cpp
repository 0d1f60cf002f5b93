#include "thread_scope.hpp"

#include <ATen/Parallel.h>

namespace chexnet {

// LibTorch's number is of the whole process, so it is set back, also when an
// exception ends the scope.
ThreadScope::ThreadScope(int threads) : before_(at::get_num_threads()) {
  at::set_num_threads(threads);
}

ThreadScope::~ThreadScope() { at::set_num_threads(before_); }

}  // namespace chexnet
