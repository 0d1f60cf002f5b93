// The reference is computed in fp64 by the CPU engine, whose gradients
// PyTorch's fp64 steps confirm to 1e-7 (tests/train/parity_test.cpp). A GPU
// sums in another order, so it is compared within what rounding explains.
//
// All ranks enter these functions together: each computes alone, but the
// all-reduce and the decision are common.
#include "chexnet/train/self_test.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/text_format.hpp"
#include "device_deadline.hpp"

namespace chexnet {
namespace {

constexpr int64_t kFindings = 14;

// fp32 in fp32, whatever the run allows: TF32 would keep 10 bits of the
// operands.
class WholeFp32 {
 public:
  WholeFp32() {
    for (const auto op : {at::Float32Op::CONV, at::Float32Op::MATMUL}) {
      before_.push_back(context().float32Precision(kCuda, op));
      context().setFloat32Precision(kCuda, op, at::Float32Precision::IEEE);
    }
  }
  ~WholeFp32() {
    context().setFloat32Precision(kCuda, at::Float32Op::CONV, before_[0]);
    context().setFloat32Precision(kCuda, at::Float32Op::MATMUL, before_[1]);
  }
  WholeFp32(const WholeFp32&) = delete;
  WholeFp32& operator=(const WholeFp32&) = delete;

 private:
  static constexpr auto kCuda = at::Float32Backend::CUDA;
  static at::Context& context() { return at::globalContext(); }
  std::vector<at::Float32Precision> before_;
};

std::vector<Precision> precisions_for(Precision of_run) {
  if (of_run == Precision::kFp32) return {Precision::kFp32};
  return {Precision::kFp32, of_run};
}

constexpr size_t kElements = 300'000, kGradients = 280'000,
                 kParameterElements = 8'960;
constexpr size_t kBucketBytes = 200'000;
constexpr int kLargest = 15;

// Small whole numbers: every wire carries them, and their sums, exactly; only
// the division by the number of ranks rounds.
double element_of(int rank, size_t i) {
  return static_cast<double>((i * 7 + static_cast<size_t>(rank) * 13) %
                             (2 * kLargest + 1)) -
         kLargest;
}

double reduction_tolerance(GradientCompression compression) {
  switch (compression) {
    case GradientCompression::kNone:
      return 1e-6;
    case GradientCompression::kFp16:
      return 2e-3;
    case GradientCompression::kBf16:
      return 1.6e-2;
  }
  return 0;
}

at::Tensor elements_of(int rank) {
  at::Tensor flat = at::empty({kElements}, at::kFloat);
  auto* values = flat.mutable_data_ptr<float>();
  for (size_t i = 0; i < kElements; ++i)
    values[i] = static_cast<float>(element_of(rank, i));
  return flat;
}

}  // namespace

std::string SelfTestResult::problem() const {
  for (const auto& step : steps)
    if (const auto text = first_disagreement(step.layers); !text.empty())
      return std::string(choice_name(step.precision)) + ": " + text;
  if (reduction.difference <= reduction.allowed) return "";
  return formatted(
      "all-reduce: an element differs from the mean of the ranks by {} of the "
      "largest, where rounding explains {}",
      difference_text(reduction.difference),
      difference_text(reduction.allowed));
}

std::string SelfTestResult::summary() const {
  std::string text;
  for (const auto& step : steps) {
    const LayerDifference& worst = worst_of(step.layers);
    text += std::string(choice_name(step.precision)) + " worst " +
            difference_text(worst.difference) + " (" + worst.what + " of " +
            worst.layer + ", " + fixed(100 * worst.of_allowed(), 0) +
            " % of what is allowed), ";
  }
  return formatted("{}all-reduce {}, {} s", text,
                   difference_text(reduction.difference), fixed(seconds, 1));
}

ReductionCheck check_reduction(GradientCompression compression,
                               at::Device where, Communicator& comm) {
  const at::Tensor flat = elements_of(comm.rank()).to(where);
  std::vector<Extent> parameters;
  for (size_t begin = 0; begin < kGradients; begin += kParameterElements)
    parameters.push_back(
        {begin, std::min(begin + kParameterElements, kGradients)});
  comm.set_compression(compression);
  BucketedReducer reducer(
      comm,
      plan_buckets({parameters, kGradients, kGradients, kElements},
                   sizeof(float), kBucketBytes, compression),
      flat.mutable_data_ptr(), ElementType::kF32);
  reducer.begin();
  for (const Extent& parameter : parameters) reducer.written_to(parameter.end);
  reducer.finish();
  reducer.wait_until_finished();

  const at::Tensor found = flat.cpu();
  const auto* values = found.const_data_ptr<float>();
  double worst = 0;
  for (size_t i = 0; i < kElements; ++i) {
    double wanted = 0;
    for (int rank = 0; rank < comm.size(); ++rank)
      wanted += element_of(rank, i);
    const double difference = std::abs(values[i] - wanted / comm.size());
    if (difference > worst || std::isnan(difference)) worst = difference;
  }
  return {worst / kLargest, reduction_tolerance(compression)};
}

SelfTestResult self_test(const SelfTestSubject& subject, at::Device where,
                         Communicator& comm, double timeout_s,
                         const std::vector<BackendEntry>& backends) {
  const double start = now_s();
  const NetworkSpec spec = network_spec(subject.arch);
  Communicator* const ranks =
      subject.sync_batchnorm && comm.size() > 1 ? &comm : nullptr;
  Network exact(spec, kFindings,
                {.precision = Precision::kFp64, .sync_batchnorm = ranks});
  const StepRecord reference = record_synthetic_step(exact);

  SelfTestResult result;
  DeviceDeadline deadline(where, timeout_s, "a step of the self-test");
  for (const Precision precision : precisions_for(subject.precision)) {
    const WholeFp32 whole;
    const auto wait = deadline.wait();
    Network network(spec, kFindings,
                    {.device = where,
                     .precision = precision,
                     .sync_batchnorm = ranks,
                     .own_engine = subject.own_kernels && !where.is_cpu()},
                    backends);
    result.steps.push_back(
        {precision, layer_differences(record_synthetic_step(network), reference,
                                      network.parameters(), precision)});
  }
  result.reduction = check_reduction(subject.compression, where, comm);
  result.seconds = now_s() - start;
  return result;
}

}  // namespace chexnet
