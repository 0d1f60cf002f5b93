// An object store that is written to. An object appears under its name only
// when it is whole, and replaces what was there at that moment.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/storage/store.hpp"

namespace chexnet {

// Of a put(): what must hold at the moment of writing. Servers that know no
// such conditions write in any case.
struct PutCondition {
  bool only_new = false;      // no object of that name (If-None-Match: *)
  std::string replaces = "";  // only this version of it (If-Match)
};

// Any number of threads. What fails for a reason that may pass is tried again,
// then OutageError. AbsentError: refused (no right, no bucket, no space).
class ObjectStore : public Store {
 public:
  using Store::list;
  // False where the condition did not hold. What came is checked by the server
  // against the SHA-256 that is signed, and here by the ETag where it is an
  // MD5.
  virtual bool put(const std::string& path, std::string_view content,
                   const PutCondition& condition = {},
                   const std::stop_token& stop = {}) = 0;
  // A file as it is now; in parts where it is large. When that fails its parts
  // are taken back.
  virtual void put_file(const std::string& path,
                        const std::filesystem::path& file,
                        const std::stop_token& stop = {}) = 0;
  // One that is not there is no error.
  virtual void remove(const std::string& path) = 0;
  // Takes back the parts of uploads that nobody ended, as a process that was
  // killed leaves them: of the objects below a prefix whose names there are
  // `ours`.
  using IsOurs = std::function<bool(const std::string& name)>;
  virtual void abort_uploads(const std::string& prefix, const IsOurs& ours) = 0;
  // The version of an object for PutCondition, and its text; an empty version
  // where there is none. For objects of a few KiB.
  struct Versioned {
    std::string version, text;
  };
  virtual Versioned read_versioned(const std::string& path) = 0;
};

}  // namespace chexnet
