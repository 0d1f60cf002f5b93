// What state.json says of the files of its checkpoint.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/described_files.hpp"
#include "chexnet/checkpoint/store.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

constexpr const char* kContent = "abc";
constexpr const char* kSum =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

// A checkpoint of one file, in memory where the system has /dev/shm.
struct Folder {
  Folder() {
    const std::filesystem::path memory = "/dev/shm";
    path = (exists(memory) ? memory : std::filesystem::temp_directory_path()) /
           ("fuzz-checkpoint-" + std::to_string(getpid()));
    create_directories(path);
    std::ofstream(path / "model.safetensors") << kContent;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

void mend(std::vector<std::byte>& bytes) {
  const auto json = nlohmann::json::parse(text_of(bytes), nullptr, false);
  if (!json.is_object()) return;
  try {
    bytes = bytes_of(with_own_sum(json));
  } catch (const nlohmann::json::exception&) {  // no UTF-8
  }
}

void run(Bytes bytes) {
  static const Folder folder;
  std::ofstream(folder.path / "state.json", std::ios::binary) << text_of(bytes);
  accepted<CheckpointError>([&] { CheckpointStore::problem(folder.path); });
  accepted<CheckpointError>([&] {
    const bool names_it =
        text_of(bytes).find("model.safetensors") != std::string::npos;
    if (resolve_model(folder.path).filename() == "model.safetensors")
      require(names_it || text_of(bytes).find('\\') != std::string::npos,
              "a model that is taken is one that state.json names");
  });
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
