#include "chexnet/train/model_metadata.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/safetensors.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// A model file of a few numbers: what it says of itself is all that is read.
class ModelFile {
 public:
  ModelFile() {
    Dataset dataset;
    dataset.manifest.findings = {"Mass", "Edema"};
    dataset.manifest.sha256 = "table";
    dataset.splits.val = {"val", {0, 1}, "validation images"};
    plain_ = folder_ / "plain.safetensors";
    write(plain_,
          {{"format", "pt"}, {"chexnet", model_metadata(Config(), dataset)}});
  }
  fs::path with_rules() const {
    DecisionRules rules;
    FindingRules& mass = rules.findings.emplace_back();
    mass.finding = "Mass";
    mass.positives = 12;
    mass.negatives = 30;
    mass.points = {{"youden", 0.12}};
    FindingRules& edema = rules.findings.emplace_back();
    edema.finding = "Edema";
    edema.positives = 3;
    edema.negatives = 39;
    rules.chosen_on = "validation images";
    write_decision_rules(plain_, folder_ / "rules.safetensors", rules);
    return folder_ / "rules.safetensors";
  }
  fs::path plain() const { return plain_; }

  // The same file with something changed afterwards.
  fs::path changed(const fs::path& from, auto change) const {
    const SafetensorsFile file(from);
    Metadata metadata = file.metadata();
    change(metadata);
    write(folder_ / "changed.safetensors", metadata);
    return folder_ / "changed.safetensors";
  }
  fs::path with_weight(const fs::path& from, float weight) {
    weights_[1] = weight;
    return changed(from, [](Metadata&) {});
  }

 private:
  void write(const fs::path& path, const Metadata& metadata) const {
    const auto bytes = std::as_bytes(std::span(weights_));
    write_safetensors(path,
                      {{"z.weight", ElementType::kF32, {2}, bytes.first(8)},
                       {"a.bias", ElementType::kF32, {1}, bytes.subspan(8)}},
                      metadata);
  }
  ScratchFolder folder_;
  fs::path plain_;
  std::vector<float> weights_ = {1, 2, 3};
};

std::string refusal(const fs::path& file) {
  return error_of<CheckpointError>([&] { read_model_metadata(file); });
}

// `key` of the description of metadata becomes `value`.
auto description_with(const char* key, const nlohmann::json& value) {
  return [key, value](Metadata& metadata) {
    auto json = nlohmann::json::parse(metadata["chexnet"]);
    json[key] = value;
    metadata["chexnet"] = json.dump();
  };
}

void replace_all(std::string& text, const std::string& from,
                 const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a model file answers what its scores mean, with the same weights") {
  const ModelFile model;
  CHECK_FALSE(read_model_metadata(model.plain()).rules);
  const fs::path file = model.with_rules();
  const ModelMetadata metadata = read_model_metadata(file);
  REQUIRE(metadata.rules);
  CHECK(metadata.rules->find("mass")->threshold("youden") == 0.12);
  CHECK(metadata.rules->chosen_on == metadata.splits.at("val"));
  CHECK(metadata.manifest_sha256 == "table");
  CHECK(metadata.findings == std::vector<std::string>{"Mass", "Edema"});

  const SafetensorsFile before(model.plain()), after(file);
  CHECK(after.metadata().at("chexnet") == before.metadata().at("chexnet"));
  CHECK(after.metadata().at("format") == "pt");
  REQUIRE(after.arrays().size() == 2);
  for (const auto& array : before.arrays()) {
    const NamedArray* same = after.find(array.name);
    REQUIRE(same != nullptr);
    CHECK(std::ranges::equal(array.data, same->data));
  }
  const auto description =
      nlohmann::json::parse(after.metadata().at("chexnet"));
  for (const char* key : {"arch", "findings", "preprocessing", "config",
                          "manifest_sha256", "splits", "versions"})
    CHECK(description.contains(key));
}

TEST_CASE("rules are replaced, not added") {
  const ModelFile model;
  const fs::path file = model.with_rules();
  DecisionRules rules = *read_model_metadata(file).rules;
  rules.findings[0].points = {{"youden", 0.3}};
  const fs::path again = file.parent_path() / "again.safetensors";
  write_decision_rules(file, again, rules);
  CHECK(read_model_metadata(again).rules->find("Mass")->threshold("youden") ==
        0.3);
  CHECK(SafetensorsFile(again).metadata().size() == 4);
}

TEST_CASE("thresholds of another model are refused") {
  ModelFile model;
  CHECK(refusal(model.with_weight(model.with_rules(), 2.5f))
            .find("were chosen for a model with other weights, names or "
                  "preprocessing") != std::string::npos);
}

TEST_CASE("another order of labels, swapped names, other input are refused") {
  const ModelFile model;
  const fs::path file = model.with_rules();
  const auto names = nlohmann::json::array({"Edema", "Mass"});
  CHECK(refusal(model.changed(file, description_with("findings", names)))
            .find("its thresholds are of Mass, Edema, its outputs in this "
                  "order: Edema, Mass") != std::string::npos);
  // Swapped everywhere, so that both lists agree.
  const auto swap = [](Metadata& metadata) {
    for (auto& [key, text] : metadata) {
      replace_all(text, "Mass", "?");
      replace_all(text, "Edema", "Mass");
      replace_all(text, "?", "Edema");
    }
  };
  CHECK(refusal(model.changed(file, swap)).find("other weights, names") !=
        std::string::npos);
  CHECK(refusal(model.changed(file, description_with("preprocessing", 7)))
            .find("other weights, names or preprocessing") !=
        std::string::npos);
  // What does not change a score may.
  CHECK(
      refusal(model.changed(file, description_with("notice", "none"))).empty());
}

TEST_CASE("rules that are no JSON are refused") {
  const ModelFile model;
  const auto cut = [](Metadata& metadata) {
    std::string& rules = metadata["chexnet.decision_rules"];
    rules.resize(rules.size() / 2);
  };
  CHECK(refusal(model.changed(model.with_rules(), cut))
            .find("[decision rules]") != std::string::npos);
}

TEST_CASE("thresholds that were edited after they were chosen are refused") {
  const ModelFile model;
  const auto with_text = [&](const char* from, const char* to) {
    const auto edit = [&](Metadata& metadata) {
      std::string& rules = metadata.at("chexnet.decision_rules");
      REQUIRE(rules.find(from) != std::string::npos);
      replace_all(rules, from, to);
    };
    return refusal(model.changed(model.with_rules(), edit));
  };
  const char* others = "are not those that were chosen for it";
  CHECK(with_text("0.12", "0.02").find(others) != std::string::npos);
  CHECK(with_text("0.12", "null").find(others) != std::string::npos);
  CHECK(
      with_text("{\"rule\":\"youden\",\"threshold\":0.12}", "").find(others) !=
      std::string::npos);
  CHECK(with_text("\"positives\":12", "\"positives\":112").find(others) !=
        std::string::npos);
  // A rule that nobody could ask for.
  CHECK(with_text("youden", "yes")
            .find("the thresholds or the calibration of "
                  "Mass are none") != std::string::npos);
}

TEST_CASE("thresholds without a SHA-256 are used") {
  const ModelFile model;
  const auto without = model.changed(model.with_rules(), [](Metadata& all) {
    REQUIRE(all.erase("chexnet.decision_rules_sha256") == 1);
  });
  CHECK(read_model_metadata(without).rules);
}
