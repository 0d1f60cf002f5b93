#include "chexnet/core/exit_codes.hpp"

#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

TEST_CASE("docs/errors.md shows the table of exit codes") {
  const std::string page = read_text(source_file("docs/errors.md"));
  INFO("the table is:\n" << exit_codes_markdown());
  CHECK(page.find("\n\n" + exit_codes_markdown() + "\n") != std::string::npos);
  for (const auto& meaning : exit_meanings()) {
    if (meaning.code == ExitCode::kDone) continue;
    const std::string heading = "\n## Exit " +
                                std::to_string(static_cast<int>(meaning.code)) +
                                ": " + meaning.kind + "\n";
    INFO(heading);
    CHECK(page.find(heading) != std::string::npos);
  }
}

TEST_CASE("an exit code that is not ours has no meaning") {
  CHECK(find_exit_meaning(7)->code == ExitCode::kHang);
  CHECK(find_exit_meaning(0)->code == ExitCode::kDone);
  for (const int code : {1, 127, 137, -1})
    CHECK(find_exit_meaning(code) == nullptr);
}

TEST_CASE("every kind of error has a row among the exit codes") {
  for (const Error& error :
       {Error(ConfigError("")), Error(DataError("")), Error(AbsentError("")),
        Error(OutageError("")), Error(CheckpointError("")),
        Error(DeviceError("")), Error(NumericError("")), Error(HangError(""))})
    CHECK(find_exit_meaning(static_cast<int>(error.code())) != nullptr);
}
