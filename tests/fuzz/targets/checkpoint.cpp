// The files of a checkpoint in its state.json.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chexnet/core/read_file.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "fuzz/memory_file.hpp"
#include "train/checkpoint/described_files.hpp"

namespace chexnet::fuzz {
namespace {

constexpr const char* kContent = "abc";
constexpr const char* kSum =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

void mend(std::vector<std::byte>& bytes) {
  const auto json = nlohmann::json::parse(text_of(bytes), nullptr, false);
  if (!json.is_object()) return;
  try {
    bytes = bytes_of(with_own_sum(json));
  } catch (const nlohmann::json::exception&) {  // no UTF-8
  }
}

constexpr const char* kModel = "model.safetensors";

// Writes that fail: one says so, one writes nothing.
void check_failed_replacement(const std::filesystem::path& folder) {
  const auto refused = [&](const auto& write) {
    return !accepted<CheckpointError>(
        [&] { replace_described_file(folder, kModel, write); });
  };
  require(refused([](const auto& to) {
            std::ofstream(to) << "half";
            throw CheckpointError("the disk is full. Hint: free space");
          }) &&
              refused([](const auto&) {}),
          "a write that failed is told");
  require(CheckpointStore::problem(folder).empty(),
          "a write that failed changes nothing");
  require(
      !std::filesystem::exists(folder / ("." + std::string(kModel) + ".next")),
      "nor does it leave anything");
}

// A checkpoint of one file, whose model is replaced.
void check_replacement(const std::filesystem::path& folder) {
  const auto write = [](const char* content) {
    return [content](const std::filesystem::path& to) {
      std::ofstream(to) << content;
    };
  };
  replace_described_file(folder, kModel, write("another"));
  require(CheckpointStore::problem(folder).empty(),
          "a file that was replaced is the one that state.json names");
  const std::string replaced = read_text(folder / "state.json");
  require(
      first_difference(folder, with_files(replaced, folder), kModel).empty(),
      "a file is as it is described");
}

void run(Bytes bytes) {
  static const MemoryFolder folder("checkpoint");
  const std::string state = text_of(bytes);
  std::ofstream(folder.path() / kModel) << kContent;
  std::ofstream(folder.path() / "state.json", std::ios::binary) << state;
  std::string problem = "unreadable";
  accepted<CheckpointError>(
      [&] { problem = CheckpointStore::problem(folder.path()); });
  accepted<CheckpointError>([&] {
    const bool names_it = state.find(kModel) != std::string::npos;
    if (resolve_model(folder.path()).filename() == kModel)
      require(names_it || state.find('\\') != std::string::npos,
              "a model that is taken is one that state.json names");
  });
  const auto json = nlohmann::json::parse(state, nullptr, false);
  if (problem.empty() && json.at("files").size() == 1 &&
      json["files"].contains(kModel)) {
    check_failed_replacement(folder.path());
    check_replacement(folder.path());
  }
}

std::vector<std::string> seeds() {
  const std::string said =
      std::string(R"({"bytes":3,"sha256":")") + kSum + "\"";
  return {R"({"step":1,"files":{"model.safetensors":)" + said + "}}}",
          R"({"files":{"model.safetensors":)" + said +
              R"(,"next":{"bytes":4,"sha256":"00"}}}})",
          R"({"files":{"model.safetensors":{"bytes":9,"sha256":"00"}}})",
          R"({"files":{}})"};
}

const Registered kTarget{{"checkpoint", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
