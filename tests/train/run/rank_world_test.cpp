#include "chexnet/train/run/rank_world.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

RankWorld rank_of(FailureHandlers& handlers, int& aborted_with) {
  return {solo_communicator(), handlers,
          [&](int code) { aborted_with = code; }};
}

}  // namespace

TEST_CASE(
    "a world that ends normally leaves nothing that could end other ranks") {
  FailureHandlers handlers;
  int aborted_with = 0;
  {
    const RankWorld world = rank_of(handlers, aborted_with);
    handlers.note_error = [](int, const std::string&) {};
    CHECK(world.comm().size() == 1);
    CHECK_FALSE(world.parent_exit_code());
    CHECK(handlers.abort);
  }
  CHECK_FALSE(handlers.abort);
  CHECK_FALSE(handlers.note_error);
  CHECK(aborted_with == 0);
}

TEST_CASE(
    "an exception that leaves a world leaves the abort to who catches it") {
  FailureHandlers handlers;
  int aborted_with = 0, noted = 0;
  const std::string text = error_of<DataError>([&] {
    const RankWorld world = rank_of(handlers, aborted_with);
    handlers.note_error = [&](int code, const std::string&) { noted = code; };
    throw DataError("[test] broken");
  });
  CHECK(text == "[test] broken");
  REQUIRE(handlers.abort);
  REQUIRE(handlers.note_error);
  handlers.note_error(3, text);
  handlers.abort(3);
  CHECK(noted == 3);
  CHECK(aborted_with == 3);
}

TEST_CASE(
    "a world made and ended while another exception is handled ends normally") {
  FailureHandlers handlers;
  int aborted_with = 0;
  try {
    throw DeviceError("[test] no ranks");
  } catch (const DeviceError&) {
    const RankWorld alone = rank_of(handlers, aborted_with);
  }
  CHECK_FALSE(handlers.abort);
}

TEST_CASE("a world that was handed on ends once, with its last owner") {
  FailureHandlers handlers;
  int aborted_with = 0;
  RankWorld first = rank_of(handlers, aborted_with);
  {
    RankWorld second(std::move(first));
    CHECK(handlers.abort);
    const auto comm = second.take_comm();
    CHECK(comm->rank() == 0);
  }
  CHECK_FALSE(handlers.abort);
}

TEST_CASE("a parent has the exit code of its ranks and no handlers") {
  FailureHandlers handlers;
  handlers.abort = [](int) {};
  { CHECK(RankWorld(75).parent_exit_code() == 75); }
  CHECK(handlers.abort);
}
