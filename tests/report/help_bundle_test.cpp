#include "chexnet/report/help_bundle.hpp"

#include <unistd.h>

#include <algorithm>

#include "chexnet/core/error.hpp"
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

TEST_CASE("a help bundle holds no file that a link of the run leads to") {
  const ScratchFolder folder;
  write_run(folder);
  const auto secret = folder.write("own/rank-2.txt", "KeyOfTheCollector");
  for (const char* link :
       {"log/rank-1.txt", "requeues", "postmortem.json", "metrics.jsonl"}) {
    fs::remove(folder / "ward7" / link);
    fs::create_symlink(secret, folder / "ward7" / link);
  }
  const WorkingFolder here(folder.path());
  const fs::path archive = collect_for_help("ward7", "", {});
  CHECK(content(archive).find("KeyOfTheCollector") == std::string::npos);
  CHECK(content(archive, "log/rank-0.txt").find("two sexes") !=
        std::string::npos);

  fs::remove(folder / "ward7/config.yaml");
  fs::create_symlink(secret, folder / "ward7/config.yaml");
  CHECK(error_of<CheckpointError>([&] {
          collect_for_help("ward7", "", {});
        }).find("config.yaml: is a link") != std::string::npos);
}

TEST_CASE("a help bundle draws no page from what a link leads to") {
  const ScratchFolder folder;
  write_run(folder);
  folder.write(
      "ward7/results.json",
      R"({"format":1,"run":"","data":{"splits":{}},"model":{"network":""},)"
      R"("resume_changes":[],"evaluations":{}})");
  const WorkingFolder here(folder.path());
  CHECK(listing(collect_for_help("ward7", "", {})).find("report.html") !=
        std::string::npos);
  folder.write("damaged.json", "{\"format\":1");
  fs::rename(folder / "ward7/results.json", folder / "other.json");
  fs::rename(folder / "damaged.json", folder / "ward7/results.json");
  CHECK(listing(collect_for_help("ward7", "", {})).find("report.html") ==
        std::string::npos);
  fs::remove(folder / "ward7/results.json");
  fs::create_symlink(folder / "other.json", folder / "ward7/results.json");
  CHECK(listing(collect_for_help("ward7", "", {})).find("report.html") ==
        std::string::npos);
}

TEST_CASE("a folder of logs may be a link of this user alone") {
  const ScratchFolder folder;
  write_run(folder);
  fs::rename(folder / "ward7/log", folder / "disk");
  fs::create_symlink("../disk", folder / "ward7/log");
  const WorkingFolder here(folder.path());
  const std::string log = "log/rank-0.txt";
  CHECK(content(collect_for_help("ward7", "", {}), log).find("two sexes") !=
        std::string::npos);

  if (::geteuid() != 0) return;  // to give away takes root
  constexpr uid_t kOther = 65534, kThird = 65533;
  const auto gave = [&](const char* name, uid_t to) {
    return ::lchown((folder / name).c_str(), to, to) == 0;
  };
  REQUIRE(gave("ward7/log", kOther));
  CHECK(listing(collect_for_help("ward7", "", {})).find(log) ==
        std::string::npos);

  // Files of the folder's owner are packed, those of a third user are not.
  fs::remove(folder / "ward7/log");
  fs::rename(folder / "disk", folder / "ward7/log");
  folder.write("ward7/log/rank-1.txt", "of a third");
  for (const char* name : {"ward7", "ward7/log", "ward7/log/rank-0.txt"})
    REQUIRE(gave(name, kOther));
  REQUIRE(gave("ward7/log/rank-1.txt", kThird));
  const std::string files = listing(collect_for_help("ward7", "", {}));
  CHECK(files.find(log) != std::string::npos);
  CHECK(files.find("log/rank-1.txt") == std::string::npos);
}

TEST_CASE("no name of a file that somebody chose is in a help bundle") {
  const ScratchFolder folder;
  write_run(folder);
  folder.write("ward7/log/Zgraggen.txt", "");
  folder.write("ward7/log/rank-0-Zgraggen.txt", "");
  folder.write("ward7/postmortem-Zgraggen.json", "{}");
  folder.write("ward7/postmortem-2.json", "{}");
  const WorkingFolder here(folder.path());
  const std::string files = listing(collect_for_help("ward7", "", {}));
  CHECK(files.find("Zgraggen") == std::string::npos);
  CHECK(files.find("postmortem-2.json") != std::string::npos);
}
