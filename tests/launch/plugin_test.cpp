#include "chexnet/launch/plugin.hpp"

#include <filesystem>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

std::string a_library() { return CHEXNET_FAKE_NVML; }

}  // namespace

TEST_CASE("an absent plug-in is named") {
  CHECK(error_of<DeviceError>([] {
          Plugin("libno_such_thing.so");
        }).find("libno_such_thing.so") != std::string::npos);
}

TEST_CASE("a whole plug-in is opened") {
  CHECK(cut_off_problem(a_library()).empty());
  CHECK(Plugin(a_library()).symbol("nvmlInit_v2") != nullptr);
}

TEST_CASE("a plug-in that was cut off is refused before it is opened") {
  const ScratchFolder folder;
  const auto bytes = fs::file_size(a_library());
  for (const uint64_t left : {uint64_t{0}, uint64_t{40}, uint64_t{64},
                              uint64_t{4096}, bytes / 2, bytes - 1}) {
    INFO(left << " of " << bytes << " bytes");
    const std::string cut = folder / "cut.so";
    fs::copy_file(a_library(), cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, left);
    const std::string said = error_of<DeviceError>([&] { Plugin plugin(cut); });
    CHECK(said.find(cut + ": is damaged: its headers speak of") !=
          std::string::npos);
    CHECK(said.find("the file has " + std::to_string(left)) !=
          std::string::npos);
  }
}

TEST_CASE("headers that lead anywhere end in a sentence") {
  const ScratchFolder folder;
  const std::string path = folder / "odd.so";
  std::string bytes(1 << 16, '\xff');
  bytes.replace(0, 5,
                "\x7f"
                "ELF\x02",
                5);
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(cut_off_problem(path).find("is damaged") != std::string::npos);
  std::ofstream(path, std::ios::binary) << std::string(1 << 16, 'x');
  CHECK(cut_off_problem(path).empty());  // the loader has a message for it
  CHECK(error_of<DeviceError>([&] {
          Plugin plugin(path);
        }).find("invalid ELF header") != std::string::npos);
}
