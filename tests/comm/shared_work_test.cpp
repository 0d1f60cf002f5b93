#include "chexnet/comm/shared_work.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
using namespace std::chrono_literals;

namespace {

using Work = std::function<void(WorkProgress&)>;

// The error of each rank: its code and text.
std::map<int, std::pair<int, std::string>> errors_of(
    int ranks, const std::function<void(Communicator&)>& body) {
  std::map<int, std::pair<int, std::string>> errors;
  std::mutex mutex;
  ThreadWorld(ranks).run([&](Communicator& comm) {
    std::pair<int, std::string> own{0, ""};
    try {
      body(comm);
    } catch (const Error& e) {
      own = {static_cast<int>(e.code()), e.what()};
    }
    const std::lock_guard lock(mutex);
    errors[comm.rank()] = own;
  });
  return errors;
}

}  // namespace

TEST_CASE("work that makes progress may take longer than the deadline") {
  constexpr double kDeadline_s = 0.2;
  constexpr int kPieces = 6;
  std::atomic<int> done = 0;
  const auto errors = errors_of(3, [&](Communicator& comm) {
    // Only a piece of work lets time pass, and each is checked: a wait reads
    // the clock as it begins and as it ends.
    std::atomic<double> time_s = 0;
    std::atomic<int> asked = 0;
    SharedWorkOptions options{"counting", kDeadline_s};
    options.clock = [&] {
      ++asked;
      return time_s.load();
    };
    const Work slow = [&](WorkProgress& progress) {
      for (int i = 0; i < kPieces; ++i, ++done) {
        time_s = time_s + 0.75 * kDeadline_s;
        const int before = asked;
        while (asked < before + 3) std::this_thread::sleep_for(1ms);
        progress.advance();
      }
    };
    share_work(comm, options, comm.rank() == 1 ? slow : Work());
    if (done != kPieces) throw DataError("came back too early");
  });
  for (const auto& [rank, error] : errors) CHECK(error.second.empty());
}

TEST_CASE(
    "an error of one rank's work reaches every rank, and stops the work of the "
    "others") {
  std::atomic<bool> stopped = false;
  const auto errors = errors_of(3, [&](Communicator& comm) {
    const Work fails = [](WorkProgress&) {
      throw AbsentError("[x] y: is not there");
    };
    const Work endless = [&](WorkProgress& progress) {
      struct Watch {
        std::atomic<bool>& ended;
        ~Watch() { ended = true; }
      } watch{stopped};
      for (;;) {
        std::this_thread::sleep_for(1ms);
        progress.advance();
      }
    };
    share_work(comm, {"looking", 60},
               comm.rank() == 0   ? endless
               : comm.rank() == 1 ? fails
                                  : Work());
  });
  CHECK(stopped);
  for (const auto& [rank, error] : errors)
    CHECK(error == std::pair{static_cast<int>(ExitCode::kAbsent),
                             std::string("[x] y: is not there")});
}

TEST_CASE("work without progress is a hang that names rank and work") {
  // Outlives the test: the stuck thread cannot be ended.
  const auto let_go = std::make_shared<std::atomic<bool>>(false);
  const auto errors = errors_of(2, [&](Communicator& comm) {
    const Work stuck = [let_go](WorkProgress&) {
      while (!*let_go) std::this_thread::sleep_for(1ms);
    };
    share_work(comm, {"staging the data", 0.2},
               comm.rank() == 1 ? stuck : Work());
  });
  *let_go = true;
  for (const auto& [rank, error] : errors) {
    CHECK(error.first == static_cast<int>(ExitCode::kHang));
    CHECK(error.second.find("rank 1 on ") != std::string::npos);
    CHECK(error.second.find("staging the data made no progress") !=
          std::string::npos);
  }
}

TEST_CASE("a stop that one rank asks for ends the work of all") {
  for (const int ranks : {1, 3}) {
    std::atomic<int> stopped = 0;
    const auto errors = errors_of(ranks, [&](Communicator& comm) {
      const Work endless = [](WorkProgress& progress) {
        for (;; progress.advance()) std::this_thread::sleep_for(1ms);
      };
      const auto stop = [&] { return comm.rank() == ranks - 1; };
      if (!share_work(comm, {"looking", 60, stop}, endless)) ++stopped;
    });
    CHECK(stopped == ranks);
    for (const auto& [rank, error] : errors) CHECK(error.second.empty());
  }
}

TEST_CASE("a rank alone has a deadline too") {
  const auto comm = solo_communicator();
  CHECK(error_of<DataError>([&] {
          share_work(*comm, {"x", 60},
                     [](WorkProgress&) { throw DataError("bad"); });
        }) == "bad");
  const auto let_go = std::make_shared<std::atomic<bool>>(false);
  const std::string hang = error_of<HangError>([&] {
    share_work(*comm, {"packing", 0.2}, [let_go](WorkProgress&) {
      while (!*let_go) std::this_thread::sleep_for(1ms);
    });
  });
  *let_go = true;
  CHECK(hang.find("packing made no progress") != std::string::npos);
}

TEST_CASE("stuck work meets its end while what it refers to is still there") {
  struct Owned {
    bool& there;
    ~Owned() { there = false; }
  };
  bool there = true, was_there = false;
  std::string said;
  set_end_of_stuck_work([&](const std::string& error) {
    was_there = there;
    said = error;
  });
  const auto comm = solo_communicator();
  const auto let_go = std::make_shared<std::atomic<bool>>(false);
  const auto call = [&] {
    const Owned owned{there};
    share_work(*comm, {"packing", 0.2}, [let_go](WorkProgress&) {
      while (!*let_go) std::this_thread::sleep_for(1ms);
    });
  };
  CHECK_THROWS_AS(call(), HangError);
  set_end_of_stuck_work({});
  *let_go = true;
  CHECK(was_there);
  CHECK(said.find("packing made no progress") != std::string::npos);
}
