// Tables of predictions: one that was read and written again reads the same.
#include "chexnet/eval/predictions.hpp"

#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

bool same(double a, double b) { return a == b || (a != a && b != b); }

// A manifest for tables without labels.
const Manifest& known() {
  static const Manifest manifest = [] {
    Manifest m;
    m.findings = {"Mass", "Edema"};
    m.images = {"a.png", "b.png"};
    m.patients = {"1", "2"};
    m.labels = {1, 0, 0, 1};
    m.rows = {{"a.png", 0}, {"b.png", 1}};
    m.path = "known.csv";
    return m;
  }();
  return manifest;
}

void check_shape(const Predictions& p) {
  const size_t n = p.images.size(), k = p.findings.size();
  require(n > 0 && k > 0, "there is something");
  require(p.labels.size() == n * k && p.probabilities.size() == n * k,
          "each image has a label and a score of each finding");
  require(p.reasons.empty() || p.reasons.size() == n, "and a reason or none");
}

void run(Bytes bytes) {
  static MemoryFile file;
  const std::string path = file.holding(bytes);
  accepted<DataError>([&] {
    const Predictions p = read_predictions(path, &known());
    check_shape(p);
    score(p);
  });
  Predictions p;
  if (!accepted<DataError>([&] { p = read_predictions(path, nullptr); }))
    return;
  check_shape(p);
  const Scores scores = score(p);
  const std::string text_of_sound = scores.images == 1 ? "1 image" : " images";
  require(images_text(scores).ends_with(text_of_sound) ||
              scores.damaged + scores.not_scored > 0,
          "a table of sound rows says so");
  accepted<ConfigError>([&] {
    const auto asked =
        scored_findings({p.findings.front(), "edema"}, p.findings);
    require(score(p, asked).auroc.size() == asked.size(),
            "what is asked for is scored");
  });
  for (const auto& auroc : scores.auroc)
    require(!auroc || (*auroc >= 0 && *auroc <= 1), "an AUROC is in 0..1");

  // A name of blanks alone is trimmed away.
  for (const auto& name : p.images)
    if (name.empty()) return;
  const std::string text = predictions_csv(p);
  const Predictions again =
      read_predictions(file.holding(std::as_bytes(std::span(text))), nullptr);
  require(again.images == p.images && again.findings == p.findings,
          "a table that is written reads back equal");
  for (size_t i = 0; i < p.labels.size(); ++i)
    require(same(again.labels[i], p.labels[i]) &&
                same(again.probabilities[i], p.probabilities[i]),
            "so do its numbers");
}

std::vector<std::string> seeds() {
  return {
      "image,label:Mass,label:Edema,prob:Mass,prob:Edema,reason\n"
      "a.png,1,0,0.25,1e-7,\nb.png,,-1,0.5,0.75,\nc.png,0,1,,,damaged\n",
      "Image Index,Mass,edema\na.png,0.1,0.2\nb.png,0.3,-4.5\n",
      "image,label:x,prob:x\n\"q,\"\"r\",0,0\n"};
}

const Registered kTarget{{"predictions", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
