#include "results.hpp"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "result_files.hpp"
#include "worker.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// Of a child's answer: the first character.
constexpr char kGood = '+', kOfThisFile = '1', kOfAll = '*';
const WorkerLimits kLimits{{}, 60};

// The file may have been exchanged since it was scored.
Source read_scored(const Json& image) {
  const std::string path = path_of(image.at("file"));
  Source source = read_source(path);
  if (source.instance != image.at("instance"))
    throw DataError(
        "[dicom] {}: is another picture than the one that was scored. Hint: "
        "run predict again",
        path);
  return source;
}

struct Written {
  int reports = 0, captures = 0, failed = 0;
};

// The files of one image, in the order of files_of(). In a separate process,
// which GDCM may end; it cannot write, so they come as its answer.
ChildMessage results_of(const Json& asked, const Json& image, const Uids& uids,
                        const Written& written) {
  return in_child(kLimits, [&]() -> std::string {
    std::string answer(1, kGood);
    try {
      const Source source = read_scored(image);
      const Json& model = asked.at("model");
      if (image.at("sr").is_string())
        put(answer,
            report_file(source, image, model, uids, written.reports + 1));
      int number = written.captures;
      for (const auto& capture : image.at("captures"))
        put(answer, capture_file(source, capture, image.value("note", ""),
                                 model.at("version"), uids, ++number));
    } catch (const DataError& e) {
      return kOfThisFile + std::string(e.what());
    } catch (const Error& e) {
      return kOfAll + std::string(e.what());
    }
    return answer;
  });
}

std::vector<std::string> files_of(const Json& image) {
  std::vector<std::string> paths;
  if (image.at("sr").is_string()) paths.push_back(path_of(image.at("sr")));
  for (const auto& capture : image.at("captures"))
    paths.push_back(path_of(capture.at("sc")));
  return paths;
}

// Nothing half-written stays.
void write_new(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)))
    throw CheckpointError(
        "[dicom] {}: is there already. Hint: does another predict write to "
        "this folder? Name a new one",
        path.string());
  write_atomically(path, bytes);
}

// As the worker sent them. None where it died before the end of its answer.
std::optional<std::vector<std::string>> files_in(const std::string& answer,
                                                 size_t count) {
  std::vector<std::string> files;
  size_t at = 1;
  try {
    while (files.size() < count) files.push_back(take(answer, at));
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
  return files;
}

void write_image(const Json& asked, const Json& image, const Uids& uids,
                 Written& written) {
  const ChildMessage answer = results_of(asked, image, uids, written);
  const char kind = answer.text.empty() ? kOfThisFile : answer.text[0];
  if (kind == kOfAll) throw CheckpointError(answer.text.substr(1));
  const std::vector<std::string> paths = files_of(image);
  std::optional<std::vector<std::string>> files;
  if (kind == kGood) files = files_in(answer.text, paths.size());
  if (files) {
    for (size_t i = 0; i < paths.size(); ++i) write_new(paths[i], (*files)[i]);
    written.reports += image.at("sr").is_string() ? 1 : 0;
    written.captures += static_cast<int>(image.at("captures").size());
    return;
  }
  ++written.failed;
  const bool said = kind == kOfThisFile && !answer.text.empty();
  log_warning(said ? answer.text.substr(1)
                   : "[dicom] " + path_of(image.at("file")) + ": " +
                         answer.death(kLimits) + ". Hint: is it damaged?");
}

}  // namespace

void write_results(const std::string& request) {
  Written written;
  workers_are_filtered();  // a warning where not
  try {
    const Json asked = Json::parse(read_text(request));
    const Uids uids{asked.at("request")};
    for (const auto& image : asked.at("images"))
      write_image(asked, image, uids, written);
  } catch (const nlohmann::json::exception& e) {
    throw DataError(
        "[dicom] {}: is no list of results ({}). Hint: predict writes it",
        request, e.what());
  }
  std::cout << json_text(Json{{"reports", written.reports},
                              {"captures", written.captures},
                              {"failed", written.failed}})
            << std::endl;
}

}  // namespace chexnet
