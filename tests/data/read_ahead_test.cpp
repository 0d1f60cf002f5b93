// Fetching ahead of the workers: each ticket its own bytes, failures where they
// belong, never more in flight than there are slots.
#include "chexnet/data/read_ahead.hpp"

#include <atomic>
#include <filesystem>
#include <thread>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// Files 0 … count - 1, each with its number as content.
struct Files {
  ScratchFolder folder;
  Stores stores;
  std::unique_ptr<ImageSource> source;
  explicit Files(uint32_t count) {
    std::vector<FoundImage> found;
    std::vector<Container> containers;
    for (uint32_t i = 0; i < count; ++i) {
      const std::string path =
          folder.write(std::to_string(i) + ".png", std::to_string(i));
      containers.push_back({ContainerKind::kFile, path, 1});
      found.push_back({path, {i, 0, {}}});
    }
    source = std::make_unique<ImageSource>(
        ImageIndex::of_found(found, containers), stores);
  }
};

// Ticket t is row t mod rows; counts the fetches.
class InTurn final : public Sampler {
 public:
  explicit InTurn(uint32_t rows) : rows_(rows) {}
  Sample at(uint64_t ticket) const override {
    uint64_t seen = largest;
    while (ticket > seen && !largest.compare_exchange_weak(seen, ticket)) {
    }
    return {static_cast<uint32_t>(ticket % rows_), ticket, false};
  }
  mutable std::atomic<uint64_t> largest = 0;

 private:
  uint32_t rows_;
};

std::string text_of(const FetchedImage* fetched) {
  REQUIRE(fetched != nullptr);
  return {reinterpret_cast<const char*>(fetched->bytes.data()),
          fetched->bytes.size()};
}

}  // namespace

TEST_CASE("each ticket gets its own bytes, round after round of the slots") {
  const Files files(7);
  const InTurn sampler(7);
  ReadAhead ahead(*files.source, sampler, 3, 5);
  for (uint64_t ticket = 0; ticket < 40; ++ticket) {
    CHECK(text_of(ahead.wait(ticket, {})) == std::to_string(ticket % 7));
    ahead.done(ticket);
  }
}

TEST_CASE("workers may ask in any order within the slots") {
  const Files files(7);
  const InTurn sampler(7);
  ReadAhead ahead(*files.source, sampler, 2, 4);
  for (uint64_t first = 0; first < 40; first += 4) {
    for (const uint64_t ticket : {first + 3, first + 1, first, first + 2})
      CHECK(text_of(ahead.wait(ticket, {})) == std::to_string(ticket % 7));
    for (const uint64_t ticket : {first + 2, first, first + 3, first + 1})
      ahead.done(ticket);
  }
}

TEST_CASE("nothing is fetched beyond the slots until one is done") {
  const Files files(3);
  const InTurn sampler(3);
  ReadAhead ahead(*files.source, sampler, 4, 4);
  for (uint64_t ticket = 0; ticket < 4; ++ticket) ahead.wait(ticket, {});
  CHECK(sampler.largest == 3);
  ahead.done(0);  // its slot is for ticket 4, and for no other
  CHECK(text_of(ahead.wait(4, {})) == "1");
  CHECK(sampler.largest == 4);
}

TEST_CASE(
    "a failure reaches the one who waits for that ticket, and the slot goes "
    "on") {
  const Files files(4);
  std::filesystem::remove(files.folder / "2.png");
  const InTurn sampler(4);
  ReadAhead ahead(*files.source, sampler, 2, 3);
  for (uint64_t ticket = 0; ticket < 12; ++ticket) {
    if (ticket % 4 == 2)
      CHECK_THROWS_AS(ahead.wait(ticket, {}),
                      OutageError);  // it was there when it was indexed
    else
      CHECK(text_of(ahead.wait(ticket, {})) == std::to_string(ticket % 4));
    ahead.done(ticket);
  }
}

TEST_CASE("a stop ends the wait for a ticket that never comes") {
  const Files files(2);
  const InTurn sampler(2);
  ReadAhead ahead(*files.source, sampler, 1, 1);
  ahead.wait(0, {});  // and never done: ticket 1 has no slot
  std::stop_source stop;
  const std::jthread stopper([&] { stop.request_stop(); });
  CHECK(ahead.wait(1, stop.get_token()) == nullptr);
}
