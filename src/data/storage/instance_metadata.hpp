// Credentials of this cloud machine, from its metadata service (IMDSv2).
#pragma once

#include "chexnet/data/storage/sigv4.hpp"
#include "s3_world.hpp"

namespace chexnet {

// AbsentError when the service gives none, OutageError when it does not answer.
// Never through a proxy, which would see token and keys.
Credentials instance_credentials(const HttpTransport& exchange);

}  // namespace chexnet
