// Paths of a config: ~ and variables of the environment, and values that are no
// paths.
#include <cstdlib>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_parts.hpp"

namespace chexnet {

// As in a shell, a variable that is empty counts as unset. A variable's value
// is not expanded again.
std::string expanded_path(const std::string& text) {
  std::string out;
  size_t at = 0;
  for (auto open = text.find("${"); open != std::string::npos;
       open = text.find("${", at)) {
    const auto close = text.find('}', open);
    if (close == std::string::npos)
      throw ConfigError(
          "'${{' without '}}' in '{}'. Hint: write ${{NAME}} or "
          "${{NAME:-default}}",
          text);
    out += text.substr(at, open - at);
    const std::string inside = text.substr(open + 2, close - open - 2);
    const auto fallback = inside.find(":-");
    const std::string name = inside.substr(0, fallback);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0')
      out += value;
    else if (fallback != std::string::npos)
      out += inside.substr(fallback + 2);
    else
      throw ConfigError(
          "environment variable {} is not set. Hint: export it, or write "
          "${{{}:-default}}",
          name, name);
    at = close + 1;
  }
  out += text.substr(at);
  if (out != "~" && !out.starts_with("~/")) return out;
  const char* home = std::getenv("HOME");
  if (home == nullptr)
    throw ConfigError(
        "HOME is not set, so '~' has no meaning. Hint: write the path out");
  return home + out.substr(1);
}

namespace {

bool has_scheme(const std::string& path) {
  const auto scheme = path.find("://");
  return scheme != std::string::npos && path.find('/') > scheme;
}

}  // namespace

std::string object_store_problem(const std::string& path) {
  if (!has_scheme(path)) return {};
  return "'" + path +
         "' is in an object store, and this must be in a file system. Hint: "
         "docs/storage.md, section S3, says what may be on s3://";
}

std::string run_folder_problem(const std::string& path) {
  if (!has_scheme(path)) return {};
  return "'" + path +
         "' is in an object store, and a run works in a file system. Hint: a "
         "folder, and run.after_checkpoint: COMMAND, which copies it there "
         "(docs/cluster.md)";
}

std::string other_store_problem(const std::string& path) {
  if (!has_scheme(path) || is_s3(path)) return {};
  return "'" + path +
         "' is in an object store that is not known. Hint: s3://bucket/prefix, "
         "or a file system";
}

std::string endpoint_problem(const std::string& url) {
  if (url.find('@') != std::string::npos)
    return "data.s3.endpoint holds a user name or a password, and a config "
           "ends up in each run folder. Hint: https://host:port, and the keys "
           "in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  if (url.empty() || url.starts_with("http://") || url.starts_with("https://"))
    return {};
  return "data.s3.endpoint " + url + " is no URL. Hint: https://host:port";
}

}  // namespace chexnet
