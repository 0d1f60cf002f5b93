// Whether this is built with the address or the thread sanitizer, which need
// more memory and other system calls than the program.
#pragma once

namespace chexnet {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHEXNET_SANITIZED
#endif
#endif

#if defined(CHEXNET_SANITIZED) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace chexnet
