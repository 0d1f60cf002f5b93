#include "chexnet/model/operator_audit.hpp"

#include <ATen/ATen.h>

#include "chexnet/train/step.hpp"
#include "support/catch.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

namespace {

// The operators that one step of ATen's back end calls, after a first step that
// makes what is made once.
OperatorCounts counts_of_step(const char* arch, Precision precision) {
  Network network(network_spec(arch), kParityFindings,
                  {.precision = precision, .own_engine = false});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainStep step(network, *comm, {TrainConfig{}, equal_weights()});
  const at::Tensor images = parity_images(0, 2), labels = parity_labels(0, 2);
  step.run(images, labels, 28, 1e-4);
  const OperatorAudit audit;
  step.run(images, labels, 28, 1e-4);
  return audit.counts();
}

}  // namespace

TEST_CASE("an audit counts our calls, views, memory and reads of the host") {
  const at::Tensor a = at::ones({8, 8});
  const OperatorAudit audit;
  const at::Tensor row = a.narrow(0, 0, 4);  // a view
  const at::Tensor sum = at::add(row, row);  // takes memory, calls more
  CHECK(audit.counts().operators == 2);
  CHECK(audit.counts().views == 1);
  CHECK(audit.counts().dispatched > 2);
  CHECK(audit.counts().allocations == 1);
  CHECK(audit.counts().allocated_bytes == 4 * 8 * 4);
  CHECK(audit.counts().host_reads == 0);
  CHECK(sum[0][0].item<float>() == 2);
  CHECK(audit.counts().host_reads == 1);
}

TEST_CASE("an audit finds operands that cuDNN computes slowly") {
  using at::MemoryFormat;
  const at::Tensor x =
      at::ones({2, 8, 6, 6}).contiguous(MemoryFormat::ChannelsLast);
  const at::Tensor flat = at::ones({1 + 4 * 8 * 9});
  const auto weight = [&](int64_t begin) {
    return flat.narrow(0, begin, 4 * 8 * 9)
        .as_strided({4, 8, 3, 3}, {72, 1, 24, 8}, begin);
  };
  const OperatorAudit audit;
  at::conv2d(x, weight(0));
  CHECK(audit.counts().convolution_operands == 2);
  CHECK(audit.counts().unaligned_operands == 0);
  CHECK(audit.counts().strided_operands == 0);
  at::conv2d(x, weight(1));
  CHECK(audit.counts().unaligned_operands == 1);
  CHECK(audit.counts().strided_operands == 0);
  at::conv2d(x.contiguous(), weight(0));
  CHECK(audit.counts().strided_operands == 1);
}

TEST_CASE("an audit finds concatenations that CUDA copies by elements") {
  const at::Tensor a = at::ones({2, 6, 6, 8}), b = at::ones({2, 6, 6, 16});
  const OperatorAudit audit;
  at::cat({a, b}, 3);
  CHECK(audit.counts().concatenations == 1);
  CHECK(audit.counts().narrow_concatenations == 0);
  // The same memory, told as channels-last maps.
  at::cat({a.permute({0, 3, 1, 2}), b.permute({0, 3, 1, 2})}, 1);
  CHECK(audit.counts().narrow_concatenations == 1);
  at::cat({a, b.narrow(3, 0, 8)}, 3);  // strides
  CHECK(audit.counts().narrow_concatenations == 2);
  at::cat({a, at::ones({2, 6, 6, 3})}, 3);  // 12 bytes each
  CHECK(audit.counts().narrow_concatenations == 3);
  CHECK(audit.counts().concatenations == 4);
}

TEST_CASE(
    "a step hands convolutions aligned channels-last operands, copies features "
    "widely, asks for few operators and makes the host wait for none") {
  struct Case {
    const char* arch;
    int64_t operators, operands, concatenations;
  };
  const std::vector<Case> cases = {{"densenet121", 1300, 599, 58},
                                   {"resnet50", 700, 264, 0}};
  for (const auto& [arch, operators, operands, concatenations] : cases)
    for (const auto precision : {Precision::kFp32, Precision::kBf16}) {
      INFO(arch << " " << choice_name(precision));
      const OperatorCounts counts = counts_of_step(arch, precision);
      INFO(counts.operators << " operators, " << counts.allocations
                            << " allocations");
      CHECK(counts.convolution_operands >= operands);
      CHECK(counts.operators <= operators);
      CHECK(counts.host_reads == 0);
      CHECK(counts.unaligned_operands == 0);
      CHECK(counts.strided_operands == 0);
      CHECK(counts.concatenations == concatenations);
      CHECK(counts.narrow_concatenations == 0);
    }
}
