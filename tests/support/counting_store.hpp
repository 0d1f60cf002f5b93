// A local store that counts what is asked of it, and fails where a test says
// so.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>

#include "chexnet/core/error.hpp"
#include "chexnet/data/storage/store.hpp"

namespace chexnet {

class CountingStore final : public Store {
 public:
  void read(const std::string& path, uint64_t offset, uint64_t count,
            std::vector<std::byte>& into,
            const ReadOptions& options = {}) override {
    if (offset >= fails_from)
      throw OutageError("[test] " + path + ": the server went away");
    bytes += count;
    largest = std::max(largest, count);
    store_->read(path, offset, count, into, options);
  }
  void read_whole(const std::string& path, std::vector<std::byte>& into,
                  const ReadOptions& options = {}) override {
    store_->read_whole(path, into, options);
  }
  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>& tick) override {
    return store_->list(path, tick);
  }
  bool exists(const std::string& path) override { return store_->exists(path); }

  uint64_t bytes = 0, largest = 0;
  uint64_t fails_from = std::numeric_limits<uint64_t>::max();

 private:
  std::unique_ptr<Store> store_ = local_store();
};

}  // namespace chexnet
