// The text of a table or list, which may be in an object store.
#pragma once

#include <string>

#include "chexnet/config/config.hpp"

namespace chexnet {

// As read_text(); of s3://bucket/key with the object store's errors
// (AbsentError, OutageError), .gz unpacked too.
std::string table_text(const std::string& path, const S3Config& s3);

}  // namespace chexnet
