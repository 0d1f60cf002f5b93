#include "chexnet/report/run_files.hpp"

#include <filesystem>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/source_file.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

TEST_CASE("the files of a run are listed by what they are for") {
  const ScratchFolder folder;
  folder.write("config.yaml", "run: {}");
  folder.write("log/rank-000.txt", "12345");
  folder.write("log/rank-001.txt", "123");
  folder.write("checkpoints/step-00000001/model.safetensors", "12");
  fs::create_directory_symlink("step-00000001", folder / "checkpoints/best");
  folder.write(".report.html.0123.partial", "");
  folder.write(".after_checkpoint/1/run/config.yaml", "run: {}");  // a view
  folder.write("notes/mine.txt", "1234");
  folder.write("more.txt", "1");
  const auto found = files_of_run(folder.path());
  std::vector<std::string> names;
  for (const auto& kind : found) names.push_back(kind.name);
  CHECK(names == std::vector<std::string>{
                     "checkpoints/best", "checkpoints/*/model.safetensors",
                     "config.yaml", "log/rank-*.txt", ".*.partial", ""});
  CHECK((found[1].files == 1 && found[1].bytes == 2));  // not through the link
  CHECK((found[3].files == 2 && found[3].bytes == 8));
  CHECK((found.back().files == 2 && found.back().bytes == 5));
  CHECK(found.back().what == "more.txt, notes/mine.txt");
}

TEST_CASE("a folder that is no run has no files of one") {
  const ScratchFolder folder;
  folder.write("report.html", "");
  CHECK(error_of<CheckpointError>([&] {
          files_of_run(folder.path());
        }).find("holds no run") != std::string::npos);
}

TEST_CASE("a run begins in no folder of other things, which are named") {
  const auto refusal = [](const ScratchFolder& folder) {
    return error_of<CheckpointError>(
        [&] { check_may_hold_run(folder.path()); });
  };
  const ScratchFolder folder;
  CHECK(refusal(folder).empty());
  check_may_hold_run(folder / "absent");
  for (const char* name :
       {"log/rank-000.txt", "submitted", "requeues", "postmortem-1.json",
        "TIMELINE", "timeline-rank-001.json", ".lock", "hosts",
        "slurm-4711.out", "train.o4711", "train.pe4711", "job.sh", "my.yaml",
        "train.log", "checkpoints/x", "lost+found/x"})
    folder.write(name, "");
  CHECK(refusal(folder).empty());

  for (const char* name : {".bashrc", "Documents/x", "c.png", "d.log/x"})
    folder.write(name, "");
  const std::string text = refusal(folder);
  CHECK(text.find(folder.path().string() +
                  ": is not empty and holds no run, but .bashrc, "
                  "Documents, c.png and 1 more. Hint: ") != std::string::npos);
  folder.write("config.yaml", "run: {}");
  CHECK(refusal(folder).empty());
}

TEST_CASE("docs/report.md lists the files of a run as inspect does") {
  const std::string page = read_text(source_file("docs/report.md"));
  size_t at = page.find("## The files of a run");
  REQUIRE(at != std::string::npos);
  for (const auto& kind : run_file_kinds()) {
    const std::string row =
        std::string("| `") + kind.name + "` | " + kind.what + " |";
    INFO(row);
    const size_t found = page.find(row, at);
    REQUIRE(found != std::string::npos);
    at = found;
  }
}
