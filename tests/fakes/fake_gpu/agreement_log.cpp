#include "fakes/fake_gpu/agreement_log.hpp"

#include <fstream>
#include <span>
#include <utility>
#include <vector>

#include "chexnet/core/error.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "support/forwarding_communicator.hpp"

namespace fake_gpu {
namespace {

using chexnet::Communicator;
using chexnet::ReduceOp;

class AgreementLog final : public chexnet::ForwardingCommunicator {
 public:
  AgreementLog(std::unique_ptr<Communicator> inner, const std::string& file)
      : ForwardingCommunicator(*inner), inner_(std::move(inner)), log_(file) {
    if (!log_) throw chexnet::DeviceError("cannot write " + file);
  }
  void all_reduce(std::span<double> values, ReduceOp op) override {
    const Counters now = counters();
    log_ << values.size() << ' ' << now.launches << ' ' << now.host_waits << ' '
         << now.waits_behind << ' ' << pending_work() << std::endl;
    inner_->all_reduce(values, op);
  }
  void abort() noexcept override { inner_->abort(); }
  void set_profiler(chexnet::Profiler* profiler) override {
    inner_->set_profiler(profiler);
  }
  uint64_t next_sequence() override { return inner_->next_sequence(); }

 private:
  std::unique_ptr<Communicator> inner_;
  std::ofstream log_;
};

}  // namespace

std::unique_ptr<Communicator> log_agreements(std::unique_ptr<Communicator> host,
                                             const std::string& file) {
  const std::string own = file + "." + std::to_string(host->rank());
  return std::make_unique<AgreementLog>(std::move(host), own);
}

}  // namespace fake_gpu
