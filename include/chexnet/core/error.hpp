// The few kinds of failure, one per reaction of the person who reads them, and
// the exit code of each. Text: "[origin] place: what happened. Hint: what to
// do". Thrown anywhere, caught in main (of worker threads by the consumer).
// Library code never exits but where exit_codes.hpp says so.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "chexnet/core/text_format.hpp"

namespace chexnet {

enum class ExitCode {
  kDone = 0,
  kUsage = 2,       // command line or config
  kData = 3,        // manifest, images, splits: wrong or damaged
  kCheckpoint = 4,  // run folder, checkpoint, weights
  kDevice = 5,      // GPU or communication
  kNumeric = 6,     // NaN, Inf
  kHang = 7,        // a deadline passed
  kAbsent = 8,      // data that is not there, or may not be read
  kOutage = 9,      // storage that does not answer; may pass
  kRequeue = 75,    // stopped on request with a checkpoint: please start again
};

// `text` may hold names and words of strangers' files: what() has control
// characters but line ends and tabs as \x1b, so none is obeyed by a terminal
// and no NUL cuts the hint off.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text);
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Of one kind: `throw DataError("{}:{}: no age", file, line)`, a format as
// formatted() takes; one argument alone is ready text, whose braces mean
// nothing.
template <ExitCode kCode>
struct ErrorOf : Error {
  explicit ErrorOf(const std::string& text) : Error(kCode, text) {}

  template <class First, class... Rest>
  explicit ErrorOf(std::type_identity_t<FormatOf<First, Rest...>> format,
                   const First& first, const Rest&... rest)
      : Error(kCode, filled_in(format.text,
                               {FormatPart(first), FormatPart(rest)...})) {}
};

struct ConfigError : ErrorOf<ExitCode::kUsage> {
  using ErrorOf::ErrorOf;
};
// What came does not make sense: a damaged picture, a wrong checksum, a table
// with an unknown label.
struct DataError : ErrorOf<ExitCode::kData> {
  using ErrorOf::ErrorOf;
};
// Nothing came, and asking again will not help: no such file, no permission,
// HTTP 403 and 404.
struct AbsentError : ErrorOf<ExitCode::kAbsent> {
  using ErrorOf::ErrorOf;
};
// No answer after as many attempts as the config says: EIO, ESTALE, no
// connection, 5xx.
struct OutageError : ErrorOf<ExitCode::kOutage> {
  using ErrorOf::ErrorOf;
};
struct CheckpointError : ErrorOf<ExitCode::kCheckpoint> {
  using ErrorOf::ErrorOf;
};
struct DeviceError : ErrorOf<ExitCode::kDevice> {
  using ErrorOf::ErrorOf;
};
struct NumericError : ErrorOf<ExitCode::kNumeric> {
  using ErrorOf::ErrorOf;
};
struct HangError : ErrorOf<ExitCode::kHang> {
  using ErrorOf::ErrorOf;
};

// The known names closest to `name` by edit distance, best first, quoted and
// joined by commas; for "did you mean".
std::string nearest_names(std::string_view name,
                          const std::vector<std::string>& known,
                          size_t count = 3);

}  // namespace chexnet
