// A name of libstdc++ that Debian's archive of it lacks and that files compiled
// before GCC 12 ask for, LibTorch's among them.
#include <condition_variable>
#include <mutex>

extern "C" void chexnet_condition_variable_wait(
    std::condition_variable* condition, std::unique_lock<std::mutex>& lock) {
  condition->wait(lock);
}
asm(".symver chexnet_condition_variable_wait, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
