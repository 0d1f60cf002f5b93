#include "chexnet/report/tensorboard.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <protozero/pbf_writer.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/safe_open.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

using Tag = protozero::pbf_tag_type;
// Field numbers of the messages, by their names there.
enum EventField : Tag {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7
};
enum SessionLogField : Tag { kStatus = 1 };
enum SummaryField : Tag { kValue = 1 };
enum ValueField : Tag {
  kTag = 1,
  kSimpleValue = 2,
  kImage = 4,
  kHisto = 5,
  kTensor = 8,
  kMetadata = 9
};
enum ImageField : Tag {
  kHeight = 1,
  kWidth = 2,
  kColorspace = 3,
  kEncoded = 4
};
enum HistogramField : Tag {
  kMin = 1,
  kMax = 2,
  kNum = 3,
  kSum = 4,
  kSumSquares = 5,
  kBucketLimit = 6,
  kBucket = 7
};
enum TensorField : Tag { kDtype = 1, kStringVal = 8 };
enum MetadataField : Tag { kPluginData = 1 };
enum PluginDataField : Tag { kPluginName = 1 };

constexpr int kStringType = 7;  // DT_STRING
constexpr int kStart = 1;       // SessionLog.START
constexpr int kRgb = 3;         // colorspace: channels
constexpr size_t kBins = 40;

// A record of this step, with what `fill` adds.
std::string event_record(
    int64_t step,
    const std::function<void(protozero::pbf_writer& event)>& fill) {
  std::string bytes;
  protozero::pbf_writer event(bytes);
  event.add_double(kWallTime, system_time_s());
  event.add_int64(kStep, step);
  fill(event);
  return bytes;
}

// One summary, whose values `fill` adds.
std::string summary_record(
    int64_t step,
    const std::function<void(protozero::pbf_writer& summary)>& fill) {
  return event_record(step, [&](protozero::pbf_writer& event) {
    protozero::pbf_writer summary(event, kSummary);
    fill(summary);
  });
}

// A record with one value of this tag, which `fill` says.
std::string value_record(
    const std::string& tag, int64_t step,
    const std::function<void(protozero::pbf_writer& value)>& fill) {
  return summary_record(step, [&](protozero::pbf_writer& summary) {
    protozero::pbf_writer value(summary, kValue);
    value.add_string(kTag, tag);
    fill(value);
  });
}

}  // namespace

TensorBoardLog::TensorBoardLog(const std::filesystem::path& folder,
                               int64_t first_step) {
  const auto name = "events.out.tfevents." +
                    std::to_string(static_cast<long long>(system_time_s())) +
                    "." + host_name() + "." + std::to_string(getpid());
  file_.open(AppendName(folder / name).name(),
             std::ios::binary | std::ios::app);
  std::string version;
  protozero::pbf_writer event(version);
  event.add_double(kWallTime, system_time_s());
  event.add_string(kFileVersion, "brain.Event:2");
  record(version);

  record(event_record(first_step, [](protozero::pbf_writer& start) {
    protozero::pbf_writer session(start, kSessionLog);
    session.add_enum(kStatus, kStart);
  }));
}

// TFRecord framing: length, masked CRC32C of it, bytes, masked CRC32C of them
// (tensorflow/core/lib/io/record_writer).
void TensorBoardLog::record(const std::string& bytes) {
  const auto masked = [](std::span<const std::byte> data) {
    const uint32_t crc = crc32c(data);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  const uint64_t length = bytes.size();
  const uint32_t length_crc = masked(std::as_bytes(std::span(&length, 1)));
  const uint32_t data_crc =
      masked(std::as_bytes(std::span(bytes.data(), bytes.size())));
  file_.write(reinterpret_cast<const char*>(&length), sizeof length);
  file_.write(reinterpret_cast<const char*>(&length_crc), sizeof length_crc);
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file_.write(reinterpret_cast<const char*>(&data_crc), sizeof data_crc);
  file_.flush();
}

void TensorBoardLog::scalars(
    int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  record(summary_record(step, [&](protozero::pbf_writer& summary) {
    for (const auto& [tag, number] : values) {
      if (!std::isfinite(number)) continue;
      protozero::pbf_writer value(summary, kValue);
      value.add_string(kTag, tag);
      value.add_float(kSimpleValue, static_cast<float>(number));
    }
  }));
}

void TensorBoardLog::text(const std::string& tag, int64_t step,
                          const std::string& markdown) {
  record(value_record(tag, step, [&](protozero::pbf_writer& value) {
    {
      protozero::pbf_writer tensor(value, kTensor);
      tensor.add_enum(kDtype, kStringType);
      tensor.add_string(kStringVal, markdown);
    }
    protozero::pbf_writer metadata(value, kMetadata);
    protozero::pbf_writer plugin(metadata, kPluginData);
    plugin.add_string(kPluginName, "text");
  }));
}

void TensorBoardLog::histogram(const std::string& tag, int64_t step,
                               std::span<const double> values) {
  std::array<double, kBins> limits{}, counts{};
  for (size_t i = 0; i < kBins; ++i)
    limits.at(i) = static_cast<double>(i + 1) / kBins;
  double least = 1, most = 0, sum = 0, squares = 0, count = 0;
  for (const double v : values) {
    if (!(v >= 0 && v <= 1)) continue;
    const auto bin = std::ranges::lower_bound(limits, v) - limits.begin();
    counts.at(static_cast<size_t>(bin)) += 1;
    least = std::min(least, v);
    most = std::max(most, v);
    sum += v;
    squares += v * v;
    count += 1;
  }
  if (count == 0) return;
  record(value_record(tag, step, [&](protozero::pbf_writer& value) {
    protozero::pbf_writer histogram(value, kHisto);
    histogram.add_double(kMin, least);
    histogram.add_double(kMax, most);
    histogram.add_double(kNum, count);
    histogram.add_double(kSum, sum);
    histogram.add_double(kSumSquares, squares);
    histogram.add_packed_double(kBucketLimit, limits.begin(), limits.end());
    histogram.add_packed_double(kBucket, counts.begin(), counts.end());
  }));
}

void TensorBoardLog::image(const std::string& tag, int64_t step,
                           std::string_view png, int width, int height) {
  record(value_record(tag, step, [&](protozero::pbf_writer& value) {
    protozero::pbf_writer image(value, kImage);
    image.add_int32(kHeight, height);
    image.add_int32(kWidth, width);
    image.add_int32(kColorspace, kRgb);
    image.add_bytes(kEncoded, png.data(), png.size());
  }));
}

}  // namespace chexnet
