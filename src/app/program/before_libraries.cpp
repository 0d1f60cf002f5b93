// oneMKL, which LibTorch brings along, ends the process as it is loaded where
// the working folder was removed, with an error about a library. So this looks
// first: what an executable names in .preinit_array runs before any library's
// start. There it may make system calls, and no more.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

#include "chexnet/core/exit_codes.hpp"

namespace {

// A sanitizer may not have begun yet either.
[[gnu::no_sanitize("address")]] void require_working_folder(int /*argc*/,
                                                            char** /*argv*/,
                                                            char** /*env*/) {
  std::array<char, PATH_MAX> folder{};
  if (::getcwd(folder.data(), folder.size()) != nullptr || errno != ENOENT)
    return;
  constexpr std::string_view kError =
      "error: [process] the working folder was removed. Hint: cd to a folder "
      "that exists, or to this one again where it was made anew\n";
  [[maybe_unused]] const auto ignored =
      ::write(STDERR_FILENO, kError.data(), kError.size());
  ::_exit(static_cast<int>(chexnet::ExitCode::kUsage));
}

using Start = void (*)(int argc, char** argv, char** env);
[[gnu::section(".preinit_array"), gnu::used]] const Start kBeforeLibraries =
    require_working_folder;

}  // namespace
