// What GDCM's decoders do not report: messages that go to stderr only, and
// run-length coded pixels that end too early.
#pragma once

#include <gdcmDataSet.h>
#include <gdcmImage.h>

#include <cstddef>
#include <cstdio>
#include <sstream>
#include <string>

namespace chexnet {

// While this lives, it keeps the messages of decoders: libjpeg and OpenJPEG
// print them to C's stderr, GDCM to its error stream. A sound picture has no
// message. One at a time, on the only thread.
class DecoderMessages {
 public:
  DecoderMessages();
  ~DecoderMessages();
  DecoderMessages(const DecoderMessages&) = delete;
  DecoderMessages& operator=(const DecoderMessages&) = delete;
  std::string first_line() const;  // empty: nothing was said

 private:
  char* bytes_ = nullptr;
  size_t count_ = 0;
  std::FILE* stderr_before_;
  std::FILE* kept_;  // writes to bytes_; null where there was no memory
  std::ostringstream errors_;
};

// Whether a segment of pixels coded as PS3.5 annex G has fewer bytes than the
// picture has pixels. GDCM fills those up.
bool is_run_length_cut_off(const gdcm::Image& image, const gdcm::DataSet& set);

}  // namespace chexnet
