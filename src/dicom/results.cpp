#include "results.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "result_files.hpp"
#include "worker.hpp"

namespace chexnet {
namespace {

// Of a child's answer: the first character.
constexpr char kGood = '+', kOfThisFile = '1', kOfAll = '*';
constexpr WorkerLimits kLimits{.seconds = 60};

// The file may have been exchanged since it was scored.
Source read_scored(const Json& image) {
  const std::string path = path_of(image.at("file"));
  Source source = read_source(path);
  if (source.instance != image.at("instance"))
    throw DataError("[dicom] " + path +
                    ": is another picture than the one that was scored. Hint: "
                    "run predict again");
  return source;
}

struct Written {
  int reports = 0, captures = 0, failed = 0;
};

// In a process of its own, which GDCM may end.
void write_image(const Json& asked, const Json& image, const Uids& uids,
                 Written& written) {
  const int first = written.captures;
  const ChildMessage answer = in_child(kLimits, [&]() -> std::string {
    try {
      const Source source = read_scored(image);
      if (image.at("sr").is_string())
        write_report(source, image, asked.at("model"), uids,
                     written.reports + 1);
      int number = first;
      for (const auto& capture : image.at("captures"))
        write_capture(source, capture, asked.at("model").at("version"), uids,
                      ++number);
      return {kGood};
    } catch (const DataError& e) {
      return kOfThisFile + std::string(e.what());
    } catch (const Error& e) {
      return kOfAll + std::string(e.what());
    }
  });
  const char kind = answer.text.empty() ? kOfThisFile : answer.text[0];
  if (kind == kGood) {
    written.reports += image.at("sr").is_string() ? 1 : 0;
    written.captures += static_cast<int>(image.at("captures").size());
    return;
  }
  if (kind == kOfAll) throw CheckpointError(answer.text.substr(1));
  ++written.failed;
  log_warning(answer.text.empty()
                  ? "[dicom] " + path_of(image.at("file")) + ": " +
                        answer.death(kLimits) + ". Hint: is it damaged?"
                  : answer.text.substr(1));
}

}  // namespace

void write_results(const std::string& request) {
  Written written;
  try {
    const Json asked = Json::parse(read_text(request));
    const Uids uids{asked.at("request")};
    for (const auto& image : asked.at("images"))
      write_image(asked, image, uids, written);
  } catch (const nlohmann::json::exception& e) {
    throw DataError("[dicom] " + request + ": is no list of results (" +
                    e.what() + "). Hint: predict writes it");
  }
  std::cout << json_text(Json{{"reports", written.reports},
                              {"captures", written.captures},
                              {"failed", written.failed}})
            << std::endl;
}

}  // namespace chexnet
