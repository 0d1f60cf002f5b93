// Three requests: a session token (PUT), the role's name, the role's keys. The
// service is at one link-local address on every cloud machine.
#include "instance_metadata.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

[[noreturn]] void refuse_answer() {
  throw AbsentError(
      "[s3] the instance metadata service gives no credentials. Hint: does "
      "the machine have a role?");
}

// What goes into a line of a request. Some services end their answer's line.
std::string checked(const std::string& answer) {
  const std::string_view text = trimmed(answer);
  if (!is_visible(text)) refuse_answer();
  return std::string(text);
}

std::string ask(const HttpTransport& exchange, HttpRequest request) {
  request.timeout_s = 2;
  request.max_bytes = 64 << 10;
  request.past_proxies = true;
  std::vector<std::byte> body;
  const HttpResponse response = exchange(request, body);
  if (response.status == 0 || response.status >= 500)
    throw OutageError(
        "[s3] the instance metadata service does not answer. Hint: set "
        "data.s3.instance_metadata only on a cloud machine with a role");
  if (response.status != 200) refuse_answer();
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

}  // namespace

// A session token, the role's name, its keys (AWS, "Use IMDSv2").
Credentials instance_credentials(const HttpTransport& exchange) {
  const std::string base = "http://169.254.169.254/latest/";
  HttpRequest request;
  request.method = "PUT";
  request.url = base + "api/token";
  request.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}};
  const std::string token = checked(ask(exchange, request));

  request.method = "GET";
  request.url = base + "meta-data/iam/security-credentials/";
  request.headers = {{"X-aws-ec2-metadata-token", token}};
  request.url += checked(ask(exchange, request));  // the role
  const auto keys =
      nlohmann::json::parse(ask(exchange, request), nullptr, false);
  const auto text = [&](const char* name) -> std::string {
    const bool is_there = keys.is_object() && keys.contains(name);
    return is_there && keys[name].is_string() ? checked(keys[name]) : "";
  };
  Credentials found{text("AccessKeyId"), text("SecretAccessKey"),
                    text("Token")};
  if (found.access_key.empty() || found.secret_key.empty()) refuse_answer();
  return found;
}

}  // namespace chexnet
