// An object store for writing. An object appears under its name only when it is
// whole, and replaces what was there at that moment.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "chexnet/data/storage/store.hpp"

namespace chexnet {

// Any number of threads. What fails for a reason that may pass is tried again,
// then OutageError. AbsentError: refused (no right, no bucket, no space).
class ObjectStore : public Store {
 public:
  using Store::list;
  // The server checks the bytes against the signed SHA-256, and we check the
  // ETag where it is an MD5.
  virtual void put(const std::string& path, std::string_view content) = 0;
  // A file as it is now; in parts where it is large. When that fails its parts
  // are taken back.
  virtual void put_file(const std::string& path,
                        const std::filesystem::path& file) = 0;
  // One that is not there is no error.
  virtual void remove(const std::string& path) = 0;
};

}  // namespace chexnet
