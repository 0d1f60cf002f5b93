// MPI is reached through our side of its library, which is opened at the first
// call that needs it: one rank works on a machine that has no MPI.
#include "chexnet/comm/communicator.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>

#include "chexnet/comm/mpi_library.hpp"
#include "chexnet/launch/launched_ranks.hpp"
#include "chexnet/launch/launcher_codes.hpp"

namespace chexnet {
namespace {

class SoloCommunicator final : public Communicator {
 public:
  const World& world() const override { return world_; }
  void start(const GradientBuffer&) override {}
  void poll() override {}
  void finish() override {}
  void set_compression(GradientCompression) override {}
  void all_reduce(std::span<double>, ReduceOp) override { pass(); }
  void broadcast(std::span<std::byte>, int) override { pass(); }
  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) override {
    pass();
    return {{bytes.begin(), bytes.end()}};
  }
  void barrier() override { pass(); }
  std::string description() const override {
    return "one rank, no communication";
  }

 private:
  // Counted as with several ranks: so the watchdog sees where it is.
  void pass() {
    ++sequence_;
    if (profiler_ != nullptr) profiler_->entered_collective(sequence_);
  }

  World world_;
  uint64_t sequence_ = 0;
};

const Plugin* opened_side = nullptr;  // of MPI, for the end of the world

}  // namespace

std::unique_ptr<Communicator> solo_communicator() {
  return std::make_unique<SoloCommunicator>();
}

std::unique_ptr<Communicator> open_mpi(const MpiOptions& options) {
  using Open = Communicator* (*)(const MpiOptions*);
  const Plugin& side = mpi_plugin(options.family, own_launcher_program());
  const auto open = reinterpret_cast<Open>(side.symbol("chexnet_open_mpi"));
  opened_side = &side;
  return std::unique_ptr<Communicator>(open(&options));
}

void abort_mpi(int exit_code) {
  assert(opened_side != nullptr);
  reinterpret_cast<void (*)(int)>(opened_side->symbol("chexnet_abort_mpi"))(
      code_for_launcher(exit_code));
}

// The length goes first: only the root knows it.
void Communicator::gather(const double* own, double* all, size_t count) {
  const auto parts = all_gather(std::as_bytes(std::span(own, count)));
  for (const auto& part : parts) {
    assert(part.size() == count * sizeof(double));
    std::memcpy(all, part.data(), part.size());
    all += count;
  }
}

std::string broadcast_text(Communicator& comm, std::string text, int root) {
  text.resize(broadcast_value(comm, uint64_t{text.size()}, root));
  comm.broadcast(std::as_writable_bytes(std::span(text.data(), text.size())),
                 root);
  return text;
}

std::vector<std::string> gather_text(Communicator& comm,
                                     const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& bytes :
       comm.all_gather(std::as_bytes(std::span(text.data(), text.size()))))
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
  return texts;
}

bool any_rank(Communicator& comm, bool value) {
  double flag = value ? 1 : 0;
  comm.all_reduce(std::span(&flag, 1), ReduceOp::kMax);
  return flag > 0;
}

}  // namespace chexnet
