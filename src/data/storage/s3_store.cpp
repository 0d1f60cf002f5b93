// Reads check what comes: a 206 must name the requested range and have its
// length. Writes are of one piece, or in parts (s3_upload.cpp).
#include "chexnet/data/storage/s3_store.hpp"

#include <array>
#include <functional>
#include <utility>

#include "chexnet/core/error.hpp"
#include "s3_answer.hpp"
#include "s3_client.hpp"
#include "s3_upload.hpp"
#include "s3_world.hpp"

namespace chexnet {
namespace {

// Of one page; S3's have 1000 keys of at most 1 KiB, whose characters may stand
// as entities.
constexpr uint64_t kLongestListing = uint64_t{8} << 20;
constexpr double kLongestPage_s = 600;

class S3Store final : public ObjectStore {
 public:
  S3Store(S3World world, const S3Options& options, const Environment& env)
      : part_bytes_(world.part_bytes),
        now_s_(world.now_s),
        client_(std::move(world), options, env) {}

  void read(const std::string& path, uint64_t offset, uint64_t count,
            std::vector<std::byte>& into, const ReadOptions& how) override {
    if (count == 0) return into.clear();
    const std::string range = "bytes=" + std::to_string(offset) + "-" +
                              std::to_string(offset + count - 1);
    const HttpResponse r = client_.send({.path = path,
                                         .headers = {{"range", range}},
                                         .max_bytes = count,
                                         .stop = how.stop},
                                        into);
    if (r.status == 416) return into.clear();  // beyond the end
    require(path, r, into, 206);
    // A server or proxy that answers with another range would hand over wrong
    // bytes.
    const std::string begun = "bytes " + std::to_string(offset) + "-" +
                              std::to_string(offset + into.size() - 1) + "/";
    if (into.empty() || !r.content_range.starts_with(begun))
      throw DataError(
          "[s3] {}: asked for {}, got '{}' with {} bytes. Hint: is there a "
          "proxy between?",
          path, range, r.content_range, into.size());
  }

  void read_whole(const std::string& path, std::vector<std::byte>& into,
                  const ReadOptions& how) override {
    const HttpResponse r = client_.send(
        {.path = path, .max_bytes = kLargestWhole, .stop = how.stop}, into);
    require(path, r, into, 200);
  }

  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>& tick) override {
    const S3Address where = address_of(path);
    const std::string bucket = "s3://" + where.bucket;
    std::vector<StoredFile> files;
    std::vector<std::byte> body;
    std::string token;
    ListingEnd end(now_s_);
    do {
      std::vector<std::pair<std::string, std::string>> query = {
          {"list-type", "2"}, {"prefix", where.key}};
      if (!token.empty()) query.emplace_back("continuation-token", token);
      const HttpResponse r = client_.send(
          {.path = bucket,
           .query = query,
           .max_bytes = kLongestListing,
           .total_s = kLongestPage_s,
           .damage =
               [](const HttpResponse&, std::span<const std::byte> page) {
                 return cut_listing(page);
               }},
          body);
      require(path, r, body, 200);
      S3Listing page = s3_listing(body, path);
      end.check(page, path);
      for (auto& object : page.objects) {
        if (!is_below(object.path, where.key)) continue;
        object.path = bucket + "/" + object.path;
        files.push_back(std::move(object));
      }
      token = std::move(page.next_token);
      tick();
    } while (!token.empty());
    if (files.empty())
      throw AbsentError(
          "[s3] {}: nothing is stored there. Hint: check the path", path);
    return files;
  }

  bool exists(const std::string& path) override {
    std::vector<std::byte> body;
    const HttpResponse r = client_.send(
        {.path = path, .headers = {{"range", "bytes=0-0"}}, .max_bytes = 1},
        body);
    if (r.status == 404 || r.status == 403)
      return false;  // 403: no right to list
    return r.status == 206 || r.status == 416 || r.status == 200;
  }

  void put(const std::string& path, std::string_view content) override {
    std::vector<std::byte> body;
    const HttpResponse r =
        client_.send(put_call(path, std::as_bytes(std::span(content))), body);
    if (r.status != 200) client_.refuse(path, r, body);
  }

  void put_file(const std::string& path,
                const std::filesystem::path& file) override {
    upload_file(client_, path, file, part_bytes_);
  }

  void remove(const std::string& path) override {
    std::vector<std::byte> body;
    const HttpResponse r =
        client_.send({.method = "DELETE", .path = path}, body);
    if (r.status != 204 && r.status != 200 && r.status != 404)
      client_.refuse(path, r, body);
  }

 private:
  // A prefix is a folder or one object, not the beginning of a name. Hidden
  // files are skipped.
  static bool is_below(const std::string& key, const std::string& prefix) {
    const bool below = prefix.empty() || prefix.ends_with('/') ||
                       key == prefix || key.starts_with(prefix + "/");
    const auto name = key.substr(key.rfind('/') + 1);
    return below && !name.empty() && !name.starts_with('.');
  }

  void require(const std::string& path, const HttpResponse& r,
               std::span<const std::byte> body, int status) const {
    if (r.status != status) client_.refuse(path, r, body);
  }

  uint64_t part_bytes_;
  std::function<double()> now_s_;
  S3Client client_;
};

}  // namespace

std::unique_ptr<ObjectStore> s3_store(const S3Options& options,
                                      const Environment& env) {
  return s3_store_in({}, options, env);
}

std::unique_ptr<ObjectStore> s3_store_in(S3World world,
                                         const S3Options& options,
                                         const Environment& env) {
  return std::make_unique<S3Store>(std::move(world), options, env);
}

}  // namespace chexnet
