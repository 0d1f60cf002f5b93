#include "chexnet/data/storage/stores.hpp"

#include "chexnet/core/text_parts.hpp"

namespace chexnet {

Stores::Stores(S3Options s3, double retry_s)
    : s3_options_(std::move(s3)), local_(local_store(retry_s)) {}

// The object store is made when its first path comes: credentials are looked
// for only then, and a run on files needs none.
Store& Stores::of(const std::string& path) {
  if (!is_s3(path)) return *local_;
  return objects();
}

ObjectStore& Stores::objects() {
  std::call_once(s3_once_,
                 [&] { s3_ = s3_store(s3_options_, process_environment()); });
  return *s3_;
}

}  // namespace chexnet
