// A file is named by the checksum of its subject and begins with it, so one
// that was cut off, or is of another subject, proves nothing. It appears whole
// or not at all (write_atomically), and two ranks that pass at once write the
// same.
#include "chexnet/train/run/remembered_check.hpp"

#include <utility>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/user_cache.hpp"

namespace chexnet {
namespace {

constexpr const char* kPassed = "\npassed\n";

}  // namespace

RememberedCheck::RememberedCheck(const std::string& kind, std::string subject)
    : kind_(kind),
      subject_(std::move(subject)),
      file_(user_cache_folder(kind) /
            (sha256_hex(subject_).substr(0, 32) + ".txt")) {}

bool RememberedCheck::passed() const {
  try {
    constexpr size_t kLongestResult = 64 << 10;
    return std::filesystem::exists(file_) &&
           std::filesystem::file_size(file_) <=
               subject_.size() + kLongestResult &&
           read_text(file_).starts_with(subject_ + kPassed);
  } catch (const std::exception&) {  // not readable: not known
    return false;
  }
}

void RememberedCheck::remember(const std::string& result) const {
  try {
    make_user_cache_folder(kind_);
    write_atomically(file_, subject_ + kPassed + result + "\n", 0600);
  } catch (const std::exception& e) {
    log_warning("[" + kind_ +
                "] passed, but that cannot be kept, so the next start checks "
                "again: " +
                e.what());
  }
}

}  // namespace chexnet
