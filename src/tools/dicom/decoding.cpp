#include "decoding.hpp"

#include <gdcmSequenceOfFragments.h>
#include <gdcmTrace.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

namespace chexnet {
namespace {

constexpr size_t kMostSegments = 15;
constexpr size_t kHead = 64;  // bytes: the number of segments, their offsets

uint32_t number_at(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i]));
  };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

// The bytes that a segment decodes to. A run is 257 less its length, and the
// byte that is repeated; others are one less than how many, and they
// themselves.
size_t decoded_bytes(std::string_view segment) {
  size_t decoded = 0;
  for (size_t at = 0; at + 1 < segment.size();) {
    const size_t count = static_cast<uint8_t>(segment[at]);
    ++at;
    if (count == 128) continue;  // nothing
    if (count > 128) {
      decoded += 257 - count;
      ++at;
      continue;
    }
    const size_t copied = std::min(count + 1, segment.size() - at);
    decoded += copied;
    at += copied;
  }
  return decoded;
}

std::string fragments_of(const gdcm::DataSet& set) {
  std::string bytes;
  const gdcm::SequenceOfFragments* fragments =
      set.GetDataElement(gdcm::Tag(0x7fe0, 0x0010)).GetSequenceOfFragments();
  const size_t count =
      fragments == nullptr ? 0 : fragments->GetNumberOfFragments();
  for (size_t i = 0; i < count; ++i) {
    const gdcm::ByteValue* part = fragments->GetFragment(i).GetByteValue();
    if (part != nullptr) bytes.append(part->GetPointer(), part->GetLength());
  }
  return bytes;
}

}  // namespace

DecoderMessages::DecoderMessages()
    : stderr_before_(stderr), kept_(::open_memstream(&bytes_, &count_)) {
  // glibc's stderr is a variable that may be set, so no file is needed, which
  // a filter of system calls would refuse.
  if (kept_ != nullptr) stderr = kept_;
  gdcm::Trace::SetErrorStream(errors_);
  gdcm::Trace::SetError(true);
}

DecoderMessages::~DecoderMessages() {
  gdcm::Trace::SetError(false);
  gdcm::Trace::SetErrorStream(std::cerr);
  stderr = stderr_before_;
  if (kept_ != nullptr) std::fclose(kept_);
  std::free(bytes_);
}

std::string DecoderMessages::first_line() const {
  if (kept_ != nullptr) std::fflush(kept_);
  const std::string_view printed(bytes_ == nullptr ? "" : bytes_, count_);
  const std::string all = std::string(printed) + errors_.str();
  return all.substr(0, all.find('\n'));
}

bool is_run_length_cut_off(const gdcm::Image& image, const gdcm::DataSet& set) {
  const std::string bytes = fragments_of(set);
  const std::string_view all = bytes;
  if (all.size() < kHead) return true;
  const size_t pixels = size_t{image.GetDimension(0)} * image.GetDimension(1);
  const size_t segments = number_at(all, 0);
  if (segments < 1 || segments > kMostSegments) return true;
  for (size_t i = 1; i <= segments; ++i) {
    const size_t begin = number_at(all, 4 * i);
    const size_t end = i < segments ? number_at(all, 4 * (i + 1)) : all.size();
    if (begin > end || end > all.size()) return true;
    if (decoded_bytes(all.substr(begin, end - begin)) < pixels) return true;
  }
  return false;
}

}  // namespace chexnet
