#include <cmath>
#include <numeric>

#include "chexnet/comm/buckets.hpp"
#include "chexnet/comm/half.hpp"
#include "support/catch.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

TEST_CASE("every 16-bit float survives the way to fp32 and back") {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<uint16_t>(i);
    if (!std::isnan(from_fp16(half))) REQUIRE(to_fp16(from_fp16(half)) == half);
    if (!std::isnan(from_bf16(half))) REQUIRE(to_bf16(from_bf16(half)) == half);
  }
  CHECK(std::isnan(from_fp16(to_fp16(NAN))));
  CHECK(std::isnan(from_bf16(to_bf16(NAN))));
}

TEST_CASE("16-bit floats round to the nearest, ties to even") {
  CHECK(from_fp16(to_fp16(1.0f + 0x1p-11f)) == 1.0f);
  CHECK(from_fp16(to_fp16(1.0f + 3 * 0x1p-11f)) == 1.0f + 0x1p-9f);
  CHECK(from_fp16(to_fp16(65519.0f)) == 65504.0f);
  CHECK(std::isinf(from_fp16(to_fp16(65520.0f))));
  CHECK(from_fp16(to_fp16(0x1p-25f)) == 0.0f);
  CHECK(from_fp16(to_fp16(-0x1.8p-25f)) == -0x1p-24f);
  CHECK(from_bf16(to_bf16(1.0f + 0x1p-8f)) == 1.0f);
  CHECK(from_bf16(to_bf16(1.0f + 3 * 0x1p-8f)) == 1.0f + 0x1p-6f);
}

TEST_CASE(
    "buckets cover the gradients once, in order, and the tail is never "
    "compressed") {
  // Gaps of 0 before a parameter that begins aligned are no separate bucket.
  const std::vector<Extent> parameters = {
      {0, 10}, {16, 30}, {32, 33}, {40, 100}, {104, 140}};
  const auto plan = [&](GradientCompression compression) {
    return plan_buckets({parameters, 144, 144, 154}, 4, 100, compression);
  };
  const auto exact = plan(GradientCompression::kNone);
  REQUIRE(exact.size() == 3);
  CHECK((exact[0].begin == 0 && exact[0].end == 30));
  CHECK((exact[1].begin == 32 && exact[1].end == 100));
  CHECK((exact[2].begin == 104 && exact[2].end == 154));
  const auto half = plan(GradientCompression::kBf16);
  REQUIRE(half.size() == 4);
  CHECK((half[2].end == 140 && !half[2].exact));
  CHECK((half[3].begin == 144 && half[3].end == 154 && half[3].exact));
  // The last bucket, which travels when nothing is computed any more, is small:
  // 4 elements of the 60 that would make a bucket.
  const auto tapered = plan_buckets(
      {{{0, 60}, {60, 110}, {110, 116}, {116, 120}}, 120, 120, 120}, 4, 240,
      GradientCompression::kNone);
  REQUIRE(tapered.size() == 3);
  CHECK(
      (tapered[0].end == 60 && tapered[1].end == 116 && tapered[2].end == 120));
  // Frozen layers between gradients and statistics are not sent.
  const auto frozen = plan_buckets({{{0, 10}, {16, 30}}, 32, 150, 154}, 4, 100,
                                   GradientCompression::kNone);
  REQUIRE(frozen.size() == 2);
  CHECK((frozen[0].begin == 0 && frozen[0].end == 30));
  CHECK((frozen[1].begin == 150 && frozen[1].end == 154));
}

TEST_CASE("the mean of a bucket arrives everywhere") {
  ThreadWorld world(3);
  std::mutex mutex;  // Catch's assertions are not thread-safe
  world.run([&](Communicator& comm) {
    std::vector<float> flat(10, static_cast<float>(comm.rank()));
    BucketedReducer reducer(comm, {{0, 4, false}, {4, 10, false}}, flat.data(),
                            ElementType::kF32);
    reducer.begin();
    reducer.written_to(3);
    reducer.written_to(9);
    reducer.finish();
    const std::lock_guard lock(mutex);
    CHECK(flat == std::vector<float>(10, 1.0f));
  });
}

namespace {

// Gradients on a device: finish() does not wait, and the device says later how
// long it stood still for each.
class LateCommunicator final : public Communicator {
 public:
  int started = 0, finished = 0, waited = 0;
  const World& world() const override { return world_; }
  void start(const GradientBuffer&) override { ++started; }
  void poll() override {}
  void finish() override { ++finished; }
  std::optional<double> wait_until_finished() override {
    if (waited == finished) return std::nullopt;
    return ++waited;
  }
  void set_compression(GradientCompression) override {}
  void all_reduce(std::span<double>, ReduceOp) override {}
  void broadcast(std::span<std::byte>, int) override {}
  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte>) override {
    return {};
  }
  void barrier() override {}
  std::string description() const override { return "late"; }

 private:
  World world_;
};

}  // namespace

TEST_CASE("a bucket starts when its last element is final, not before") {
  LateCommunicator comm;
  std::vector<float> flat(10);
  BucketedReducer reducer(comm, {{0, 4, false}, {4, 10, false}}, flat.data(),
                          ElementType::kF32);
  reducer.begin();
  std::vector<int> started;
  for (const size_t end : {1, 3, 4, 5, 9, 10}) {
    reducer.written_to(end);
    started.push_back(comm.started);
  }
  CHECK(started == std::vector{0, 0, 1, 1, 1, 2});
  reducer.finish();
  CHECK(comm.started == 2);
}

TEST_CASE("gradients on a device: the device says what the wait was") {
  LateCommunicator comm;
  std::vector<float> flat(10);
  BucketedReducer reducer(comm, {{0, 4, false}, {4, 10, false}}, flat.data(),
                          ElementType::kF32);
  reducer.begin();
  reducer.finish();
  reducer.begin();  // a step begins before anybody waited for the previous one
  reducer.written_to(4);
  reducer.wait_until_finished();
  CHECK(reducer.wait_s() == 1);

  // The next step first waits for the collectives that a failed step had
  // started.
  reducer.abandon();
  reducer.begin();
  CHECK((comm.started == 3 && comm.finished == 2 && comm.waited == 2));
}

TEST_CASE("control collectives of a world of threads") {
  ThreadWorld world(4);
  std::mutex mutex;
  world.run([&](Communicator& comm) {
    std::vector<double> values = {1.0, static_cast<double>(comm.rank())};
    comm.all_reduce(values, ReduceOp::kSum);
    std::vector<double> largest = {static_cast<double>(comm.rank())};
    comm.all_reduce(largest, ReduceOp::kMax);
    const std::string text =
        broadcast_text(comm, comm.rank() == 2 ? "from two" : "", 2);
    const auto all =
        gather_text(comm, std::string(static_cast<size_t>(comm.rank()), 'x'));
    const bool any = any_rank(comm, comm.rank() == 3),
               none = any_rank(comm, false);
    const std::lock_guard lock(mutex);
    CHECK(values == std::vector<double>{4, 6});
    CHECK(largest[0] == 3);
    CHECK(text == "from two");
    CHECK(all == std::vector<std::string>{"", "x", "xx", "xxx"});
    CHECK((any && !none));
  });
}
