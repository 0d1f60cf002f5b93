#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "train/checkpoint/described_files.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

void save(CheckpointStore& store) {
  store.save(1, R"({"step": 1})", [](const fs::path& folder) {
    write_atomically(folder / "data", "content of 1");
  });
}

// A checkpoint whose state.json names two contents for `data`.
void crash_in_replace(CheckpointStore& store, const fs::path& checkpoint,
                      const std::string& next) {
  const std::string before = read_text(checkpoint / "data");
  store.replace_file(1, "data",
                     [&](const fs::path& to) { write_atomically(to, next); });
  // Of a run that ended before the last of its three writes.
  const auto said = [&](const std::string& text) {
    return nlohmann::json{{"bytes", text.size()}, {"sha256", sha256_hex(text)}};
  };
  nlohmann::json state{{"step", 1}, {"files", {{"data", said(before)}}}};
  state["files"]["data"]["next"] = said(next);
  write_atomically(checkpoint / "state.json", with_own_sum(state));
}

}  // namespace

TEST_CASE("a file of a checkpoint is replaced, the others and the state stay") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store);
  const fs::path checkpoint = folder / "c/step-00000001";
  store.replace_file(1, "data", [](const fs::path& to) {
    write_atomically(to, "with thresholds");
  });
  CHECK(CheckpointStore::problem(checkpoint).empty());
  CHECK(read_text(checkpoint / "data") == "with thresholds");
  CHECK(CheckpointStore::read_state(checkpoint).find("\"step\": 1") !=
        std::string::npos);
  CHECK(CheckpointStore::read_state(checkpoint).find("next") ==
        std::string::npos);
  CHECK(std::distance(fs::directory_iterator(checkpoint), {}) == 2);
  write_atomically(checkpoint / "data", "content of 1");
  CHECK(CheckpointStore::problem(checkpoint) == "data has another size");
}

TEST_CASE("a checkpoint is whole whenever a replacement ends") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store);
  const fs::path checkpoint = folder / "c/step-00000001";
  crash_in_replace(store, checkpoint, "new");
  CHECK(CheckpointStore::problem(checkpoint).empty());
  write_atomically(checkpoint / "data", "content of 1");  // not yet renamed
  CHECK(CheckpointStore::problem(checkpoint).empty());
  write_atomically(checkpoint / "data", "neither");
  CHECK(CheckpointStore::problem(checkpoint) == "data has another size");

  // Once more, from either of the two.
  for (const char* present : {"content of 1", "new"}) {
    write_atomically(checkpoint / "data", "content of 1");
    crash_in_replace(store, checkpoint, "new");
    write_atomically(checkpoint / "data", present);
    bool whole_before = false;
    store.replace_file(1, "data", [&](const fs::path& to) {
      write_atomically(to, "newer");
      whole_before = CheckpointStore::problem(checkpoint).empty();
    });
    CHECK(whole_before);
    CHECK(CheckpointStore::problem(checkpoint).empty());
    CHECK(read_text(checkpoint / "data") == "newer");
    save(store);
  }

  const auto fails = [&] {
    store.replace_file(1, "data", [](const fs::path& to) {
      write_atomically(to, "half");
      throw CheckpointError("disk full");
    });
  };
  CHECK(error_of<CheckpointError>(fails) == "disk full");
  CHECK(CheckpointStore::problem(checkpoint).empty());
  CHECK(std::distance(fs::directory_iterator(checkpoint), {}) == 2);
}
