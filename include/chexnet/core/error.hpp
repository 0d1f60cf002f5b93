// The few kinds of failure, one per reaction of the person who reads them, and
// the exit code of each. Text: "[origin] place: what happened. Hint: what to
// do". Thrown anywhere, caught in main (of worker threads by the consumer).
// Library code never exits but where exit_codes.hpp says so.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

struct ConfigError : Error {
  explicit ConfigError(const std::string& text)
      : Error(ExitCode::kUsage, text) {}
};
// What came does not make sense: a damaged picture, a wrong checksum, a table
// with an unknown label.
struct DataError : Error {
  explicit DataError(const std::string& text) : Error(ExitCode::kData, text) {}
};
// Nothing came, and asking again will not help: no such file, no permission,
// HTTP 403 and 404.
struct AbsentError : Error {
  explicit AbsentError(const std::string& text)
      : Error(ExitCode::kAbsent, text) {}
};
// Nothing came, after it was asked for as often as the config says: EIO,
// ESTALE, no connection, 5xx.
struct OutageError : Error {
  explicit OutageError(const std::string& text)
      : Error(ExitCode::kOutage, text) {}
};
struct CheckpointError : Error {
  explicit CheckpointError(const std::string& text)
      : Error(ExitCode::kCheckpoint, text) {}
};
struct DeviceError : Error {
  explicit DeviceError(const std::string& text)
      : Error(ExitCode::kDevice, text) {}
};
struct NumericError : Error {
  explicit NumericError(const std::string& text)
      : Error(ExitCode::kNumeric, text) {}
};
struct HangError : Error {
  explicit HangError(const std::string& text) : Error(ExitCode::kHang, text) {}
};

// The known names closest to `name` by edit distance, best first, quoted and
// joined by commas; for "did you mean".
std::string nearest_names(std::string_view name,
                          const std::vector<std::string>& known,
                          size_t count = 3);

}  // namespace chexnet
