#include "chexnet/run/remote_lock.hpp"

#include <future>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// A store of one object.
class OneObject final : public ObjectStore {
 public:
  explicit OneObject(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }

  Versioned read_versioned(const std::string&) override {
    return {text_.empty() ? "" : "v", text_};
  }
  bool put(const std::string&, std::string_view content, const PutCondition&,
           const std::stop_token&) override {
    text_ = content;
    return true;
  }
  void put_file(const std::string&, const std::filesystem::path&,
                const std::stop_token&) override {}
  void remove(const std::string&) override { text_.clear(); }
  void abort_uploads(const std::string&, const IsOurs&) override {}
  void read(const std::string&, uint64_t, uint64_t, std::vector<std::byte>&,
            const ReadOptions&) override {}
  void read_whole(const std::string&, std::vector<std::byte>&,
                  const ReadOptions&) override {}
  std::vector<StoredFile> list(const std::string&,
                               const std::function<void()>&) override {
    return {};
  }
  bool exists(const std::string&) override { return !text_.empty(); }

 private:
  std::string text_;
};

}  // namespace

TEST_CASE("a lock whose fields are of other kinds is no end of a run") {
  for (const char* text :
       {R"({"id":"mine","holder":"process 1 on a","free":true})",
        R"({"id":"mine","holder":7,"free":"yes"})",
        R"({"id":"mine","free":null})"}) {
    CAPTURE(text);
    OneObject store(text);
    RemoteLock lock(
        store, "s3://b/r", "mine", [] {}, [](const auto&) {});
    CHECK(lock.was_ours());
    CHECK(lock.taken_by().empty());
    lock.release();
    CHECK(store.text().find("\"free\":true") != std::string::npos);
  }
}

namespace {

// What a start says that finds a lock of another process, which is `after`
// when it looks again: nothing when it got the place.
std::string said_when_lock_becomes(const std::string& after) {
  OneObject store(R"({"id":"other","holder":"process 1 on a","free":false})");
  const auto change = [&] {
    after.empty() ? store.remove("") : (void)store.put("", after, {}, {});
  };
  try {
    const RemoteLock lock(store, "s3://b/r", "mine", change,
                          [](const auto&) {});
    return lock.was_ours() ? "it was ours" : "";
  } catch (const CheckpointError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a run that ends while its lock is watched leaves the place free") {
  const auto say = [](const char* after) {
    return std::async(std::launch::async, said_when_lock_becomes,
                      std::string(after));
  };
  auto freed =
      say(R"({"id":"other","holder":"process 1 on a","free":true,"beat":2})");
  auto removed = say("");
  auto renewed =
      say(R"({"id":"other","holder":"process 1 on a","free":false,"beat":2})");
  auto taken = say(R"({"id":"third","holder":"process 2 on b","free":false})");
  CHECK(freed.get().empty());
  CHECK(removed.get().empty());
  CHECK(renewed.get().find("in use by process 1 on a") != std::string::npos);
  CHECK(taken.get().find("in use by process 2 on b") != std::string::npos);
}

TEST_CASE("who took a lock is told, whatever else the lock says") {
  OneObject store("");
  RemoteLock lock(
      store, "s3://b/r", "mine", [] {}, [](const auto&) {});
  store.put("", R"({"id":"x","holder":"evil","free":"yes"})", {}, {});
  CHECK(lock.taken_by() == "evil");
  store.put("", "[1]", {}, {});
  CHECK(lock.taken_by() == "somebody (no lock of this program)");
}
