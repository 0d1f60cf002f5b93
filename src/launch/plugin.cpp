#include "chexnet/launch/plugin.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "chexnet/core/shared_library.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// Beside the program as it is built, or in lib/ as it is installed. Not by the
// loader's search path: it could find the plugin of another build.
std::string find_plugin(const std::string& file_name) {
  for (const auto* place : {"", "../lib/", "../"}) {
    const auto path =
        std::filesystem::path(program_folder()) / place / file_name;
    if (std::filesystem::exists(path)) return path.lexically_normal().string();
  }
  return {};
}

uint64_t end_of(uint64_t offset, uint64_t length) {
  return length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
}

// The end of the last part that the headers name; 0: no ELF file of this
// machine (the loader has a message for that).
uint64_t end_by_headers(std::ifstream& file) {
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  uint64_t end =
      end_of(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const uint64_t at = end_of(header.e_phoff, i * header.e_phentsize);
    if (!file.seekg(static_cast<std::streamoff>(at)) ||
        !file.read(reinterpret_cast<char*>(&segment), sizeof segment))
      return std::max(end, end_of(at, sizeof segment));
    end = std::max(end, end_of(segment.p_offset, segment.p_filesz));
  }
  return end;
}

}  // namespace

std::string cut_off_problem(const std::string& path) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path, none);
  std::ifstream file(path, std::ios::binary);
  if (none || !file) return {};  // the loader says why
  const uint64_t end = end_by_headers(file);
  const uint64_t smallest = std::max<uint64_t>(end, sizeof(Elf64_Ehdr));
  if (bytes >= smallest) return {};
  return formatted("is damaged: its headers speak of {} bytes, the file has {}",
                   smallest, bytes);
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

bool Plugin::exists(const std::string& file_name) {
  return !find_plugin(file_name).empty();
}

Plugin::Plugin(const std::string& file_name) : path_(find_plugin(file_name)) {
  if (path_.empty())
    throw PluginError(formatted("{}: not found beside the program in {}",
                                file_name, program_folder()),
                      "build it, or keep the files of the bundle together");
  if (const auto problem = cut_off_problem(path_); !problem.empty())
    throw PluginError(formatted("{}: {}", path_, problem),
                      "it was not copied whole, or the disk is full: build or "
                      "unpack it again");
  handle_ = open_shared_library(path_.c_str(), RTLD_GLOBAL);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    throw MissingLibraryError(
        formatted("{}: cannot be opened: {}", path_, reason ? reason : "?"),
        "the library it names is not installed here, or of another version");
  }
}

std::string open_globally(const std::vector<std::string>& libraries) {
  std::string reasons;
  for (const auto& library : libraries) {
    void* handle = open_shared_library(library.c_str(), RTLD_GLOBAL);
    if (handle != nullptr) {
      const link_map* found = nullptr;
      dlinfo(handle, RTLD_DI_LINKMAP, &found);
      return found == nullptr ? library : found->l_name;
    }
    const char* reason = dlerror();
    reasons +=
        (reasons.empty() ? "" : "; ") + std::string(reason ? reason : library);
  }
  throw PluginError(reasons, "is it installed here?");
}

void* Plugin::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr)
    throw PluginError(formatted("{}: no symbol {}", path_, name),
                      "program and library are of different builds");
  return found;
}

}  // namespace chexnet
