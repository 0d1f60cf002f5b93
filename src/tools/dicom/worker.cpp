#include "worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/sanitized.hpp"
#include "chexnet/core/system_call_filter.hpp"
#include "chexnet/data/image/encode.hpp"

namespace chexnet {
namespace {

// Stored values, their doubles, gray pixels and the PNG of one picture.
constexpr int64_t kAddressesOfPixel = 32;
constexpr int64_t kOtherAddresses = int64_t{1} << 30;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError("[dicom] {}: {}. Hint: is it damaged? Fetch it again", path,
                  what);
}

// What a worker sends: its result and then texts, each after its length.
enum class Result : uint8_t { kConverted, kFailed };

std::vector<std::string Radiograph::*> texts_of_radiograph() {
  return {&Radiograph::patient, &Radiograph::study, &Radiograph::instance,
          &Radiograph::view,    &Radiograph::sex,   &Radiograph::age,
          &Radiograph::rule,    &Radiograph::note};
}

std::string message_of(const std::string& path,
                       const RadiographLimits& limits) {
  std::string message;
  try {
    Radiograph picture;
    const Skip skip = read_radiograph(path, limits, picture);
    message.push_back(static_cast<char>(Result::kConverted));
    message.push_back(static_cast<char>(skip));
    for (const auto text : texts_of_radiograph()) put(message, picture.*text);
    std::vector<std::byte> png;
    if (skip == Skip::kNone)
      png =
          encode_gray_png(picture.pixels.data(), picture.width, picture.height);
    put(message, {reinterpret_cast<const char*>(png.data()), png.size()});
  } catch (const DataError& e) {
    message = static_cast<char>(Result::kFailed);
    put(message, e.what());
  }
  return message;
}

// Whether work() could set its filter; of the worker alone.
bool filter_holds = false;

[[noreturn]] void work(int out, const WorkerLimits& limits,
                       const std::function<std::string()>& make) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const auto bytes = static_cast<rlim_t>(kOtherAddresses +
                                         kAddressesOfPixel * limits.max_pixels);
  const rlimit memory{bytes, bytes};
  if (!kSanitized) ::setrlimit(RLIMIT_AS, &memory);
  const auto cpu_s = static_cast<rlim_t>(limits.seconds);
  const rlimit cpu{cpu_s, cpu_s};
  ::setrlimit(RLIMIT_CPU, &cpu);
  // stdin, stdout and stderr, too, lead nowhere: GDCM's warnings and
  // assertions.
  filter_holds = !kSanitized && allow_reading_only(out);
  std::string message;
  try {
    message = make();
  } catch (...) {  // the parent says that this worker died
  }
  for (size_t done = 0; done < message.size();) {
    const auto count =
        ::write(out, message.data() + done, message.size() - done);
    if (count < 0) break;
    done += static_cast<size_t>(count);
  }
  ::_exit(0);
}

// What comes until the worker ends or its time is over.
std::string read_until(int from, double deadline) {
  std::string message;
  std::vector<char> piece(1 << 16);
  for (;;) {
    const double left_ms = (deadline - now_s()) * 1000;
    pollfd ready{from, POLLIN, 0};
    const int rc =
        left_ms > 0 ? ::poll(&ready, 1, static_cast<int>(left_ms) + 1) : 0;
    if (rc < 0 && errno == EINTR) continue;
    if (rc <= 0) return {};
    const auto count = ::read(from, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return message;
    message.append(piece.data(), static_cast<size_t>(count));
  }
}

}  // namespace

void put(std::string& message, std::string_view text) {
  const uint64_t size = text.size();
  message.append(reinterpret_cast<const char*>(&size), sizeof size);
  message.append(text);
}

std::string take(const std::string& message, size_t& at) {
  uint64_t size = 0;
  if (message.size() - at < sizeof size) throw std::out_of_range("length");
  std::memcpy(&size, &message[at], sizeof size);
  at += sizeof size;
  if (size > message.size() - at) throw std::out_of_range("text");
  at += size;
  return message.substr(at - size, size);
}

bool workers_are_filtered() {
  const ChildMessage answer =
      in_child({}, [] { return std::string(filter_holds ? "yes" : "no"); });
  if (answer.text == "yes") return true;
  log_warning(
      "[dicom] this kernel, or the container's rules, refuse a filter of "
      "system calls (seccomp): what reads the files runs without one. Hint: "
      "files of strangers are safer elsewhere");
  return false;
}

std::string ChildMessage::death(const WorkerLimits& limits) const {
  if (late) return "takes longer than " + std::to_string(limits.seconds) + " s";
  return std::string("its reader died: ") +
         (WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "no answer");
}

ChildMessage in_child(const WorkerLimits& limits,
                      const std::function<std::string()>& make) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw OutageError("[dicom] no pipe: {}. Hint: raise ulimit -n",
                      std::strerror(errno));
  const double deadline = now_s() + limits.seconds;
  // Before the fork: no core file from the child's first moment on.
  rlimit core{};
  ::getrlimit(RLIMIT_CORE, &core);
  const rlimit none{0, core.rlim_max};
  ::setrlimit(RLIMIT_CORE, &none);
  const pid_t child = ::fork();
  if (child == 0) work(ends[1], limits, make);
  const int error = errno;
  ::setrlimit(RLIMIT_CORE, &core);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw OutageError("[dicom] no further process: {}. Hint: raise ulimit -u",
                      std::strerror(error));
  }
  ChildMessage message;
  message.text = read_until(ends[0], deadline);
  message.late = message.text.empty() && now_s() >= deadline;
  ::close(ends[0]);
  if (message.late) ::kill(child, SIGKILL);
  while (::waitpid(child, &message.status, 0) < 0 && errno == EINTR) {
  }
  return message;
}

Converted convert_in_worker(const std::string& path,
                            const WorkerLimits& limits) {
  const ChildMessage sent = in_child(limits, [&] {
    try {
      return message_of(path, limits);
    } catch (const std::bad_alloc&) {
      std::string message(1, static_cast<char>(Result::kFailed));
      put(message, "[dicom] " + path +
                       ": needs more memory than a picture of --max-pixels. "
                       "Hint: is it damaged? Fetch it again");
      return message;
    }
  });
  if (sent.late) fail(path, sent.death(limits));
  const std::string& message = sent.text;
  Converted converted;
  try {
    size_t at = 1;
    if (static_cast<Result>(message.at(0)) == Result::kFailed)
      throw DataError(take(message, at));
    converted.skip = static_cast<Skip>(message.at(at++));
    for (const auto text : texts_of_radiograph())
      converted.picture.*text = take(message, at);
    const std::string png = take(message, at);
    const auto* bytes = reinterpret_cast<const std::byte*>(png.data());
    converted.png.assign(bytes, bytes + png.size());
  } catch (const std::out_of_range&) {
    fail(path, sent.death(limits));
  }
  return converted;
}

}  // namespace chexnet
