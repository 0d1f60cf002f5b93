// A run that is sent to an object store in memory: what readers find there
// after each single write.
#include "chexnet/run/run_mirror.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "chexnet/checkpoint/store.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/run/remote_run.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

using Objects = std::map<std::string, std::string>;  // path -> content

// What all stores of a test see.
struct Bucket {
  std::mutex mutex;
  Objects objects;
  int refused_from = -1;  // writes from this one on are refused; -1: none
  int writes = 0;
  std::string unreadable;         // the end of the names that no read gets
  std::set<std::string> uploads;  // that nobody ended
  std::function<void(const Objects&)> after_write = [](const Objects&) {};

  Objects all() {
    const std::lock_guard lock(mutex);
    return objects;
  }
  void change(const std::function<void(Objects&)>& how) {
    const std::lock_guard lock(mutex);
    if (refused_from >= 0 && writes >= refused_from)
      throw AbsentError("[s3] HTTP 413: full. Hint: none");
    ++writes;
    how(objects);
    after_write(objects);
  }
};

class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(Bucket& bucket) : bucket_(bucket) {}
  void read(const std::string& path, uint64_t offset, uint64_t count,
            std::vector<std::byte>& into, const ReadOptions&) override {
    take(content(path).substr(offset, count), into);
  }
  void read_whole(const std::string& path, std::vector<std::byte>& into,
                  const ReadOptions&) override {
    take(content(path), into);
  }
  using ObjectStore::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>&) override {
    std::vector<StoredFile> found;
    for (const auto& [name, text] : bucket_.all())
      if (name.starts_with(path + "/"))
        found.push_back({.path = name,
                         .size = text.size(),
                         .modified = "2026-11-21T09:00:07.000Z"});
    if (found.empty()) throw AbsentError("[s3] nothing. Hint: none");
    return found;
  }
  bool exists(const std::string& path) override {
    return bucket_.all().contains(path);
  }
  bool put(const std::string& path, std::string_view text, const PutCondition&,
           const std::stop_token&) override {
    bucket_.change([&](Objects& all) { all[path] = text; });
    return true;
  }
  void put_file(const std::string& path, const fs::path& file,
                const std::stop_token&) override {
    const std::string text = read_text(file);
    bucket_.change([&](Objects& all) { all[path] = text; });
  }
  void remove(const std::string& path) override {
    bucket_.change([&](Objects& all) { all.erase(path); });
  }
  void abort_uploads(const std::string& prefix, const IsOurs& ours) override {
    std::erase_if(bucket_.uploads, [&](const std::string& path) {
      return path.starts_with(prefix + "/") &&
             ours(path.substr(prefix.size() + 1));
    });
  }
  Versioned read_versioned(const std::string& path) override {
    const Objects all = bucket_.all();
    const auto found = all.find(path);
    if (found == all.end()) return {};
    return {"version", found->second};
  }

 private:
  static void take(const std::string& text, std::vector<std::byte>& into) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    into.assign(bytes.begin(), bytes.end());
  }
  std::string content(const std::string& path) {
    const Objects all = bucket_.all();
    const auto found = all.find(path);
    if (found == all.end()) throw AbsentError("[s3] none. Hint: none");
    if (!bucket_.unreadable.empty() && path.ends_with(bucket_.unreadable))
      throw OutageError("[s3] no answer. Hint: none");
    return found->second;
  }
  Bucket& bucket_;
};

const std::string kPlace = "s3://b/run";

// A run of one machine: its folder, which is sent.
struct Machine {
  explicit Machine(Bucket& bucket, const fs::path& where, bool fetches = false,
                   const std::string& place = kPlace)
      : folder(where) {
    fs::create_directories(folder);
    mirror = std::make_unique<RunMirror>(
        std::make_unique<MemoryStore>(bucket),
        RunMirror::Place{place, folder, fetches}, [] {});
    store = std::make_unique<CheckpointStore>(folder / "checkpoints", 1);
    store->on_change([this] { mirror->checkpoints_changed(); });
  }
  void begin() {
    write_atomically(folder / "config.yaml", "config");
    mirror->begin();
  }
  void save(int64_t step, const std::string& weights) {
    store->save(step, "{}", [&](const fs::path& to) {
      write_atomically(to / "model.safetensors", weights);
      write_atomically(to / "optimizer.safetensors", "o" + weights);
    });
  }
  fs::path folder;
  std::unique_ptr<CheckpointStore> store;
  std::unique_ptr<RunMirror> mirror;  // goes before the store
};

// Every step with a state.json is as that says.
void require_whole(const Objects& objects, const fs::path& scratch) {
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  for (const auto& [path, text] : objects) {
    if (path.find("/checkpoints/step-") == std::string::npos) continue;
    const fs::path to = scratch / path.substr(kPlace.size() + 1);
    fs::create_directories(to.parent_path());
    write_atomically(to, text);
  }
  if (!fs::exists(scratch / "checkpoints")) return;
  for (const auto& step : fs::directory_iterator(scratch / "checkpoints"))
    if (fs::exists(step.path() / "state.json"))
      CHECK(CheckpointStore::problem(step.path()).empty());
}

void await(Bucket& bucket, const std::string& name, const fs::path& file) {
  const std::string wanted = read_text(file);
  for (int i = 0; i < 1000; ++i) {
    const Objects all = bucket.all();
    const auto found = all.find(kPlace + "/" + name);
    if (found != all.end() && found->second == wanted) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL(name << " was never sent");
}

}  // namespace

TEST_CASE("a reader finds each checkpoint whole after every single write") {
  const ScratchFolder scratch;
  Bucket bucket;
  int checked = 0;
  bucket.after_write = [&](const Objects& objects) {
    ++checked;
    require_whole(objects, scratch / "reader");
  };
  Machine machine(bucket, scratch / "run");
  machine.begin();
  const auto sent = [&](const std::string& step) {
    const std::string name = "checkpoints/" + step + "/state.json";
    await(bucket, name, machine.folder / name);
  };
  machine.save(1, "first");
  sent("step-00000001");
  machine.store->replace_file(1, "model.safetensors", [](const fs::path& to) {
    write_atomically(to, "first, with thresholds");
  });
  sent("step-00000001");
  machine.store->mark_best(1);
  machine.save(2, "second");
  sent("step-00000002");
  machine.save(3, "third");
  machine.mirror->finish([] {});
  CHECK(checked > 12);
  const Objects all = bucket.all();
  CHECK(all.at(kPlace + "/checkpoints/last") == "step-00000003");
  CHECK(all.at(kPlace + "/checkpoints/best") == "step-00000001");
  CHECK(all.at(kPlace + "/checkpoints/step-00000001/model.safetensors") ==
        "first, with thresholds");
  CHECK_FALSE(all.contains(kPlace + "/checkpoints/step-00000002/state.json"));
  CHECK_FALSE(
      all.contains(kPlace + "/checkpoints/step-00000002/model.safetensors"));
  CHECK(all.at(kPlace + "/config.yaml") == "config");
  CHECK_FALSE(fs::exists(machine.folder / ".sending"));
}

TEST_CASE("another machine gets the newest and the best checkpoint") {
  const ScratchFolder scratch;
  Bucket bucket;
  {
    Machine first(bucket, scratch / "first");
    first.begin();
    first.save(1, "one");
    first.store->mark_best(1);
    first.save(2, "two");
    first.save(3, "three");
    first.mirror->finish([] {});
  }
  bucket.objects[kPlace + "/../escape"] = "no";
  bucket.objects[kPlace + "/" + std::string(300, 'n')] = "no file's name";
  bucket.objects[kPlace + "/checkpoints/step-00000004/state.json"] = "{";
  Machine second(bucket, scratch / "second", true);
  CHECK(read_text(second.folder / "config.yaml") == "config");
  CHECK(second.store->recover_newest()->filename() == "step-00000003");
  CHECK(second.store->has_whole(1));
  CHECK_FALSE(fs::exists(second.folder / "checkpoints/step-00000004"));
  CHECK_FALSE(fs::exists(scratch / "escape"));
}

TEST_CASE("the folder that wrote last is used as it is, another is put aside") {
  const ScratchFolder scratch;
  Bucket bucket;
  const auto resumed = [&](const std::string& machine) {
    Machine now(bucket, scratch / machine, true);
    return read_text(*now.store->recover_newest() / "model.safetensors");
  };
  {
    Machine first(bucket, scratch / "first");
    first.begin();
    first.save(1, "one");
    first.mirror->finish([] {});
    first.save(2, "never sent");  // as behind kill -9
  }
  CHECK(resumed("first") == "never sent");
  {
    Machine second(bucket, scratch / "second", true);
    second.begin();
    second.save(2, "another way");
    second.mirror->finish([] {});
  }
  CHECK(resumed("first") == "another way");
  CHECK(fs::exists(scratch / "first.before-1/checkpoints/step-00000002"));
}

TEST_CASE(
    "a run that cannot be stored says where it is whole, and is sent later") {
  const ScratchFolder scratch;
  Bucket bucket;
  {
    Machine machine(bucket, scratch / "run");
    bucket.refused_from = bucket.writes + 2;
    machine.begin();
    machine.save(1, "one");
    const std::string error =
        error_of<CheckpointError>([&] { machine.mirror->finish([] {}); });
    INFO(error);
    CHECK(error.find((scratch / "run").string()) != std::string::npos);
    CHECK(error.find("413") != std::string::npos);
  }
  bucket.refused_from = -1;
  Machine again(bucket, scratch / "run", true);
  again.begin();
  again.mirror->finish([] {});
  CHECK(bucket.all().at(kPlace + "/checkpoints/step-00000001/"
                                 "model.safetensors") == "one");
}

TEST_CASE(
    "a place with a run is no place for a new one, and a start that fails "
    "leaves none") {
  const ScratchFolder scratch;
  Bucket bucket;
  { Machine failed(bucket, scratch / "run"); }
  CHECK(bucket.all().empty());
  {
    Machine first(bucket, scratch / "first");
    first.begin();
    first.mirror->finish([] {});
  }
  CHECK_THROWS_AS(Machine(bucket, scratch / "second"), CheckpointError);
}

TEST_CASE("a start that was cut off while it fetched is no run of its folder") {
  const ScratchFolder scratch;
  Bucket bucket;
  {
    Machine first(bucket, scratch / "first");
    first.begin();
    first.save(1, "one");
    first.mirror->finish([] {});
  }
  bucket.unreadable = "model.safetensors";
  CHECK_THROWS_AS(Machine(bucket, scratch / "second", true), OutageError);
  bucket.unreadable.clear();
  const Machine second(bucket, scratch / "second", true);
  const auto newest = second.store->recover_newest();
  REQUIRE(newest);
  CHECK(read_text(*newest / "model.safetensors") == "one");
}

TEST_CASE("a run at a prefix above another has nothing of that one") {
  const ScratchFolder scratch;
  Bucket bucket;
  const auto trained = [&](const std::string& name, const std::string& place) {
    Machine run(bucket, scratch / name, false, place);
    run.begin();
    run.save(1, name);
    run.mirror->finish([] {});
  };
  trained("inner", kPlace + "/one");
  trained("deeper", kPlace + "/checkpoints/two");
  const Objects before = bucket.all();
  const std::string part = "/checkpoints/step-00000001/model.safetensors";
  bucket.uploads = {kPlace + "/one" + part, kPlace + part};
  trained("outer", kPlace);
  CHECK(bucket.uploads == std::set<std::string>{kPlace + "/one" + part});
  for (const auto& [path, text] : before) {
    CAPTURE(path);
    CHECK(bucket.all().at(path) == text);
  }
  const Machine again(bucket, scratch / "again", true);
  CHECK(read_text(*again.store->recover_newest() / "model.safetensors") ==
        "outer");
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "again"))
    for (const char* other : {"one", "two"})
      CHECK(entry.path().filename() != other);
}

TEST_CASE("records of a place without a run are those of the runs below it") {
  const ScratchFolder scratch;
  Bucket bucket;
  MemoryStore store(bucket);
  const auto fetch = [&] {
    fetch_run(store, "s3://b/all", scratch / "all", FetchedFiles::kRecords,
              [] {});
  };
  bucket.objects = {{"s3://b/all/one/log/rank-000.txt", "no run of its own"}};
  const std::string error = error_of<CheckpointError>(fetch);
  INFO(error);
  CHECK(error.find("s3://b/all: neither a run") != std::string::npos);
  bucket.objects["s3://b/all/one/config.yaml"] = "one";
  bucket.objects["s3://b/all/one/run.lock"] = "{}";
  bucket.objects["s3://b/all/one/deeper/config.yaml"] = "deeper";
  for (const char* step : {"step-00000002", "step-00000010"})
    for (const char* file : {"/model.safetensors", "/state.json"})
      bucket.objects[std::string("s3://b/all/one/checkpoints/") + step + file] =
          step;
  bucket.objects["s3://b/all/one/checkpoints/step-00000011/model.safetensors"] =
      "on its way";
  fetch();
  CHECK(read_text(scratch / "all/one/config.yaml") == "one");
  CHECK(fs::exists(scratch / "all/one/log/rank-000.txt"));
  CHECK_FALSE(fs::exists(scratch / "all/one/run.lock"));
  CHECK_FALSE(fs::exists(scratch / "all/one/deeper"));
  // How far it is saved, without the checkpoint.
  const fs::path checkpoints = scratch / "all/one/checkpoints";
  CHECK(fs::read_symlink(checkpoints / "last") == "step-00000010");
  CHECK(fs::exists(checkpoints / "last/state.json"));
  CHECK_FALSE(fs::exists(checkpoints / "last/model.safetensors"));
}

TEST_CASE("what was fetched has the time at which it was stored") {
  const ScratchFolder scratch;
  Bucket bucket;
  MemoryStore store(bucket);
  bucket.objects = {{kPlace + "/config.yaml", "config"}};
  fetch_run(store, kPlace, scratch / "run", FetchedFiles::kRecords, [] {});
  namespace chrono = std::chrono;
  const auto stored = chrono::sys_days(chrono::year(2026) / 11 / 21) +
                      chrono::hours(9) + chrono::seconds(7);
  CHECK(fs::last_write_time(scratch / "run/config.yaml") ==
        chrono::file_clock::from_sys(stored));
}

TEST_CASE(
    "names that would leave the folder, or that runs have for files, are no "
    "place of a run") {
  for (const char* place :
       {"s3://b", "s3://b/", "s3://b/../x", "s3://b//x", "s3://b/.hidden",
        "s3://b/x/", "s3://b/x/log", "s3://b/x/checkpoints", "s3://b/examples",
        "s3://b/x/checkpoints/step-00000001"})
    CHECK_THROWS_AS(working_folder(place), ConfigError);
}

TEST_CASE("the working folder of a run is inside no other one") {
  const fs::path outer = working_folder("s3://b/x");
  const fs::path inner = working_folder("s3://b/x/y");
  CHECK(outer.filename() == "b+x");
  CHECK(inner.filename() == "b+x+y");
  CHECK(inner.parent_path() == outer.parent_path());
  CHECK(working_folder("s3://b/x+y%").filename() == "b+x%2By%25");
}

TEST_CASE("a place too long for a name has a working folder of its own") {
  std::string place = "s3://b";
  for (int i = 0; i < 60; ++i) place += "/é€";
  const std::string one = working_folder(place + "/one").filename().string();
  const std::string two = working_folder(place + "/two").filename().string();
  CHECK(one.size() < 255);
  CHECK(one.starts_with("b+é"));
  CHECK(one != two);
}
