// Forwards http.cpp's calls of libcurl to the machine's library, which is
// opened at the first request. s3:// alone needs it, and with the machine's
// come its certificates and its security updates. These names are hidden in
// the program: the library finds its own functions.
#include <dlfcn.h>

#include <cstdarg>
#include <string>

#include "chexnet/core/error.hpp"

#pragma GCC visibility push(hidden)
#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_share_setopt
#pragma GCC visibility pop

namespace {

void* open_library() {
  // Debian's second one speaks TLS by GnuTLS; its interface is the same.
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* reason = dlerror();
  throw chexnet::DeviceError(
      "[s3] libcurl.so.4 cannot be opened: {}. Hint: s3:// needs it: dnf "
      "install libcurl, zypper install libcurl4 or apt-get install libcurl4",
      reason != nullptr ? reason : "?");
}

void* library() {
  static void* const opened = open_library();
  return opened;
}

template <typename Function>
Function* find(const char* name) {
  void* found = dlsym(library(), name);
  if (found == nullptr)
    throw chexnet::DeviceError(
        "[s3] libcurl.so.4 has no {}. Hint: install a newer one", name);
  return reinterpret_cast<Function*>(found);
}

// Of a variable argument: each is as wide as a register.
static_assert(sizeof(long) == sizeof(void*) &&
              sizeof(curl_off_t) == sizeof(void*));

}  // namespace

// The library's function of the same name.
#define LIBRARYS(name) \
  static auto* const function = find<decltype(::name)>(#name)

extern "C" {

CURLcode curl_global_init(long flags) {
  LIBRARYS(curl_global_init);
  return function(flags);
}

CURL* curl_easy_init() {
  LIBRARYS(curl_easy_init);
  return function();
}

void curl_easy_cleanup(CURL* handle) {
  LIBRARYS(curl_easy_cleanup);
  function(handle);
}

CURLSH* curl_share_init() {
  LIBRARYS(curl_share_init);
  return function();
}

CURLSHcode curl_share_cleanup(CURLSH* share) {
  LIBRARYS(curl_share_cleanup);
  return function(share);
}

CURLSHcode curl_share_setopt(CURLSH* share, CURLSHoption option, ...) {
  LIBRARYS(curl_share_setopt);
  va_list arguments;
  va_start(arguments, option);
  void* value = va_arg(arguments, void*);
  va_end(arguments);
  return function(share, option, value);
}

CURLcode curl_easy_setopt(CURL* handle, CURLoption option, ...) {
  LIBRARYS(curl_easy_setopt);
  va_list arguments;
  va_start(arguments, option);
  void* value = va_arg(arguments, void*);
  va_end(arguments);
  const CURLcode rc = function(handle, option, value);
  if (rc == CURLE_UNKNOWN_OPTION && option == CURLOPT_PROTOCOLS_STR)
    // libcurl before 7.85 has it as bits alone.
    return function(handle, CURLOPT_PROTOCOLS,
                    static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
  return rc;
}

CURLcode curl_easy_perform(CURL* handle) {
  LIBRARYS(curl_easy_perform);
  return function(handle);
}

CURLcode curl_easy_getinfo(CURL* handle, CURLINFO info, ...) {
  LIBRARYS(curl_easy_getinfo);
  va_list arguments;
  va_start(arguments, info);
  void* value = va_arg(arguments, void*);
  va_end(arguments);
  return function(handle, info, value);
}

const char* curl_easy_strerror(CURLcode code) {
  LIBRARYS(curl_easy_strerror);
  return function(code);
}

struct curl_slist* curl_slist_append(struct curl_slist* list,
                                     const char* text) {
  LIBRARYS(curl_slist_append);
  return function(list, text);
}

void curl_slist_free_all(struct curl_slist* list) {
  LIBRARYS(curl_slist_free_all);
  function(list);
}
}
