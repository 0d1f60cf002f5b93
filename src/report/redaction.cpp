#include "chexnet/report/redaction.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <nlohmann/json.hpp>

namespace chexnet {
namespace {

// Three rules, in this order (Redaction::of_text):
//
//   paths   "/data/St. Elsewhere/x y.png: gone"  ->  "PATH: gone"      known
//   places and what is below words   "patient MRN-770000"                 ->
//   "patient PATIENT" known names, whole words looks   "00012345_003",
//   "10.1.2.3"           ->  "ID", "ADDRESS"   whatever looks like a name
//
// A known path goes first, because it may hold blanks that cut it into words.
// Looks go last: they take a part of a name that holds blanks or quotes for all
// of it. When in doubt a text is hidden: a missing word costs the help desk a
// question, a name that stays cannot be taken back.

using Json = nlohmann::ordered_json;

// Bytes from 128 on are parts of letters in UTF-8.
bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 128 || std::isalnum(byte) != 0 || c == '_';
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::size_t end_of_run(std::string_view text, std::size_t at) {
  while (at < text.size() && in_word(text[at])) ++at;
  return at;
}

// Between chunks: what cannot be part of a path that is not quoted, a URL, an
// address.
bool separates(char c) {
  return static_cast<unsigned char>(c) <= ' ' ||
         std::string_view("'\"`,;()[]{}<>|=").find(c) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

constexpr std::array kImageEndings = {".png", ".jpg", ".jpeg", ".dcm",
                                      ".dicom"};
constexpr std::array kTableEndings = {".yaml", ".yml", ".csv",    ".csv.gz",
                                      ".txt",  ".tar", ".tar.gz", ".pack"};

template <class Endings>
bool ends_with_any(std::string_view chunk, const Endings& endings) {
  const std::string small = lower(chunk);
  return std::ranges::any_of(endings,
                             [&](const char* e) { return small.ends_with(e); });
}

// Where the first image's name ends that the line from `at` on holds before a
// ": "; `at` when there is none. The name may be replaced already.
std::size_t end_of_image(std::string_view text, std::size_t at) {
  const auto line_end =
      std::min({text.find('\n', at), text.find(": ", at), text.size()});
  const std::string line = lower(text.substr(at, line_end - at));
  std::size_t first = std::string::npos;
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

// "patient 17", "Patient ID: 17", "MRN=17": does such a word stand at the end?
bool ends_with_patient(std::string_view text) {
  const std::string small =
      lower(text.substr(text.size() - std::min<std::size_t>(text.size(), 40)));
  std::string_view left = small;
  const auto cut_punctuation = [&] {
    while (!left.empty() && (!in_word(left.back()) || left.back() == '_'))
      left.remove_suffix(1);
  };
  cut_punctuation();
  if (left.ends_with("id")) left.remove_suffix(2);
  cut_punctuation();
  return left.ends_with("patient") || left.ends_with("patients") ||
         left.ends_with("mrn");
}

// Groups of digits with dots between them; 0 when there is anything else.
std::size_t dotted_numbers(std::string_view chunk) {
  if (chunk.find_first_not_of("0123456789.") != std::string_view::npos)
    return 0;
  return static_cast<std::size_t>(std::ranges::count(chunk, '.')) + 1;
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

// What a chunk is by its looks, or "".
std::string looks_like(std::string_view chunk) {
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

// One chunk without the punctuation and the line or port number behind it.
std::size_t kept_behind(std::string_view chunk) {
  std::size_t end = chunk.size();
  for (;;) {
    while (end > 0 && (chunk[end - 1] == '.' || chunk[end - 1] == ':')) --end;
    const auto colon = chunk.substr(0, end).rfind(':');
    if (colon == std::string_view::npos ||
        !is_number(chunk.substr(colon + 1, end - colon - 1)))
      return end;
    end = colon;
  }
}

std::string without_looks(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (separates(text[at])) {
      out += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !separates(text[end])) ++end;
    const std::string_view chunk = text.substr(at, end - at);
    const std::size_t size = kept_behind(chunk);
    const std::string by = looks_like(chunk.substr(0, size));
    const bool is_place = by == "PATH" || by.ends_with("://PLACE");
    const std::size_t image_end = is_place ? end_of_image(text, at) : at;
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

}  // namespace

void Redaction::hide(std::string_view word, const std::string& by) {
  while (!word.empty() && !in_word(word.front())) word.remove_prefix(1);
  while (!word.empty() && !in_word(word.back())) word.remove_suffix(1);
  if (word.empty() || (word.size() < 2 && !is_number(word))) return;
  words_.emplace(word, by);
  longest_word_ = std::max(longest_word_, word.size());
}

void Redaction::hide_name(std::string_view name, const std::string& by) {
  if (word_of_program(name)) return;
  hide(name, by);
  const auto is_letter = [](char c) {
    return c != '_' && in_word(c) && !is_number({&c, 1});
  };
  for (std::size_t at = 0; at < name.size(); ++at) {
    const auto begin = at;
    while (at < name.size() && name[at] != '_' && in_word(name[at])) ++at;
    const std::string_view word = name.substr(begin, at - begin);
    // With digits between its letters it is no word that stands alone, but a
    // part of a checksum.
    if (std::ranges::all_of(word, is_letter) && !word_of_program(word))
      hide(word, by);
  }
}

void Redaction::hide_path(std::string_view path, const std::string& by) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.find('/') == std::string_view::npos) return hide(path, by);
  if (path.size() < 2) return;
  paths_[path.size()].push_back({std::string(path), by});
  for (std::size_t at = 0; at < path.size(); ++at) {
    const auto end = std::min(path.find('/', at), path.size());
    const std::string_view folder = path.substr(at, end - at);
    if (folder.find_first_of(" '\"") != std::string_view::npos)
      hide_name(folder, by);
    at = end;
  }
}

// The longest hidden word that begins at `at` and ends where a run of letters
// ends.
Redaction::Found Redaction::longest_word(std::string_view text, std::size_t at,
                                         std::string_view before) const {
  assert(at <= text.size());
  Found longest{at, nullptr};
  for (std::size_t end = end_of_run(text, at);
       end > at && end - at <= longest_word_;) {
    const std::string_view word = text.substr(at, end - at);
    const auto found = words_.find(std::string(word));
    const bool may_be_count = is_number(word) && word.size() < 6;
    if (found != words_.end() && (!may_be_count || ends_with_patient(before)))
      longest = {end, &found->second};
    std::size_t next = end;
    while (next < text.size() && !in_word(text[next])) ++next;
    const std::size_t next_end = end_of_run(text, next);
    if (next_end == end || next == text.size()) break;
    end = next_end;
  }
  return longest;
}

// The end of the names below the path that ends at `end`.
std::size_t Redaction::end_below(std::string_view text, std::size_t end) const {
  if (end == text.size() || text[end] != '/') return end;
  const std::size_t image_end = end_of_image(text, end);
  assert(end < text.size());
  while (end < text.size() && text[end] == '/') {
    const std::size_t begin = end + 1;
    const std::size_t word_end = longest_word(text, begin, "").end;
    end = std::max(begin, word_end);
    while (end < text.size() && !separates(text[end]) && text[end] != '/' &&
           text[end] != ':')
      ++end;
  }
  return std::max(end, image_end);
}

std::string Redaction::without_paths(std::string_view text) const {
  std::string out(text);
  for (const auto& [size, paths] : paths_) {
    for (const auto& [path, by] : paths) {
      for (std::size_t at = 0; (at = out.find(path, at)) != std::string::npos;
           at += by.size()) {
        std::size_t end = at + path.size();
        if (end < out.size() && in_word(out[end]))
          continue;  // of a longer name; another rule's
        end = end_below(out, end);
        out.replace(at, end - at, by);
      }
    }
  }
  return out;
}

std::string Redaction::without_words(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first_end = end_of_run(text, at);
    if (first_end == at) {
      out += text[at++];
      continue;
    }
    const Found found = longest_word(text, at, out);
    out += found.by != nullptr ? std::string_view(*found.by)
                               : text.substr(at, first_end - at);
    at = found.by != nullptr ? found.end : first_end;
  }
  return out;
}

// Looks come last: they take a part of a name that holds blanks or quotes for
// all of it.
std::string Redaction::of_text(std::string_view text) const {
  return without_looks(without_words(without_paths(text)));
}

std::string Redaction::of_json(std::string_view text) const {
  const auto walk = [&](const auto& self, Json& value) -> void {
    if (value.is_string()) value = of_text(value.get_ref<const std::string&>());
    if (!value.is_structured()) return;
    for (auto& [key, inner] : value.items())
      if (!value.is_object() || key != "event") self(self, inner);
  };
  const auto cleaned = [&](std::string_view part, int indent) -> std::string {
    Json json = Json::parse(part, nullptr, false);
    if (json.is_discarded()) return of_text(part);
    walk(walk, json);
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
  };
  if (Json::accept(text)) return cleaned(text, 1) + "\n";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out += cleaned(text.substr(at, end - at), -1) + "\n";
    at = end + 1;
  }
  return out;
}

bool word_of_program(std::string_view word) {
  static constexpr std::array kWords = {
      "train",    "valid", "val",     "test",  "images",  "image",
      "pictures", "files", "file",    "data",  "patient", "patients",
      "study",    "view",  "frontal", "scan",  "png",     "PNG",
      "jpg",      "JPG",   "jpeg",    "JPEG",  "dcm",     "DCM",
      "csv",      "txt",   "run",     "runs",  "rank",    "ranks",
      "host",     "step",  "epoch",   "loss",  "device",  "cpu",
      "cuda",     "core",  "socket",  "node",  "slot",    "numa",
      "btl",      "tcp",   "self",    "vader", "pml",     "ucx",
      "none",     "auto",  "off",     "fp32",  "bf16",    "labels",
      "network",  "batch", "no",      "of",    "the",     "and",
      "in",       "on",    "to",      "at",    "is",      "for",
      "from",     "with",  "by",      "not",   "as",      "it",
      "be",       "or",    "a",       "an",    "info",    "error",
      "warning",  "Hint"};
  return std::ranges::find(kWords, word) != kWords.end();
}

}  // namespace chexnet
