#include "chexnet/report/help_bundle.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/launch/child_process.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// The archive is written into the working folder.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& path) : before_(fs::current_path()) {
    fs::current_path(path);
  }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_;
};

// Ids of patients and images as they come up: numbers, numbers in names, names
// with blanks.
constexpr const char* kSplit =
    "path,patient,split\n"
    "images/00012345_003.png,00012345,train\n"
    "clinic/MRN-770000/scan 1.png,MRN-770000,val\n"
    "clinic/Zgraggen Vreni/a.png,Zgraggen Vreni,test\n"
    "clinic/p4711/b.png,4711,test\n";

void write_run(const ScratchFolder& folder) {
  folder.write("ward7/split.csv", kSplit);
  folder.write("ward7/config.yaml",
               "run: {name: ward7}\n"
               "data:\n"
               "  manifest: {path: /data/uri/table.csv}\n"
               "  images: [/data/uri/images]\n");
  folder.write(
      "ward7/metrics.jsonl",
      "{\"event\":\"start\",\"step\":0,\"host\":\"icu-node7.uri.example\"}\n"
      "{\"event\":\"damaged\",\"step\":3,\"image\":\"images/00012345_003.png\","
      "\"reasons\":[\"patient 4711\",{\"of\":\"Zgraggen Vreni\"}]}\n"
      "{\"event\":\"error\",\"step\":4,\"sentence\":\"[decode] "
      "/data/uri/images/clinic/MRN-770000/scan 1.png: CRC\"}\n"
      "{\"torn\":\"MRN-770000");
  folder.write(
      "ward7/postmortem.json",
      "{\"sentence\":\"rank 1 on icu-node7 stopped at clinic/p4711/b.png\",\n"
      " \"all_ranks\":[{\"rank\":1,\"host\":\"icu-node8.uri.example\","
      "\"doing\":\"reading clinic/Zgraggen Vreni/a.png\"}]}\n");
  folder.write("ward7/requeues", "MRN-770000 1\n");
  folder.write("ward7/log/rank-0.txt",
               "rank  host       device\n"
               "   0  icu-node9  cpu\n\n"
               "warning: icu-node9: patient 4711 has two sexes\n"
               "warning: 00012345_003 and Vreni are in two splits\n");
  folder.write("ward7/predictions_test.csv",
               "image,prob:A\nclinic/p4711/b.png,0.5\n");
  folder.write("ward7/checkpoints/step-00000001/model.safetensors",
               "weights of MRN-770000");
  folder.write("ward7/manifest.csv", kSplit);
}

std::string listing(const fs::path& archive) {
  return output_of({"tar", "-tzf", archive.string()}, 60).output;
}

std::string content(const fs::path& archive, const std::string& file = "") {
  std::vector<std::string> command = {"tar", "-xzOf", archive.string()};
  if (!file.empty()) command.push_back("chexnet-help/" + file);
  return output_of(command, 60).output;
}

}  // namespace

TEST_CASE(
    "no id of a patient, image, host or folder is left in any file of a help "
    "bundle") {
  const ScratchFolder folder;
  write_run(folder);
  const WorkingFolder here(folder.path());
  const fs::path archive = collect_for_help(
      "ward7", "doctor: icu-node5 cannot read clinic/MRN-770000",
      {"icu-node5"});
  const std::string text = content(archive);
  REQUIRE(text.size() > 200);
  for (const char* id : {"00012345", "770000", "Zgraggen", "Vreni", "p4711",
                         "4711", "icu-node", "uri.example", "ward7", "/data",
                         "table.csv", "scan 1", folder.path().c_str()}) {
    INFO(id);
    CHECK(text.find(id) == std::string::npos);
  }
}

TEST_CASE("a help bundle keeps what a help desk reads") {
  const ScratchFolder folder;
  write_run(folder);
  const WorkingFolder here(folder.path());
  const fs::path archive =
      collect_for_help("ward7/", "doctor: all is well", {});
  CHECK(content(archive, "doctor.txt") == "doctor: all is well");
  const std::string metrics = content(archive, "metrics.jsonl");
  CHECK(metrics.starts_with(R"({"event":"start","step":0,"host":"HOST-)"));
  CHECK(std::ranges::count(metrics, '\n') == 4);
  CHECK(content(archive, "postmortem.json").find("\"rank\": 1") !=
        std::string::npos);
  CHECK(content(archive, "log/rank-0.txt").find("has two sexes") !=
        std::string::npos);
}

TEST_CASE(
    "tables of patients, predictions and weights are never in a help bundle") {
  const ScratchFolder folder;
  write_run(folder);
  const WorkingFolder here(folder.path());
  const std::string files = listing(collect_for_help("ward7", "", {}));
  for (const char* part :
       {"split", "manifest", "predictions", "checkpoints", "safetensors"}) {
    INFO(part);
    CHECK(files.find(part) == std::string::npos);
  }
  // Nor is the owner of the files named.
  const std::string owners =
      output_of({"tar", "-tvzf", (folder / "chexnet-help.tar.gz").string()}, 60)
          .output;
  CHECK(owners.find(" 0/0 ") != std::string::npos);
  CHECK(owners.find("root") == std::string::npos);
}

TEST_CASE("a folder without a run gives no help bundle") {
  const ScratchFolder folder;
  const WorkingFolder here(folder.path());
  const std::string error = error_of<CheckpointError>(
      [&] { collect_for_help(folder.path(), "", {}); });
  CHECK(error.find("holds no run") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "chexnet-help.tar.gz"));
}
