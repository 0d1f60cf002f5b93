// The files of one checkpoint folder and the state.json that names their sums.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace chexnet {

// CheckpointError, or OutageError where the storage may answer later.
[[noreturn]] void refused(const std::filesystem::path& path,
                          const std::error_code& error,
                          const std::string& hint);
bool is_there(const std::filesystem::path& path);

// `state`, a JSON object, with size and SHA-256 of all that is in `folder`, and
// its own sum.
std::string with_files(const std::string& state,
                       const std::filesystem::path& folder);

// `state` with the files that `before`, another state, names.
std::string with_files_of(const std::string& state, const std::string& before);

// The text of `state` with its checksum: for code that writes one in another
// way.
std::string with_own_sum(nlohmann::json state);

// Whether a state is as it was written: it has a sum, which is that of its
// text.
bool has_own_sum(const std::string& state);

// How the files (or `only` this one) differ from what `state` says; empty when
// they do not.
std::string first_difference(const std::filesystem::path& checkpoint,
                             const std::string& state, const std::string& only);

// CheckpointStore::replace_file() of this folder.
void replace_described_file(
    const std::filesystem::path& checkpoint, const std::string& name,
    const std::function<void(const std::filesystem::path&)>& write);

}  // namespace chexnet
