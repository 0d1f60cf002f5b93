// S3-compatible object stores (AWS, MinIO, Ceph, …): ranged GETs, listings,
// PUTs and uploads in parts over libcurl, signed here. Each calling thread
// keeps its connection; what fails for a reason that may pass (5xx, 429, reset,
// cut short, stalled) is tried again with full jitter (Marc Brooker,
// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chexnet/data/storage/object_store.hpp"
#include "chexnet/data/storage/sigv4.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {

struct S3Options {
  // "https://s3.example.org:9000", addressed by path; empty = AWS
  std::string endpoint;
  // Empty = AWS_REGION, AWS_DEFAULT_REGION, the profile's, us-east-1.
  std::string region;
  // Of the credentials file; empty = AWS_PROFILE or "default".
  std::string profile;
  // Ask the machine's metadata service for credentials (IMDSv2).
  bool instance_metadata = false;
  int attempts = 8;
  double timeout_s = 20;  // without a byte
};

// Environment first, then the profile of ~/.aws/credentials
// (AWS_SHARED_CREDENTIALS_FILE). Empty when there are none: requests then go
// unsigned, for public buckets. ConfigError: a key, or a region, that does not
// fit into the line of a request.
std::optional<Credentials> find_credentials(const S3Options& options,
                                            const Environment& env);
// Where it looks for credentials, for people.
std::string credentials_searched(const S3Options& options,
                                 const Environment& env);
std::string find_region(const S3Options& options, const Environment& env);

// Opens no connection before the first read.
std::unique_ptr<ObjectStore> s3_store(const S3Options& options,
                                      const Environment& env);

}  // namespace chexnet
