// Files that become objects.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "s3_client.hpp"

namespace chexnet {

// A PUT whose answer must not contradict the bytes: it is repeated where the
// ETag is an MD5, but of something else.
S3Call put_call(const std::string& path, std::span<const std::byte> bytes);

// As ObjectStore::put_file(), in parts of `part_bytes` or larger ones.
void upload_file(S3Client& client, const std::string& path,
                 const std::filesystem::path& file, uint64_t part_bytes);

}  // namespace chexnet
