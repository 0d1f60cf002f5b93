#include "comm/watch/heartbeat_table.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "chexnet/core/clock.hpp"
#include "support/catch.hpp"
#include "support/container_communicator.hpp"
#include "support/forwarding_communicator.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

// Of one process: other runs of this machine have theirs.
std::set<std::string> shared_memories(pid_t of) {
  const std::string own = "chexnet-" + std::to_string(of) + "-";
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with(own))
      found.insert(entry.path().filename().string());
  return found;
}

// A process of a run that calls `action`; killed when it has said that it is
// ready. Returns its number.
template <class Action>
pid_t run_and_kill(Action action) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    action([&] { (void)!write(ready[1], "x", 1); });
    _exit(1);
  }
  char byte = 0;
  CHECK(read(ready[0], &byte, 1) == 1);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
  return child;
}

// Alone in its world; says when it is in the first barrier, and does not come
// back from there.
class StuckInBarrier final : public ForwardingCommunicator {
 public:
  StuckInBarrier(Communicator& alone, std::function<void()> say)
      : ForwardingCommunicator(alone), say_(std::move(say)) {}
  void barrier() override {
    say_();
    for (;;) pause();
  }

 private:
  std::function<void()> say_;
};

}  // namespace

TEST_CASE("each rank of a host sees what the others do") {
  ThreadWorld world(3);
  std::mutex mutex;  // Catch's assertions are not thread-safe
  world.run([&](Communicator& comm) {
    HeartbeatTable table(comm);
    const int rank = comm.rank();
    auto& phase = table.own().phase;
    phase.phase =
        static_cast<uint32_t>(rank == 2 ? Phase::kEnded : Phase::kBackward);
    phase.step = 10 + rank;
    phase.sequence = static_cast<uint64_t>(20 + rank);
    phase.since_s = now_s() - 100;
    table.set_heartbeat(now_s() - 10 * rank);
    comm.barrier();
    {
      const std::lock_guard lock(mutex);
      CHECK(table.size() == 3);
      CHECK(table.end_code() == 0);
      for (int r = 0; r < 3; ++r) {
        const RankView view = table.view(r);
        CHECK(view.rank == r);
        CHECK(view.pid == getpid());
        CHECK(view.step == 10 + r);
        CHECK(view.sequence == static_cast<uint64_t>(20 + r));
        CHECK(view.ended == (r == 2));
        CHECK_FALSE(view.gone);
        CHECK(view.heartbeat_age_s >= 10 * r);
        CHECK(view.phase_age_s >= 100);
      }
    }
    comm.barrier();
    if (rank == 1) table.set_end_code(7);
    comm.barrier();
    const std::lock_guard lock(mutex);
    CHECK(table.end_code() == 7);
  });
}

TEST_CASE("a rank that a signal stopped is seen once it is silent") {
  const auto comm = solo_communicator();
  HeartbeatTable table(*comm);
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  table.own().pid = child;
  table.set_heartbeat(now_s());
  CHECK_FALSE(table.view(0).stopped);
  table.set_heartbeat(now_s() - 2);
  CHECK(table.view(0).stopped);
  table.own().pid = getpid();
  CHECK_FALSE(table.view(0).stopped);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

TEST_CASE(
    "a process is gone when it was there once, and not while it ends in "
    "order") {
  const auto comm = solo_communicator();
  HeartbeatTable table(*comm);
  int never[2];
  REQUIRE(pipe(never) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(never[1]);
    (void)!read(never[0], &byte, 1);
    _exit(0);
  }
  table.own().pid = child;
  CHECK_FALSE(table.view(0).gone);
  close(never[1]);  // the child ends
  siginfo_t end{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT) ==
          0);
  table.set_heartbeat(now_s() - 2);
  CHECK(table.view(0).gone);  // a zombie, as below a launcher that is stopped
  int status = 0;
  waitpid(child, &status, 0);
  table.set_heartbeat(now_s());
  CHECK(table.view(0).gone);
  table.own().phase.phase = static_cast<uint32_t>(Phase::kEnded);
  CHECK_FALSE(table.view(0).gone);
  close(never[0]);

  // Of a rank in another container: its number means nothing here.
  HeartbeatTable other(*comm);
  other.own().pid = child;
  CHECK_FALSE(other.view(0).gone);
}

TEST_CASE("ranks that do not see each other's processes share memory by name") {
  ThreadWorld world(3);
  std::mutex mutex;
  world.run([&](Communicator& comm) {
    ContainerCommunicator own(comm);
    HeartbeatTable table(own);
    if (comm.rank() == 1) table.set_end_code(7);
    comm.barrier();
    const std::lock_guard lock(mutex);
    CHECK(table.end_code() == 7);
    CHECK(shared_memories(getpid()).empty());
  });
}

TEST_CASE("a killed run leaves no shared memory") {
  const pid_t killed = run_and_kill([](auto ready) {
    const auto comm = solo_communicator();
    HeartbeatTable table(*comm);
    table.set_end_code(7);
    ready();
    for (;;) pause();
  });
  CHECK(shared_memories(killed).empty());
}

TEST_CASE(
    "nothing is believed of a run that was killed while its ranks still met") {
  const pid_t killed = run_and_kill([](auto ready) {
    const auto alone = solo_communicator();
    StuckInBarrier comm(*alone, ready);
    const HeartbeatTable table(comm);
  });
  const auto comm = solo_communicator();
  HeartbeatTable fresh(*comm);
  CHECK(fresh.end_code() == 0);
  CHECK(fresh.view(0).pid == getpid());
  CHECK(fresh.view(0).step == 0);
  CHECK(shared_memories(killed).empty());
}
