#include "name_patterns.hpp"

#include <algorithm>
#include <array>

#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

constexpr std::array kImageEndings = {".png", ".jpg", ".jpeg", ".dcm",
                                      ".dicom"};
constexpr std::array kTableEndings = {".yaml", ".yml", ".csv",    ".csv.gz",
                                      ".txt",  ".tar", ".tar.gz", ".pack"};

template <class Endings>
bool ends_with_any(std::string_view chunk, const Endings& endings) {
  const std::string small = lowered(chunk);
  return std::ranges::any_of(endings,
                             [&](const char* e) { return small.ends_with(e); });
}

// Groups of digits with dots between them; 0 when there is anything else.
size_t dotted_numbers(std::string_view chunk) {
  if (chunk.find_first_not_of("0123456789.") != std::string_view::npos)
    return 0;
  return static_cast<size_t>(std::ranges::count(chunk, '.')) + 1;
}

// 00012345 and 00012345_003.
bool nih_number(std::string_view chunk) {
  if (chunk.size() == 12 && chunk[8] == '_' && is_number(chunk.substr(9)))
    chunk = chunk.substr(0, 8);
  return chunk.size() == 8 && is_number(chunk);
}

bool of_system(std::string_view path) {
  static constexpr std::array kFolders = {"/usr/", "/lib/", "/lib64/", "/proc/",
                                          "/sys/", "/dev/", "/etc/"};
  return std::ranges::any_of(
      kFolders, [&](const char* f) { return path.starts_with(f); });
}

bool of_program(std::string_view file) {
  return file == "config.yaml" || file == "split.csv" ||
         file.starts_with("rank-");
}

// The kind of a chunk by its form, or "".
std::string kind_of_name(std::string_view chunk) {
  if (const auto colon = chunk.find("://"); colon != std::string_view::npos)
    return std::string(chunk.substr(0, colon)) + "://PLACE";
  if (chunk.find('@') != std::string_view::npos) return "ADDRESS";
  if (chunk.starts_with("/") && chunk.size() > 1)
    return of_system(chunk) ? "" : "PATH";
  if (chunk.starts_with("~")) return "PATH";
  if (ends_with_any(chunk, kImageEndings)) return "IMAGE";
  if (ends_with_any(chunk, kTableEndings))
    return of_program(chunk) ? "" : "FILE";
  if (dotted_numbers(chunk) == 4) return "ADDRESS";
  if (dotted_numbers(chunk) > 5) return "UID";
  return nih_number(chunk) ? "ID" : "";
}

// One chunk without the punctuation and the line or port number after it.
size_t kept_behind(std::string_view chunk) {
  size_t end = chunk.size();
  for (;;) {
    while (end > 0 && (chunk[end - 1] == '.' || chunk[end - 1] == ':')) --end;
    const auto colon = chunk.substr(0, end).rfind(':');
    if (colon == std::string_view::npos ||
        !is_number(chunk.substr(colon + 1, end - colon - 1)))
      return end;
    end = colon;
  }
}

}  // namespace

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 128 || std::isalnum(byte) != 0 || c == '_';
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool separates(char c) {
  return static_cast<unsigned char>(c) <= ' ' ||
         std::string_view("'\"`,;()[]{}<>|=").find(c) != std::string_view::npos;
}

size_t end_of_image(std::string_view text, size_t at) {
  const auto line_end =
      std::min({text.find('\n', at), text.find(": ", at), text.size()});
  const std::string line = lowered(text.substr(at, line_end - at));
  size_t first = std::string::npos;
  const auto look_for = [&](std::string_view ending) {
    const auto end = line.find(ending);
    if (end == std::string::npos) return;
    const auto behind = end + ending.size();
    const bool ends = behind == line.size() ||
                      (!in_word(line[behind]) && line[behind] != '/');
    if (ends) first = std::min(first, behind);
  };
  for (const char* ending : kImageEndings) look_for(ending);
  look_for("/image");
  return first == std::string::npos ? at : at + first;
}

std::string without_names(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (separates(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && !separates(text[end])) ++end;
    const std::string_view chunk = text.substr(at, end - at);
    const size_t size = kept_behind(chunk);
    const std::string by = kind_of_name(chunk.substr(0, size));
    const bool is_place = by == "PATH" || by.ends_with("://PLACE");
    const size_t image_end = is_place ? end_of_image(text, at) : at;
    if (image_end > end) {
      out += by;
      at = image_end;
      continue;
    }
    out +=
        by.empty() ? std::string(chunk) : by + std::string(chunk.substr(size));
    at = end;
  }
  return out;
}

}  // namespace chexnet
