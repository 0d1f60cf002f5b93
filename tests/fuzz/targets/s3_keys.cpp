// Where S3's credentials come from: a credentials file, and the metadata
// service of a cloud machine. The input is both; an answer that begins with '!'
// is a refusal, with '?' a failure of the service.
#include <map>

#include "chexnet/core/plain_text.hpp"
#include "data/storage/instance_metadata.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

int status_of(const std::vector<std::byte>& answer) {
  const std::string text = text_of(answer);
  if (text.starts_with('!')) return 404;
  return text.starts_with('?') ? 503 : 200;
}

void run(Bytes bytes) {
  static MemoryFile file;
  const std::string path = file.holding(bytes);
  const Environment env = [&](const char* name) -> const char* {
    const std::string_view asked = name;
    const bool is_file =
        asked == "AWS_SHARED_CREDENTIALS_FILE" || asked == "AWS_CONFIG_FILE";
    return is_file ? path.c_str() : nullptr;
  };
  for (const char* profile : {"", "other"}) {
    S3Options options;
    options.profile = profile;
    accepted<ConfigError>([&] {
      if (const auto found = find_credentials(options, env))
        require(!found->access_key.empty() && !found->secret_key.empty(),
                "credentials have both keys");
    });
    accepted<ConfigError>([&] {
      require(!find_region(options, env).empty(), "there is a region");
    });
  }

  Reader parts(bytes);
  int asked = 0;
  accepted<AbsentError, OutageError>([&] {
    instance_credentials(
        [&](const HttpRequest& request, std::vector<std::byte>& body) {
          require(request.past_proxies, "no proxy sees a token");
          for (const auto& [_, value] : request.headers)
            require(is_visible(value), "a header is one line");
          require(is_visible(request.url), "so is an address");
          ++asked;
          body = asked < 3 ? bytes_of(parts.until('\n'))
                           : bytes_of(text_of(parts.rest()));
          return HttpResponse{status_of(body), {}, {}};
        });
  });
}

std::vector<std::string> seeds() {
  return {
      "[default]\naws_access_key_id = A\naws_secret_access_key=B\n"
      "[other]\n# note\naws_access_key_id=C\naws_secret_access_key=D\n"
      "aws_session_token=E\nregion=eu-west-1\n",
      "token\nrole\n{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"B\","
      "\"Token\":\"C\"}",
      "!no tokens here", "token\n?role",
      "[profile other]\nregion = us-west-2\n"};
}

const Registered kTarget{{"s3_keys", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
