#include "chexnet/train/checkpoint/checkpoint_store.hpp"

#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "train/checkpoint/described_files.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {
void save(CheckpointStore& store, int64_t step) {
  store.save(step, "{\"step\": " + std::to_string(step) + "}",
             [&](const fs::path& folder) {
               write_atomically(folder / "data",
                                "content of " + std::to_string(step));
             });
}
}  // namespace

TEST_CASE("the newest and the best checkpoints stay, links follow") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 2);
  for (int step = 1; step <= 5; ++step) {
    save(store, step);
    if (step == 2) store.mark_best(step);
  }
  CHECK(fs::read_symlink(folder / "c/last") == "step-00000005");
  CHECK(fs::read_symlink(folder / "c/best") == "step-00000002");
  CHECK(fs::exists(folder / "c/step-00000002"));
  CHECK_FALSE(fs::exists(folder / "c/step-00000003"));
  CHECK(fs::exists(folder / "c/step-00000004"));
  CHECK(store.recover_newest()->filename() == "step-00000005");
}

TEST_CASE(
    "a model is found by its run, its checkpoint or its file, without what "
    "scoring needs not") {
  const ScratchFolder folder;
  const fs::path checkpoints = folder / "run/checkpoints";
  fs::create_directories(checkpoints);
  CheckpointStore store(checkpoints, 5);
  for (int step = 1; step <= 2; ++step)
    store.save(step, "{}", [&](const fs::path& f) {
      write_atomically(f / "model.safetensors", "weights");
      write_atomically(f / "optimizer.safetensors", "moments");
    });
  store.mark_best(1);
  const auto step_of = [](const fs::path& named) {
    const fs::path model = resolve_model(named);
    CHECK(model.filename() == "model.safetensors");
    return model.parent_path().filename();
  };
  CHECK(step_of(folder / "run") == "step-00000001");
  const fs::path second = checkpoints / "step-00000002";
  CHECK(step_of(second) == "step-00000002");
  CHECK(step_of(second / "model.safetensors") == "step-00000002");

  fs::remove(second / "optimizer.safetensors");
  CHECK(step_of(second) == "step-00000002");
  CHECK(CheckpointStore::problem(second) == "optimizer.safetensors is missing");
  const auto copy = folder.write("handed_on.safetensors", "weights");
  CHECK(resolve_model(copy).filename() == "handed_on.safetensors");

  folder.write("run/checkpoints/step-00000002/model.safetensors", "Weights");
  CHECK(error_of<CheckpointError>([&] {
          resolve_model(second);
        }).find("SHA-256") != std::string::npos);
  CHECK(error_of<CheckpointError>([&] {
          resolve_model(second / "model.safetensors");
        }).find("SHA-256") != std::string::npos);
  CHECK(error_of<CheckpointError>([&] {
          resolve_model(folder / "nothing");
        }).find("no checkpoint here") != std::string::npos);
}

TEST_CASE("a model that state.json does not name is not taken") {
  const ScratchFolder folder;
  folder.write("c/model.safetensors", "abc");
  folder.write("c/state.json",
               with_own_sum({{"files", nlohmann::json::object()}}));
  CHECK(error_of<CheckpointError>([&] {
          resolve_model(folder / "c");
        }).find("model.safetensors is not named") != std::string::npos);
}

TEST_CASE("a broken checkpoint is moved aside and the one before is used") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  for (int step = 1; step <= 4; ++step) save(store, step);
  folder.write("c/step-00000004/data",
               "content of 9");  // same size, other bytes
  fs::resize_file(folder / "c/step-00000003/data", 3);  // cut off
  // A save that was killed.
  fs::create_directory(folder / "c/.step-00000005.tmp");
  CHECK(CheckpointStore::problem(folder / "c/step-00000004").find("SHA-256") !=
        std::string::npos);
  CHECK(CheckpointStore::problem(folder / "c/step-00000003").find("size") !=
        std::string::npos);
  CHECK(store.recover_newest()->filename() == "step-00000002");
  CHECK(fs::exists(folder / "c/step-00000004.broken-1"));
  CHECK_FALSE(fs::exists(folder / "c/.step-00000005.tmp"));
  save(store, 4);
  CHECK(store.recover_newest()->filename() == "step-00000004");
}

TEST_CASE("what a person keeps beside the checkpoints is left alone") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 1);
  save(store, 99'999'999);
  for (const char* name : {"step-00000001-good", "step-backup", "step-7"})
    fs::copy(folder / "c/step-99999999", folder / "c" / name,
             fs::copy_options::recursive);
  save(store, 100'000'000);
  CHECK(store.recover_newest()->filename() == "step-100000000");
  CHECK_FALSE(fs::exists(folder / "c/step-99999999"));
  for (const char* name : {"step-00000001-good", "step-backup", "step-7"})
    CHECK(fs::exists(folder / "c" / name / "data"));
}

TEST_CASE("a checkpoint that cannot be written leaves the earlier ones alone") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 1);
  save(store, 1);
  const auto fails = [&] {
    store.save(2, "{}", [](const fs::path& f) {
      write_atomically(f / "data", "half");
      throw CheckpointError("disk full");
    });
  };
  CHECK(error_of<CheckpointError>(fails) == "disk full");
  CHECK(store.recover_newest()->filename() == "step-00000001");
  // The checkpoint and its link.
  CHECK(std::distance(fs::directory_iterator(folder / "c"), {}) == 2);
  fs::rename(folder / "c", folder / "elsewhere");
  const std::string moved = error_of<CheckpointError>([&] { save(store, 3); });
  CHECK(moved.find("a folder of this path is missing") != std::string::npos);
}

TEST_CASE(
    "a run whose checkpoints are all broken is not taken for one that has "
    "none") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  CHECK_FALSE(store.recover_newest());
  save(store, 1);
  save(store, 2);
  for (const char* file : {"c/step-00000001/data", "c/step-00000002/data"})
    fs::resize_file(folder / file, 3);
  const auto look = [&] {
    return error_of<CheckpointError>([&] { store.recover_newest(); });
  };
  CHECK(look().find("checkpoints here (2) is whole; nothing was changed") !=
        std::string::npos);
  CHECK(fs::exists(folder / "c/step-00000002/data"));
  CHECK(fs::exists(folder / "c/step-00000001/data"));
  // Moved aside by somebody: still no reason to begin anew.
  fs::rename(folder / "c/step-00000001", folder / "c/step-00000001.broken-1");
  fs::remove_all(folder / "c/step-00000002");
  CHECK(look().find("is whole") != std::string::npos);
}

TEST_CASE("a checkpoint that cannot be read is not called broken") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  save(store, 2);
  fs::remove(folder / "c/step-00000002/data");
  fs::create_symlink("data",
                     folder / "c/step-00000002/data");  // ELOOP, for root too
  const std::string error =
      error_of<CheckpointError>([&] { store.recover_newest(); });
  CHECK(error.find("symbolic link") != std::string::npos);
  CHECK(fs::exists(folder / "c/step-00000002/state.json"));
}

TEST_CASE(
    "a crash between a checkpoint and its link is mended when the run goes "
    "on") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  save(store, 2);
  fs::remove(folder / "c/last");
  fs::create_symlink("step-00000001", folder / "c/last");
  CHECK(store.recover_newest()->filename() == "step-00000002");
  CHECK(fs::read_symlink(folder / "c/last") == "step-00000002");
}

TEST_CASE(
    "a link that cannot be made is an error of the file system, not of the "
    "program") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  folder.write("c/.last.tmp/in-the-way", "");
  const std::string error = error_of<CheckpointError>([&] { save(store, 1); });
  CHECK(error.find("symbolic links and free inodes") != std::string::npos);
  CHECK(CheckpointStore::problem(folder / "c/step-00000001").empty());
}

TEST_CASE(
    "the state of a checkpoint can be replaced, its files stay described") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  store.replace_state(1, "{\"step\": 1, \"best\": 0.5}");
  CHECK(CheckpointStore::problem(folder / "c/step-00000001").empty());
  CHECK(CheckpointStore::read_state(folder / "c/step-00000001").find("0.5") !=
        std::string::npos);
  fs::resize_file(folder / "c/step-00000001/data", 3);
  CHECK(CheckpointStore::problem(folder / "c/step-00000001") ==
        "data has another size");
  CHECK_FALSE(store.has_whole(1));
  CHECK_FALSE(store.has_whole(2));
}

TEST_CASE(
    "a state that is no description of files is a broken checkpoint, not an "
    "error") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  const fs::path checkpoint = folder / "c/step-00000001";
  for (const char* state :
       {"", "{", "[]", "7", "{}", R"({"files":{"data":7}})"}) {
    save(store, 1);
    folder.write("c/step-00000001/state.json", state);
    INFO(state);
    CHECK(CheckpointStore::problem(checkpoint) ==
          "state.json: its own checksum is absent or wrong");
  }
  for (const char* state :
       {"{}", R"({"files":{"data":7}})",
        R"({"files":{"data":{"bytes":"12","sha256":""}}})"}) {
    folder.write("c/step-00000001/state.json",
                 with_own_sum(nlohmann::json::parse(state)));
    INFO(state);
    CHECK(CheckpointStore::problem(checkpoint).starts_with("state.json: "));
    CHECK(CheckpointStore::problem(checkpoint).find("checksum") ==
          std::string::npos);
  }
  fs::remove(checkpoint / "state.json");
  CHECK(CheckpointStore::problem(checkpoint) == "state.json is missing");
  CHECK(error_of<CheckpointError>(
            [&] { CheckpointStore::read_state(checkpoint); }) != "");
}

TEST_CASE("a save where a broken checkpoint of that step is moves it aside") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  fs::remove(folder / "c/step-00000001/data");
  folder.write("c/step-00000001.broken-1/state.json", "of another time");
  save(store, 1);
  CHECK(store.has_whole(1));
  CHECK(fs::exists(folder / "c/step-00000001.broken-2/state.json"));
  CHECK(read_text(folder / "c/step-00000001.broken-1/state.json") ==
        "of another time");
}

TEST_CASE(
    "a save of a step that is whole replaces its state and keeps its files") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  store.save(1, R"({"step": 1, "again": true})", [](const fs::path&) {
    throw CheckpointError("files are not written again");
  });
  CHECK(store.has_whole(1));
  const std::string state =
      CheckpointStore::read_state(folder / "c/step-00000001");
  CHECK(state.find("again") != std::string::npos);
}

TEST_CASE(
    "the best checkpoint stays however old it is, and goes with its mark") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 1);
  save(store, 1);
  store.mark_best(1);
  for (int step = 2; step <= 4; ++step) save(store, step);
  CHECK(store.has_whole(1));
  CHECK_FALSE(store.has_whole(3));
  store.mark_best(4);
  CHECK_FALSE(store.has_whole(1));
  CHECK(store.has_whole(4));
}

TEST_CASE("what lies beside the checkpoints is neither one nor removed") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 1);
  folder.write("c/notes.txt", "mine");
  folder.write("c/step-00000009.broken-1/state.json", "{}");
  save(store, 1);
  save(store, 2);
  CHECK(store.recover_newest()->filename() == "step-00000002");
  CHECK(read_text(folder / "c/notes.txt") == "mine");
  CHECK(fs::exists(folder / "c/step-00000009.broken-1"));
}

TEST_CASE("a folder that cannot be made is refused with the system's reason") {
  const ScratchFolder folder;
  folder.write("file", "");
  const std::string error = error_of<CheckpointError>(
      [&] { CheckpointStore(folder / "file/checkpoints", 1); });
  CHECK(error.find("Not a directory. Hint: is the run folder writable?") !=
        std::string::npos);
}

TEST_CASE("a file that a checkpoint does not describe says nothing about it") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 1);
  save(store, 1);
  folder.write("c/step-00000001/.nfs0001", "left by the file system");
  CHECK(store.has_whole(1));
}

TEST_CASE("a checkpoint knows every byte of its state.json") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  const fs::path checkpoint = folder / "c/step-00000001";
  const std::string good = read_text(checkpoint / "state.json");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    folder.write("c/step-00000001/state.json", bad);
    INFO(bad);
    CHECK_FALSE(CheckpointStore::problem(checkpoint).empty());
  }
  folder.write("c/step-00000001/state.json", good);
  CHECK(store.has_whole(1));
  store.replace_state(1, R"({"step": 1, "position": 8})");
  CHECK(store.has_whole(1));
  std::string moved = read_text(checkpoint / "state.json");
  moved.replace(moved.find('8'), 1, "9");
  folder.write("c/step-00000001/state.json", moved);
  CHECK(CheckpointStore::problem(checkpoint) ==
        "state.json: its own checksum is absent or wrong");
}

TEST_CASE("a folder in the place of a checkpoint's file is damage") {
  for (const char* name : {"data", "state.json"}) {
    const ScratchFolder folder;
    CheckpointStore store(folder / "c", 5);
    save(store, 1);
    save(store, 2);
    fs::remove(folder / "c/step-00000002" / name);
    fs::create_directory(folder / "c/step-00000002" / name);
    CHECK(CheckpointStore::problem(folder / "c/step-00000002") ==
          std::string(name) + " is no regular file");
    CHECK(store.recover_newest()->filename() == "step-00000001");
    CHECK(fs::exists(folder / "c/step-00000002.broken-1"));
  }
}

TEST_CASE("what a killed process was about to replace goes with a resume") {
  const ScratchFolder folder;
  CheckpointStore store(folder / "c", 5);
  save(store, 1);
  const fs::path left =
      unforeseeable_name(folder / "c/step-00000001/state.json");
  write_atomically(left, "half");
  CHECK(store.recover_newest()->filename() == "step-00000001");
  CHECK_FALSE(fs::exists(left));
}
