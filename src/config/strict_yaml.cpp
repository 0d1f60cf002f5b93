#include "chexnet/config/strict_yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// yaml-cpp takes some 200 bytes for each bracket before it returns the first.
constexpr size_t kMaxConfigBytes = 1 << 18;
constexpr int kMaxDepth = 32;

[[noreturn]] void fail(const std::string& place, const std::string& what,
                       const std::string& hint) {
  throw ConfigError("[config] {}: {}. Hint: {}", place, what, hint);
}

// Refuses aliases and depth while parsing: yaml-cpp would otherwise build a
// self-referencing node.
class StructureGuard : public YAML::EventHandler {
 public:
  explicit StructureGuard(std::string file) : file_(std::move(file)) {}
  std::string place() const {
    return place(document_);
  }  // where the last document begins
  void OnDocumentStart(const YAML::Mark& mark) override { document_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(place(mark), "aliases (*name) are not accepted",
         "write the value out");
  }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string&,
                       YAML::anchor_t, YAML::EmitterStyle::value) override {
    deeper(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    deeper(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  std::string place(const YAML::Mark& mark) const {
    return file_ + ":" + std::to_string(mark.line + 1);
  }
  void deeper(const YAML::Mark& mark) {
    if (++depth_ > kMaxDepth)
      fail(place(mark), "nested too deeply",
           "keys are at most four levels deep");
  }
  std::string file_;
  YAML::Mark document_;
  int depth_ = 0;
};

std::string place_of(const std::string& file, const YAML::Node& node) {
  return file + ":" + std::to_string(node.Mark().line + 1);
}

void flatten(const std::string& file, const YAML::Node& node,
             const std::string& prefix,
             std::map<std::string, YamlValue>& into) {
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar())
      fail(place_of(file, entry.first), "a key must be a word",
           "see docs/config.md");
    const std::string key = prefix + entry.first.Scalar();
    const std::string place = place_of(file, entry.first);
    // Also under another form: `data.resize: 64` beside `data: {resize: 72}`.
    if (!seen.insert(key).second || into.contains(key))
      fail(place, "key '" + key + "' appears twice", "remove one");
    if (entry.second.IsMap()) {
      if (entry.second.size() == 0)
        fail(place, "'" + key + "' is an empty table",
             "give it a value or remove it");
      flatten(file, entry.second, key + ".", into);
      continue;
    }
    YamlValue value{place, entry.second.IsSequence(), {}, into.size()};
    if (value.is_list) {
      for (const auto& item : entry.second) {
        if (!item.IsScalar())
          fail(place_of(file, item), "'" + key + "' is a list of plain values",
               "see docs/config.md");
        value.items.push_back(item.Scalar());
      }
    } else {
      value.items.push_back(entry.second.IsNull() ? "" : entry.second.Scalar());
    }
    into[key] = std::move(value);
  }
}

}  // namespace

std::map<std::string, YamlValue> read_strict_yaml(const std::string& file,
                                                  const std::string& text) {
  if (text.size() > kMaxConfigBytes)
    fail(file, "larger than 256 KiB", "this is no config file");
  std::map<std::string, YamlValue> values;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    StructureGuard guard(file);
    if (!parser.HandleNextDocument(guard)) return values;
    if (parser.HandleNextDocument(guard))
      fail(guard.place(), "a second document (---) begins",
           "one file holds one config");
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return values;
    if (!root.IsMap())
      fail(file + ":1", "not a table of keys", "see configs/quickstart.yaml");
    flatten(file, root, "", values);
  } catch (const YAML::Exception& e) {
    fail(formatted("{}:{}", file, e.mark.line + 1), "not valid YAML: " + e.msg,
         "check indentation and quotes there");
  }
  return values;
}

std::map<std::string, YamlValue> read_strict_yaml_file(
    const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw ConfigError(
        "[config] {}: is a folder. Hint: name a YAML file; of a run that is {}",
        path.string(), (path / "config.yaml").string());
  std::string text;
  try {
    text = read_text_start(path, kMaxConfigBytes + 1);
  } catch (const Error& e) {
    throw ConfigError(e.what());
  }
  return read_strict_yaml(path.string(), text);
}

}  // namespace chexnet
