// The order is that of the AWS command line: environment, then the profile of
// the credentials file. A profile that was named counts before the environment.
#include <fstream>
#include <string_view>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/storage/s3_store.hpp"

namespace chexnet {
namespace {

std::string text_of(const Environment& env, const char* name) {
  const char* value = env(name);
  return value != nullptr ? value : "";
}

std::string profile_name(const S3Options& options, const Environment& env) {
  if (!options.profile.empty()) return options.profile;
  const std::string named = text_of(env, "AWS_PROFILE");
  return named.empty() ? "default" : named;
}

std::string aws_file(const Environment& env, const char* variable,
                     const char* name) {
  const std::string named = text_of(env, variable);
  return named.empty() ? text_of(env, "HOME") + "/.aws/" + name : named;
}

// Value of `key` in [section] of an INI file; empty when absent.
std::string ini_value(const std::string& path, const std::string& section,
                      const std::string& key) {
  std::ifstream in(path);
  std::string line, current;
  while (std::getline(in, line)) {
    const std::string_view t = trimmed(line);
    if (t.empty() || t[0] == '#' || t[0] == ';') continue;
    if (t[0] == '[' && t.back() == ']') {
      current = trimmed(t.substr(1, t.size() - 2));
      continue;
    }
    const auto equals = t.find('=');
    if (equals != std::string_view::npos && current == section &&
        trimmed(t.substr(0, equals)) == key)
      return std::string(trimmed(t.substr(equals + 1)));
  }
  return {};
}

}  // namespace

std::optional<Credentials> find_credentials(const S3Options& options,
                                            const Environment& env) {
  Credentials found{text_of(env, "AWS_ACCESS_KEY_ID"),
                    text_of(env, "AWS_SECRET_ACCESS_KEY"),
                    text_of(env, "AWS_SESSION_TOKEN")};
  if (options.profile.empty() && !found.access_key.empty() &&
      !found.secret_key.empty())
    return found;
  const std::string path =
      aws_file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string profile = profile_name(options, env);
  found = {ini_value(path, profile, "aws_access_key_id"),
           ini_value(path, profile, "aws_secret_access_key"),
           ini_value(path, profile, "aws_session_token")};
  if (!found.access_key.empty() && !found.secret_key.empty()) return found;
  if (!options.profile.empty())
    throw ConfigError(
        "[s3] " + path + " has no keys for profile '" + options.profile +
        "'. Hint: check data.s3.profile, or set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY");
  return std::nullopt;
}

std::string credentials_searched(const S3Options& options,
                                 const Environment& env) {
  return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and profile '" +
         profile_name(options, env) + "' of " +
         aws_file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
}

std::string find_region(const S3Options& options, const Environment& env) {
  if (!options.region.empty()) return options.region;
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (std::string region = text_of(env, name); !region.empty()) return region;
  const std::string profile = profile_name(options, env);
  const std::string region = ini_value(
      aws_file(env, "AWS_CONFIG_FILE", "config"),
      profile == "default" ? profile : "profile " + profile, "region");
  return region.empty() ? "us-east-1" : region;
}

}  // namespace chexnet
