// The stores of a run: the local one, and the object store once a path asks for
// it, so that without s3:// no socket is ever opened.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "chexnet/data/storage/s3_store.hpp"
#include "chexnet/data/storage/store.hpp"

namespace chexnet {

class Stores {
 public:
  // `retry_s`: of the local store.
  explicit Stores(S3Options s3 = {}, double retry_s = 0);
  Store& of(const std::string& path);  // any thread
  ObjectStore& objects();              // any thread

 private:
  S3Options s3_options_;
  std::unique_ptr<Store> local_;
  std::once_flag s3_once_;
  std::unique_ptr<ObjectStore> s3_;
};

}  // namespace chexnet
