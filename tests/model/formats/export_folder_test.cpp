#include "chexnet/model/formats/export_folder.hpp"

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("an export appears whole, with the sums of its files") {
  const ScratchFolder scratch;
  for (const char* name : {"new", "empty", "slash/"}) {
    const fs::path out = scratch / name;
    if (std::string(name) == "empty") fs::create_directory(out);
    ExportFolder folder("export", out);
    folder.write("b.txt", "b");
    folder.write("vectors/a.txt", "a");
    CHECK_FALSE(fs::exists(out / "b.txt"));
    const auto sums = folder.commit();
    CHECK(sums.size() == 2);
    CHECK(read_text(out / "SHA256SUMS") == sha256_hex("b") + "  b.txt\n" +
                                               sha256_hex("a") +
                                               "  vectors/a.txt\n");
    CHECK(read_text(out / "vectors/a.txt") == "a");
  }
  CHECK(entries(scratch.path()) == 3);
}

TEST_CASE("an export that does not end leaves nothing, and replaces nothing") {
  const ScratchFolder scratch;
  { ExportFolder("export", scratch / "gone").write("a", "a"); }
  CHECK(entries(scratch.path()) == 0);

  scratch.write("full/kept.txt", "kept");
  scratch.write("file", "kept");
  fs::create_symlink(scratch / "nowhere", scratch / "link");
  for (const char* name : {"full", "full/", "file", "link"})
    CHECK(error_of<CheckpointError>([&] {
            ExportFolder("export", scratch / name);
          }).find("is there already, and nothing in it is replaced") !=
          std::string::npos);
  CHECK(error_of<CheckpointError>([&] {
          ExportFolder("export", scratch / "a/b/c");
        }).find("no folder can be made beside it") != std::string::npos);

  // Somebody else was faster.
  ExportFolder late("export", scratch / "late");
  late.write("a", "ours");
  scratch.write("late/a", "theirs");
  CHECK_THROWS_AS(late.commit(), CheckpointError);
  CHECK(read_text(scratch / "late/a") == "theirs");
}
