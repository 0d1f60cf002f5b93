// Three rules, in this order (Redaction::of_text):
//
//   paths  known paths and what is below them
//          "/data/St. Elsewhere/x y.png: gone"  ->  "PATH: gone"
//   words  known names, as whole words
//          "patient MRN-770000"                 ->  "patient PATIENT"
//   looks  whatever looks like a name (name_patterns.hpp)
//          "00012345_003", "10.1.2.3"           ->  "ID", "ADDRESS"
//
// A known path goes first, because it may hold blanks that cut it into words.
// Looks go last: they take a part of a name that holds blanks or quotes for all
// of it. When in doubt a text is hidden: a missing word costs the help desk a
// question, a name that stays cannot be taken back.
#include "chexnet/report/redaction.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>

#include "chexnet/core/json.hpp"
#include "chexnet/core/plain_text.hpp"
#include "name_patterns.hpp"

namespace chexnet {
namespace {

size_t end_of_run(std::string_view text, size_t at) {
  while (at < text.size() && in_word(text[at])) ++at;
  return at;
}

// "patient 17", "Patient ID: 17", "MRN=17": does such a word stand at the end?
bool ends_with_patient(std::string_view text) {
  const std::string small =
      lowered(text.substr(text.size() - std::min<size_t>(text.size(), 40)));
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

// Keys that the program writes itself. All others are data: findings, images.
bool is_own_key(std::string_view key) {
  return key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") ==
         std::string_view::npos;
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
  for (size_t at = 0; at < name.size(); ++at) {
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
  for (size_t at = 0; at < path.size(); ++at) {
    const auto end = std::min(path.find('/', at), path.size());
    const std::string_view folder = path.substr(at, end - at);
    if (folder.find_first_of(" '\"") != std::string_view::npos)
      hide_name(folder, by);
    at = end;
  }
}

// The longest hidden word that begins at `at` and ends where its letters end.
Redaction::Found Redaction::longest_word(std::string_view text, size_t at,
                                         std::string_view before) const {
  assert(at <= text.size());
  Found longest{at, nullptr};
  for (size_t end = end_of_run(text, at);
       end > at && end - at <= longest_word_;) {
    const std::string_view word = text.substr(at, end - at);
    const auto found = words_.find(std::string(word));
    const bool may_be_count = is_number(word) && word.size() < 6;
    if (found != words_.end() && (!may_be_count || ends_with_patient(before)))
      longest = {end, &found->second};
    size_t next = end;
    while (next < text.size() && !in_word(text[next])) ++next;
    const size_t next_end = end_of_run(text, next);
    if (next_end == end || next == text.size()) break;
    end = next_end;
  }
  return longest;
}

// The end of the names below the path that ends at `end`.
size_t Redaction::end_below(std::string_view text, size_t end) const {
  if (end == text.size() || text[end] != '/') return end;
  const size_t image_end = end_of_image(text, end);
  assert(end < text.size());
  while (end < text.size() && text[end] == '/') {
    const size_t begin = end + 1;
    const size_t word_end = longest_word(text, begin, "").end;
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
      for (size_t at = 0; (at = out.find(path, at)) != std::string::npos;
           at += by.size()) {
        size_t end = at + path.size();
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
  for (size_t at = 0; at < text.size();) {
    const size_t first_end = end_of_run(text, at);
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

std::string Redaction::of_text(std::string_view text) const {
  return without_names(without_words(without_paths(text)));
}

// A number of "patients" is a count, and one in a list of them is a name.
Json Redaction::of_number(const Json& number, std::string_view before) const {
  const std::string text = number.dump();
  const Found found = longest_word(text, 0, before);
  const bool is_name = found.by != nullptr && found.end == text.size();
  return is_name ? Json(*found.by) : number;
}

Json Redaction::of_object(const Json& object) const {
  Json clean = Json::object();
  for (const auto& [key, value] : object.items()) {
    const std::string name = is_own_key(key) ? key : of_text(key);
    std::string unused = name;
    for (int n = 2; clean.contains(unused); ++n)
      unused = name + " " + std::to_string(n);
    const bool is_count = value.is_number() && key.ends_with("patients");
    clean[unused] =
        key == "event" ? value : of_value(value, is_count ? "" : key);
  }
  return clean;
}

Json Redaction::of_value(const Json& value, std::string_view key) const {
  if (value.is_string()) return of_text(value.get_ref<const std::string&>());
  if (value.is_number()) return of_number(value, key);
  if (value.is_object()) return of_object(value);
  if (!value.is_array()) return value;
  Json clean = Json::array();
  for (const Json& item : value) clean.push_back(of_value(item, key));
  return clean;
}

std::string Redaction::of_json(std::string_view text) const {
  const auto cleaned = [&](std::string_view part, int indent) -> std::string {
    const Json json = Json::parse(part, nullptr, false);
    if (json.is_discarded()) return of_text(part);
    return json_text(of_value(json, ""), indent);
  };
  if (Json::accept(text)) return cleaned(text, 1) + "\n";
  std::string out;
  for (size_t at = 0; at < text.size();) {
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
