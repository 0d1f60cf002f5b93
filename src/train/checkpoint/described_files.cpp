// A file that is replaced (replace_file), and what is there after each of its
// steps:
//
//   .NAME.next                       not named by state.json, so of no weight
//   state.json names the sums of     NAME is as the first of them says
//     both contents
//   NAME                             NAME is as the second of them says
//   state.json names the new sums    done
//
// state.json names its own checksum too: that of its text without the checksum.
#include "described_files.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/whole_number.hpp"
#include "chexnet/core/write_hint.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// In an entry of state.json's "files": the content that replaces this one.
constexpr const char* kNext = "next";

constexpr const char* kSum = "state_sha256";
constexpr std::string_view kSumPlace = "\n \"state_sha256\": \"";
constexpr size_t kSumLength = 64;

nlohmann::json description_of(const fs::path& file) {
  return {{"bytes", fs::file_size(file)}, {"sha256", sha256_file(file)}};
}

// Whether a file is as state.json says: as it was before it was replaced, or as
// it is afterwards. Empty, or what differs.
std::string difference(const fs::path& file, const nlohmann::json& said) {
  if (!is_there(file)) return " is missing";
  if (!fs::is_regular_file(file)) return " is no regular file";
  const bool is_replaced = said.contains(kNext);
  const auto wanted =
      is_replaced ? std::vector{said, said.at(kNext)} : std::vector{said};
  const auto bytes = fs::file_size(file);
  const auto same_size = [&](const nlohmann::json& content) {
    return whole_number<uint64_t>(content.at("bytes")) == bytes;
  };
  if (std::ranges::none_of(wanted, same_size)) return " has another size";
  const std::string sum = sha256_file(file);
  const auto same_sum = [&](const nlohmann::json& content) {
    return content.at("sha256").get<std::string>() == sum;
  };
  if (std::ranges::none_of(wanted, same_sum)) return " has another SHA-256";
  return {};
}

}  // namespace

std::string with_own_sum(nlohmann::json state) {
  state[kSum] = "";
  std::string text = json_text(state, 1) + "\n";
  const size_t at = text.find(kSumPlace);
  assert(at != std::string::npos);
  text.insert(at + kSumPlace.size(), sha256_hex(text));
  return text;
}

void refused(const fs::path& path, const std::error_code& error,
             const std::string& hint) {
  const std::string file = path.string(), reason = error.message();
  if (error.value() == EMFILE)  // no other start has more
    throw CheckpointError("[checkpoint] {}: {}. Hint: raise ulimit -n", file,
                          reason);
  if (may_pass(error.value()))
    throw OutageError(
        "[checkpoint] {}: {}. Hint: the storage does not answer; start again "
        "when it does",
        file, reason);
  const bool is_full = error.value() == ENOSPC || error.value() == EDQUOT;
  throw CheckpointError("[checkpoint] {}: {}. Hint: {}", file, reason,
                        is_full ? write_hint(error.value(), "--out") : hint);
}

bool is_there(const fs::path& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error) refused(path, error, "check the permissions of the run folder");
  return found;
}

std::string with_files(const std::string& state, const fs::path& folder) {
  auto json = nlohmann::json::parse(state);
  assert(json.is_object());
  json["files"] = nlohmann::json::object();
  for (const auto& entry : fs::directory_iterator(folder))
    json["files"][entry.path().filename().string()] =
        description_of(entry.path());
  return with_own_sum(std::move(json));
}

std::string with_files_of(const std::string& state, const std::string& before) {
  auto json = nlohmann::json::parse(state);
  json["files"] = nlohmann::json::parse(before).at("files");
  return with_own_sum(std::move(json));
}

bool has_own_sum(const std::string& state) {
  const size_t place = state.find(kSumPlace);
  if (place == std::string::npos) return false;
  const size_t at = place + kSumPlace.size();
  std::string rest = state;
  rest.erase(at, kSumLength);
  return state.substr(at, kSumLength) == sha256_hex(rest);
}

std::string first_difference(const fs::path& checkpoint,
                             const std::string& state,
                             const std::string& only) {
  const auto json = nlohmann::json::parse(state);
  const auto& files = json.at("files");
  if (!only.empty() && !files.contains(only))
    return only + " is not named by state.json";
  for (const auto& [name, said] : files.items()) {
    if (!only.empty() && name != only) continue;
    const std::string wrong = difference(checkpoint / name, said);
    if (!wrong.empty()) return name + wrong;
  }
  return {};
}

void replace_described_file(const fs::path& checkpoint, const std::string& name,
                            const std::function<void(const fs::path&)>& write) {
  const fs::path next = checkpoint / ("." + name + ".next");
  try {
    write(next);
    auto state = nlohmann::json::parse(read_text(checkpoint / "state.json"));
    auto& said = state.at("files").at(name);
    // Once more after a crash: NAME may be either of the two.
    if (said.contains(kNext) &&
        description_of(checkpoint / name) == said[kNext])
      said = nlohmann::json(said[kNext]);
    said[kNext] = description_of(next);
    write_atomically(checkpoint / "state.json", with_own_sum(state));
    fs::rename(next, checkpoint / name);
    sync_folder(checkpoint);
    said = nlohmann::json(said.at(kNext));
    write_atomically(checkpoint / "state.json", with_own_sum(state));
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove(next, ignored);
    refused(checkpoint / name, e.code(),
            "the checkpoint is as it was; " +
                write_hint(e.code().value(), "--out"));
  } catch (...) {
    std::error_code ignored;
    fs::remove(next, ignored);
    throw;
  }
}

}  // namespace chexnet
