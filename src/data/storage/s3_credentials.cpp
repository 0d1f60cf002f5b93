// The order is that of the AWS command line: environment, then the profile of
// the credentials file. A profile that was named counts before the environment.
#include <fstream>
#include <string_view>
#include <utility>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/storage/s3_store.hpp"

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

// A header that holds a line end would be two.
std::optional<Credentials> usable(Credentials found, const std::string& place) {
  if (found.access_key.empty() || found.secret_key.empty()) return std::nullopt;
  for (const auto& [name, value] :
       {std::pair("access key", found.access_key),
        std::pair("secret key", found.secret_key),
        std::pair("session token", found.session_token)})
    if (!is_visible(value))
      throw ConfigError(
          "[s3] the {} of {} holds a blank, a line end or another character "
          "that no key has. Hint: copy it again",
          name, place);
  return found;
}

std::string usable_region(const std::string& region) {
  if (!is_visible(region))
    throw ConfigError(
        "[s3] '{}' is no region. Hint: see data.s3.region, AWS_REGION and the "
        "profile",
        printable(region));
  return region;
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
  if (options.profile.empty())
    if (auto found = usable({text_of(env, "AWS_ACCESS_KEY_ID"),
                             text_of(env, "AWS_SECRET_ACCESS_KEY"),
                             text_of(env, "AWS_SESSION_TOKEN")},
                            "the environment"))
      return found;
  const std::string path =
      aws_file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string profile = profile_name(options, env);
  auto found = usable({ini_value(path, profile, "aws_access_key_id"),
                       ini_value(path, profile, "aws_secret_access_key"),
                       ini_value(path, profile, "aws_session_token")},
                      "profile '" + profile + "' of " + path);
  if (!found && !options.profile.empty())
    throw ConfigError(
        "[s3] {} has no keys for profile '{}'. Hint: check data.s3.profile, or "
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        path, options.profile);
  return found;
}

std::string credentials_searched(const S3Options& options,
                                 const Environment& env) {
  return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and profile '" +
         profile_name(options, env) + "' of " +
         aws_file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
}

std::string find_region(const S3Options& options, const Environment& env) {
  if (!options.region.empty()) return usable_region(options.region);
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const std::string region = text_of(env, name); !region.empty())
      return usable_region(region);
  const std::string profile = profile_name(options, env);
  const std::string region = ini_value(
      aws_file(env, "AWS_CONFIG_FILE", "config"),
      profile == "default" ? profile : "profile " + profile, "region");
  return region.empty() ? "us-east-1" : usable_region(region);
}

}  // namespace chexnet
