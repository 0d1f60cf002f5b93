#include "chexnet/report/redaction.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace chexnet {
namespace {

using Json = nlohmann::ordered_json;

// Bytes from 128 on are parts of letters in UTF-8.
bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 128 || std::isalnum(byte) != 0 || c == '_';
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::size_t end_of_run(std::string_view text, std::size_t at) {
  while (at < text.size() && in_word(text[at])) ++at;
  return at;
}

// Between chunks: what cannot be part of a path that is not quoted, a URL, an address.
bool separates(char c) {
  return static_cast<unsigned char>(c) <= ' ' ||
         std::string_view("'\"`,;()[]{}<>|=").find(c) != std::string_view::npos;
}

bool ends_with_any(std::string_view chunk, std::initializer_list<const char*> endings) {
  std::string small(chunk);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(endings, [&](const char* e) { return small.ends_with(e); });
}

// Groups of digits with dots between them; 0 when there is anything else.
std::size_t dotted_numbers(std::string_view chunk) {
  if (chunk.find_first_not_of("0123456789.") != std::string_view::npos) return 0;
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
  return std::ranges::any_of(kFolders, [&](const char* f) { return path.starts_with(f); });
}

bool of_program(std::string_view file) {
  return file == "config.yaml" || file == "split.csv" || file.starts_with("rank-");
}

// What a chunk is by its looks, or "".
std::string looks_like(std::string_view chunk) {
  if (const auto colon = chunk.find("://"); colon != std::string_view::npos)
    return std::string(chunk.substr(0, colon)) + "://PLACE";
  if (chunk.find('@') != std::string_view::npos) return "ADDRESS";
  if (chunk.starts_with("/") && chunk.size() > 1) return of_system(chunk) ? "" : "PATH";
  if (chunk.starts_with("~")) return "PATH";
  if (ends_with_any(chunk, {".png", ".jpg", ".jpeg", ".dcm", ".dicom"})) return "IMAGE";
  if (ends_with_any(chunk,
                    {".yaml", ".yml", ".csv", ".csv.gz", ".txt", ".tar", ".tar.gz", ".pack"}))
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
    if (colon == std::string_view::npos || !is_number(chunk.substr(colon + 1, end - colon - 1)))
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
    out += by.empty() ? chunk : std::string_view(by + std::string(chunk.substr(size)));
    at = end;
  }
  return out;
}

}  // namespace

void Redaction::hide(std::string_view word, const std::string& by) {
  while (!word.empty() && !in_word(word.front())) word.remove_prefix(1);
  while (!word.empty() && !in_word(word.back())) word.remove_suffix(1);
  if (word.size() < 2 || (is_number(word) && word.size() < 6)) return;
  words_.emplace(word, by);
  longest_word_ = std::max(longest_word_, word.size());
}

void Redaction::hide_path(std::string_view path, const std::string& by) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.find('/') == std::string_view::npos) return hide(path, by);
  if (path.size() > 1) paths_[path.size()].push_back({std::string(path), by});
}

std::string Redaction::without_paths(std::string_view text) const {
  std::string out(text);
  for (const auto& [size, paths] : paths_) {
    for (const auto& [path, by] : paths) {
      for (std::size_t at = 0; (at = out.find(path, at)) != std::string::npos; at += by.size()) {
        std::size_t end = at + path.size();
        if (end < out.size() && in_word(out[end])) continue;  // of a longer name; another rule's
        while (end < out.size() && out[end] == '/')           // what lies below it
          while (++end < out.size() && !separates(out[end]) && out[end] != '/' && out[end] != ':') {
          }
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
    // The longest hidden word that begins here and ends where a run of letters ends.
    std::size_t hidden_end = 0;
    auto hidden = words_.end();
    for (std::size_t end = first_end; end > at && end - at <= longest_word_;) {
      const auto found = words_.find(std::string(text.substr(at, end - at)));
      if (found != words_.end()) {
        hidden = found;
        hidden_end = end;
      }
      std::size_t next = end;
      while (next < text.size() && !in_word(text[next])) ++next;
      const std::size_t next_end = end_of_run(text, next);
      if (next_end == end || next == text.size()) break;
      end = next_end;
    }
    const bool hides = hidden != words_.end();
    out += hides ? std::string_view(hidden->second) : text.substr(at, first_end - at);
    at = hides ? hidden_end : first_end;
  }
  return out;
}

std::string Redaction::of_text(std::string_view text) const {
  return without_words(without_looks(without_paths(text)));
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

std::string Redaction::of_yaml(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const auto colon = line.find(':');
    const auto key = colon == std::string_view::npos ? 0 : colon + 1;
    out += std::string(line.substr(0, key)) + of_text(line.substr(key)) + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace chexnet
