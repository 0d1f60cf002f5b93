// Who ends the others, and when:
//
//   rank throws -> ~RankWorld sees the exception, leaves the handlers
//               -> main logs the error, notes it with the run, aborts all ranks
//                  with its code
//   rank ends   -> ~RankWorld empties the handlers: nothing that follows may
//                  end others
//
// The destructor cannot abort by itself: during unwinding nobody knows yet
// which error it is, and its code becomes the exit code of all ranks.
#include "chexnet/train/run/rank_world.hpp"

#include <cassert>
#include <exception>
#include <utility>

namespace chexnet {

RankWorld::RankWorld(int parent_exit_code)
    : parent_exit_code_(parent_exit_code),
      exceptions_before_(std::uncaught_exceptions()) {}

RankWorld::RankWorld(std::unique_ptr<Communicator> comm,
                     FailureHandlers& handlers, std::function<void(int)> abort)
    : comm_(std::move(comm)),
      handlers_(&handlers),
      exceptions_before_(std::uncaught_exceptions()) {
  assert(comm_ != nullptr);
  handlers.abort = std::move(abort);
}

RankWorld::RankWorld(RankWorld&& other) noexcept
    : parent_exit_code_(other.parent_exit_code_),
      comm_(std::move(other.comm_)),
      handlers_(std::exchange(other.handlers_, nullptr)),
      exceptions_before_(other.exceptions_before_) {}

RankWorld::~RankWorld() {
  if (handlers_ == nullptr || std::uncaught_exceptions() > exceptions_before_)
    return;
  *handlers_ = {};
}

Communicator& RankWorld::comm() const {
  assert(comm_ != nullptr);
  return *comm_;
}

std::unique_ptr<Communicator> RankWorld::take_comm() {
  assert(comm_ != nullptr);
  return std::move(comm_);
}

}  // namespace chexnet
