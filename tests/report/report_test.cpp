#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "chexnet/report/run_results.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// The last record of an event file, as a message.
protozero::pbf_reader last_event(const std::string& bytes) {
  constexpr size_t kHead = 12, kTail = 4;
  std::string_view last;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, &bytes[at], sizeof length);
    last = std::string_view(bytes).substr(at + kHead, length);
    at += kHead + length + kTail;
  }
  return {last.data(), last.size()};
}

}  // namespace

TEST_CASE("metrics are JSON lines; a resume cuts what lies past its step") {
  const ScratchFolder folder;
  {
    MetricsLog log(folder.path(), {});
    log.write("train", 1, {{"loss", 0.5}, {"epoch", int64_t{0}}});
    log.write("val", 2,
              {{"mean_auroc", std::nan("")},
               {"auroc", std::map<std::string, double>{{"A", 0.7},
                                                       {"B", std::nan("")}}}});
    log.write("train", 3, {{"loss", 0.4}});
  }
  {
    std::ofstream(folder / "metrics.jsonl", std::ios::app)
        << "{\"event\":\"tra";  // torn by a crash
    MetricsLog log(folder.path(), {.step = 2});
    log.write("restart", 2, {});
  }
  const std::string text = read_text(folder / "metrics.jsonl");
  CHECK(text ==
        "{\"event\":\"train\",\"step\":1,\"loss\":0.5,\"epoch\":0}\n"
        "{\"event\":\"val\",\"step\":2,\"mean_auroc\":null,\"auroc\":{\"A\":0."
        "7,\"B\":null}}\n"
        "{\"event\":\"restart\",\"step\":2}\n");
}

TEST_CASE("TensorBoard records are framed with masked checksums") {
  const ScratchFolder folder;
  {
    MetricsLog log(folder.path(), {});
    log.write("train", 1, {{"loss", 0.5}});
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      bytes = read_text(entry.path());
  int records = 0;
  for (size_t at = 0; at < bytes.size(); ++records) {
    uint64_t length = 0;
    uint32_t sum = 0;
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&sum, &bytes[at + 8], 4);
    const auto masked = [](std::string_view part) {
      const auto crc =
          crc32c(std::as_bytes(std::span(part.data(), part.size())));
      return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
    };
    REQUIRE(sum == masked(std::string_view(bytes).substr(at, 8)));
    std::memcpy(&sum, &bytes[at + 12 + length], 4);
    REQUIRE(sum == masked(std::string_view(bytes).substr(at + 12, length)));
    at += 16 + length;
  }
  CHECK(records == 3);  // version, start of a session, the figures
  CHECK(bytes.find("train/loss") != std::string::npos);
}

TEST_CASE("a torn line and lines that are no objects go at every start") {
  const ScratchFolder folder;
  folder.write(
      "metrics.jsonl",
      "{\"event\":\"start\",\"step\":0}\n17\n[1]\n{\"event\":\"train\",\"st");
  {
    MetricsLog log(folder.path(), {});
    log.write("start", 0, {});
  }
  CHECK(read_text(folder / "metrics.jsonl") ==
        "{\"event\":\"start\",\"step\":0}\n{\"event\":\"start\",\"step\":0}\n");
  folder.write("metrics.jsonl",
               "null\n3\n{\"event\":\"train\"}\n{\"step\":\"x\"}\n");
  write_results(folder.path(), {}, {});
  report_html(folder.path(), {});
}

TEST_CASE("what a resume does again leaves no second line") {
  const ScratchFolder folder;
  {
    MetricsLog log(folder.path(), {});
    for (const char* event : {"checkpoint", "val", "final", "end"})
      log.write(event, 5, {});
  }
  const auto path = folder / "metrics.jsonl";
  { MetricsLog log(folder.path(), {.step = 5}); }
  CHECK(read_text(path) ==
        "{\"event\":\"checkpoint\",\"step\":5}\n{\"event\":\"val\",\"step\":5}"
        "\n");
  { MetricsLog log(folder.path(), {.step = 5, .evaluation_due = true}); }
  CHECK(read_text(path) == "{\"event\":\"checkpoint\",\"step\":5}\n");
  {
    MetricsLog log(folder.path(), {.step = 5});
    log.write("train", 5, {});
  }
  { MetricsLog log(folder.path(), {.step = 5}); }
  CHECK(read_text(path).ends_with("{\"event\":\"train\",\"step\":5}\n"));
  { MetricsLog log(folder.path(), {.step = 5, .has_unlogged = true}); }
  CHECK(read_text(path) == "{\"event\":\"checkpoint\",\"step\":5}\n");
}

TEST_CASE("text in any encoding is written, with replacements") {
  const ScratchFolder folder;
  MetricsLog log(folder.path(), {});
  log.write("val", 1,
            {{"auroc", std::map<std::string, double>{{"\xd6"
                                                      "dem",
                                                      0.7}}}});
  CHECK(read_text(folder / "metrics.jsonl") ==
        "{\"event\":\"val\",\"step\":1,\"auroc\":{\"\xef\xbf\xbd"
        "dem\":0.7}}\n");
}

TEST_CASE("figures of a split have a tag of their own in TensorBoard") {
  const ScratchFolder folder;
  {
    MetricsLog log(folder.path(), {});
    for (const char* split : {"val", "test"})
      log.write("final", 9,
                {{"split", std::string(split)},
                 {"loss", 0.5},
                 {"images", int64_t{4}}});
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("events.out"))
      bytes = read_text(entry.path());
  CHECK(bytes.find("final/val/loss") != std::string::npos);
  CHECK(bytes.find("final/test/loss") != std::string::npos);
  // Whole numbers are figures too.
  CHECK(bytes.find("final/test/images") != std::string::npos);
}

TEST_CASE("a histogram holds what lies in 0..1, each value in one bin") {
  const ScratchFolder folder;
  const std::vector<double> values = {0, 0.025, 0.02501, 0.5,         1,
                                      1, 1.5,   -0.1,    std::nan("")};
  {
    TensorBoardLog log(folder.path(), 1);
    REQUIRE(log.good());
    log.histogram("h", 3, values);
    log.histogram("none", 3, std::vector<double>{2.0});
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    bytes = read_text(entry.path());
  CHECK(bytes.find("none") == std::string::npos);
  protozero::pbf_reader event = last_event(bytes);
  REQUIRE(event.next(5));
  protozero::pbf_reader summary = event.get_message();
  REQUIRE(summary.next(1));
  protozero::pbf_reader value = summary.get_message();
  REQUIRE(value.next(5));
  protozero::pbf_reader histogram = value.get_message();
  std::vector<double> counts;
  double sum = 0;
  while (histogram.next()) switch (histogram.tag()) {
      case 4:
        sum = histogram.get_double();
        break;
      case 7:
        for (const double count : histogram.get_packed_double())
          counts.push_back(count);
        break;
      default:
        histogram.skip();
    }
  REQUIRE(counts.size() == 40);
  CHECK(counts[0] == 2);  // a limit belongs to the bin below it
  CHECK(counts[1] == 1);
  CHECK(counts[19] == 1);
  CHECK(counts[39] == 2);
  CHECK(sum == Approx(2.55001));
}

TEST_CASE("readers of event files drop what a resumed run writes again") {
  const ScratchFolder folder;
  { const TensorBoardLog log(folder.path(), 8); }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    bytes = read_text(entry.path());
  protozero::pbf_reader event = last_event(bytes);
  int64_t step = 0;
  int status = 0;
  while (event.next()) switch (event.tag()) {
      case 2:
        step = event.get_int64();
        break;
      case 7: {
        protozero::pbf_reader session = event.get_message();
        REQUIRE(session.next(1));
        status = session.get_enum();
        break;
      }
      default:
        event.skip();
    }
  CHECK(step == 8);
  CHECK(status == 1);  // SessionLog.START
}

TEST_CASE("an error is kept with the run it ended, and nowhere else") {
  const ScratchFolder folder;
  write_error_event(folder.path(), 3, "no run here");
  CHECK_FALSE(std::filesystem::exists(folder / "metrics.jsonl"));
  folder.write("config.yaml", "");
  folder.write("metrics.jsonl", "{\"event\":\"train\",\"step\":7}\n{\"torn");
  write_error_event(folder.path(), 3, "gone");
  CHECK(read_text(folder / "metrics.jsonl")
            .ends_with("\n{\"event\":\"error\",\"step\":7,\"exit_code\":3,"
                       "\"sentence\":\"gone\"}\n"));
}
