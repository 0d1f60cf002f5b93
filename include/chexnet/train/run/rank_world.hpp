// This process among the ranks of a command: one of them, or the parent that
// started them.
//
// A rank that fails must not leave the others waiting for it until a deadline.
// So while there are others the program's FailureHandlers are set, and main
// calls them once it has told the error. The object sets them and takes them
// back: where it goes away normally the world has ended well; where an
// exception passes it they stay, for main to use. Main thread; not after the
// handlers' end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// What main does about an error beside telling it; each may be empty.
struct FailureHandlers {
  std::function<void(int exit_code)> abort;  // ends all ranks with this code
  // Keeps the error with the run that ended by it.
  std::function<void(int exit_code, const std::string& text)> note_error;
};

class RankWorld {
 public:
  // A parent whose ranks have ended with `exit_code`.
  explicit RankWorld(int parent_exit_code);
  // A rank. `abort` is set in `handlers` for as long as the world lives; empty
  // for one rank.
  RankWorld(std::unique_ptr<Communicator> comm, FailureHandlers& handlers,
            std::function<void(int)> abort);
  RankWorld(RankWorld&& other) noexcept;
  RankWorld& operator=(RankWorld&&) = delete;
  RankWorld(const RankWorld&) = delete;
  RankWorld& operator=(const RankWorld&) = delete;
  ~RankWorld();

  // Set in a parent, which has nothing left to do but to return it.
  std::optional<int> parent_exit_code() const { return parent_exit_code_; }

  // Of a rank, until it is taken.
  Communicator& comm() const;
  // For whoever wraps it. Let it go before the world does: it ends MPI.
  std::unique_ptr<Communicator> take_comm();

 private:
  std::optional<int> parent_exit_code_;
  std::unique_ptr<Communicator> comm_;
  FailureHandlers* handlers_ = nullptr;  // null in a parent and after a move
  int exceptions_before_;                // on their way when the world began
};

}  // namespace chexnet
