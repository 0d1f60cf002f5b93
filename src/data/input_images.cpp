// Paths are searched in groups of consecutive existing ones, so that the
// archives of a group are indexed side by side and a missing one keeps its
// position in the order.
#include "chexnet/data/input_images.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/table_text.hpp"
#include "found_images.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Files that lie beside images in folders and archives. For whatever else is no
// image the decoder says so, in its row.
bool is_named_like_no_image(std::string_view path) {
  static constexpr std::array<std::string_view, 16> kEndings = {
      ".csv", ".tsv",  ".txt", ".md", ".json", ".jsonl", ".yaml", ".yml",
      ".xml", ".html", ".htm", ".py", ".sh",   ".log",   ".pdf",  ".db"};
  const auto name = file_name(path);
  const std::string lower = lowered(name);
  return name.starts_with('.') || lower == "dicomdir" ||
         std::ranges::any_of(kEndings,
                             [&](auto end) { return lower.ends_with(end); });
}

// A table or a list that is named where images are: pictures begin with bytes
// that are no text.
bool is_list(const std::string& path) {
  constexpr size_t kHead = 512;
  const std::string lower = lowered(file_name(path));
  const bool is_named_so = lower.find('.') == std::string::npos ||
                           std::ranges::any_of(
                               std::array<std::string_view, 5>{
                                   ".csv", ".tsv", ".txt", ".lst", ".list"},
                               [&](auto end) { return lower.ends_with(end); });
  if (!is_named_so || is_s3(path)) return false;
  const std::string head = read_text_start(path, kHead);
  return !head.empty() && head.find('\0') == std::string::npos;
}

std::string image_name(const FoundImage& image, const Container& container) {
  if (container.kind == ContainerKind::kFile) return container.path;
  std::string_view part = image.name;
  while (part.starts_with("./")) part.remove_prefix(2);
  return container.path + "/" + std::string(part);
}

// Files below a folder that are named like images and cannot be any: each with
// the reason. A walk for images skips them.
std::vector<std::pair<std::string, std::string>> no_files_below(
    const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  std::error_code error;
  for (fs::recursive_directory_iterator
           entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code of_entry;
    if (entry->is_regular_file(of_entry) || entry->is_directory(of_entry) ||
        is_named_like_no_image(entry->path().native()))
      continue;
    found.emplace_back(entry->path().string(),
                       entry->exists(of_entry)
                           ? "is a pipe or a device"
                           : "is a link that leads nowhere");
  }
  std::ranges::sort(found);
  return found;
}

// The same for all spellings of a path: absolute, without "." and "..". Links
// stay as they are, but where a ".." follows one.
std::string one_spelling(const std::string& path) {
  if (is_s3(path)) return path;
  const fs::path absolute = fs::absolute(path);
  if (std::ranges::find(absolute, "..") == absolute.end())
    return absolute.lexically_normal().string();
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(absolute.parent_path(), error);
  return error ? path : (folder / absolute.filename()).string();
}

// An object store's path may be an object or the prefix of some.
bool is_there(const std::string& path, Stores& stores) {
  Store& store = stores.of(path);
  if (store.exists(path)) return true;
  if (!is_s3(path)) return false;
  try {
    return !store.list(path).empty();
  } catch (const AbsentError&) {
    return false;
  }
}

class Search {
 public:
  Search(Stores& stores, const Tick& tick) : stores_(stores), tick_(tick) {}

  void add(const InputPlace& place) {
    if (!place.listed || is_there(place.path, stores_)) {
      run_.push_back(place.path);
      return;
    }
    search_run();
    ++result_.absent;
    result_.images.push_back({place.path, "[images] " + printable(place.path) +
                                              ": No such file or directory"});
  }

  InputImages finish() {
    search_run();
    result_.left_out = left_out_.size();
    return std::move(result_);
  }

 private:
  void search_run() {
    if (run_.empty()) return;
    std::vector<Container> containers;
    std::vector<std::string> damage;
    auto found =
        find_undamaged_images(run_, stores_, containers, tick_, &damage);
    const std::set<std::string> named(run_.begin(), run_.end());
    for (const auto& place : run_)
      for (const auto& [name, reason] : no_files_below(place))
        result_.images.push_back(
            {name, "[images] " + printable(name) + ": " + reason});
    const auto first = static_cast<uint32_t>(result_.containers.size());
    size_t open = 0;  // containers before it have all their rows
    for (FoundImage& image : found) {
      for (; open < image.location.container; ++open)
        take_damage(containers[open], damage[open]);
      const Container& container = containers[image.location.container];
      const bool is_part = container.kind != ContainerKind::kFile;
      const bool is_named = !is_part && named.contains(container.path);
      if (!is_named &&
          is_named_like_no_image(is_part ? image.name : container.path))
        left_out_.insert(image_name(image, container));
      else if (is_named && is_list(container.path))
        take_list(container.path);
      else
        take(std::move(image), container, first);
    }
    for (; open < containers.size(); ++open)
      take_damage(containers[open], damage[open]);
    std::ranges::move(containers, std::back_inserter(result_.containers));
    run_.clear();
  }

  void take_list(const std::string& path) {
    if (!places_.emplace(one_spelling(path), 0).second) return;
    names_.insert(path);
    const std::string shown = printable(path);
    result_.images.push_back(
        {path, "[images] " + shown +
                   ": is text, and no image. Hint: a list of images is given "
                   "as @" +
                   shown});
  }

  // Of a damaged container: a row after those of its parts before the damage.
  void take_damage(const Container& container, const std::string& damage) {
    constexpr uint64_t kWhole = UINT64_MAX;
    if (damage.empty() ||
        !places_.emplace(one_spelling(container.path), kWhole).second)
      return;
    log_warning(printable(damage));
    names_.insert(container.path);
    result_.images.push_back({container.path, printable(damage)});
  }

  // `first`: the index of the group's first container among all.
  void take(FoundImage image, const Container& container, uint32_t first) {
    const uint64_t number = image.location.number;
    if (!places_.emplace(one_spelling(container.path), number).second) return;
    std::string name = image_name(image, container);
    if (!names_.insert(name).second) {
      name += "#" + std::to_string(number);
      if (!names_.insert(name).second) return;
    }
    image.location.container += first;
    result_.images.push_back({std::move(name), ""});
    result_.found.push_back(std::move(image));
  }

  using Place = std::pair<std::string, uint64_t>;  // container, number
  Stores& stores_;
  const Tick& tick_;
  std::vector<std::string> run_;    // paths that are searched together
  std::set<Place> places_;          // that have a row
  std::set<std::string> names_;     // of rows
  std::set<std::string> left_out_;  // names
  InputImages result_;
};

void refuse_none(const InputImages& input,
                 const std::vector<InputPlace>& places) {
  const std::string first =
      places.empty() ? "the list" : printable(places.front().path);
  const std::string more =
      places.size() > 1
          ? " and " + counted(std::ssize(places) - 1, "other place")
          : "";
  const std::string others =
      input.left_out > 0
          ? formatted(", only {} of other kinds",
                      counted(static_cast<int64_t>(input.left_out), "file"))
          : "";
  if (input.images.empty())
    throw AbsentError(
        "[predict] {}{}: no image is there{}. Hint: name PNG or JPEG files, "
        "folders, archives or packs of them; @FILE for a list",
        first, more, others);
  if (input.absent == input.images.size())
    throw AbsentError(
        "[predict] {}{}: nothing that the list names is there. Hint: paths in "
        "a list are relative to the working folder",
        first, more);
}

void warn_of_absent(const InputImages& input) {
  if (input.absent > 0)
    log_warning("[predict] " +
                counted(static_cast<int64_t>(input.absent), "place") +
                " of a list not found: each is a row with an error. "
                "Hint: paths in a list are relative to the working folder");
}

// A pipe may have no end.
std::string list_text(const std::string& list, const S3Config& s3) {
  constexpr size_t kMost = size_t{1} << 30;
  if (!list.starts_with("/dev/")) return table_text(list, s3);
  std::string text = read_text_start(list, kMost + 1);
  if (text.size() > kMost)
    throw ConfigError(
        "[predict] {}: the list is longer than a GiB. Hint: does what writes "
        "it come to an end? Else give it in parts",
        list);
  return text;
}

// Of UTF-16, as PowerShell's `>` writes it, single letters would be paths: "/".
void refuse_other_encoding(const std::string& list, const std::string& lines) {
  const bool is_utf16 =
      lines.starts_with("\xff\xfe") || lines.starts_with("\xfe\xff");
  if (is_utf16)
    throw DataError(
        "[predict] {}: a list in UTF-16. Hint: iconv -f UTF-16 -t UTF-8; in "
        "PowerShell, Out-File -Encoding utf8",
        list);
}

}  // namespace

std::vector<InputPlace> input_places(const std::vector<std::string>& named,
                                     const S3Config& s3) {
  std::vector<InputPlace> places;
  for (const auto& text : named) {
    const bool is_list = text == "-" || text.starts_with('@');
    if (!is_list) {
      places.push_back({text, false});
      continue;
    }
    const bool is_stdin = text == "-" || text == "@-";
    if (text == "@")
      throw ConfigError(
          "[predict] @: no file is named. Hint: @FILE, with one path per line");
    const std::string list = is_stdin ? "/dev/stdin" : text.substr(1);
    const std::string lines = list_text(list, s3);
    refuse_other_encoding(list, lines);
    for (auto& path : list_lines(lines))
      places.push_back({std::move(path), true});
  }
  return places;
}

InputImages find_input_images(const std::vector<InputPlace>& places,
                              Stores& stores, const Tick& tick) {
  Search search(stores, tick);
  for (const auto& place : places) search.add(place);
  InputImages input = search.finish();
  refuse_none(input, places);
  warn_of_absent(input);
  return input;
}

}  // namespace chexnet
