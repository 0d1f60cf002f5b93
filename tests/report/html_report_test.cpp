#include "chexnet/report/html_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "chexnet/report/run_results.hpp"
#include "report/discrimination.hpp"
#include "report/published_figures.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/seeded_runs.hpp"

using namespace chexnet;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

FindingFigures figures_of_finding(const std::string& name, Interval range,
                                  size_t positives = 40) {
  FindingFigures figures;
  figures.finding = name;
  figures.positives = positives;
  figures.negatives = 100;
  figures.auroc = {(range.low + range.high) / 2, PercentileInterval{range, 0}};
  figures.average_precision = {0.3, PercentileInterval{{0.2, 0.4}, 0}};
  figures.delong = range;
  figures.brier = 0.1;
  return figures;
}

SplitScores scores_of(const std::vector<FindingFigures>& findings) {
  SplitScores split;
  split.split = "test";
  split.scores.images = 140;
  split.scores.mean_auroc = 0.8;
  split.figures.mean_auroc = {{0.8, PercentileInterval{{0.76, 0.84}, 0}},
                              std::min<size_t>(2, findings.size()),
                              false};
  for (const auto& f : findings) {
    split.scores.findings.push_back(f.finding);
    split.scores.auroc.push_back(f.auroc.value);
    split.scores.positives.push_back(f.positives);
  }
  split.figures.findings = findings;
  split.figures.patients = 70;
  split.figures.resamples = 10000;
  return split;
}

RunFacts facts_of(const std::string& name) {
  RunFacts facts;
  facts.name = name;
  facts.command = "chexnet-train train x";
  facts.overlap = {{"loading_ms", 30.0}, {"step_ms", 126.0}, {"hidden", 0.8}};
  facts.table = "/data/secret/table.csv";
  facts.splits = {{"train", 500, 300, "aa"}, {"test", 140, 70, "bb"}};
  facts.patients_in_two_splits = 0;
  facts.network = "densenet121";
  facts.input_px = 224;
  facts.scored = "best";
  facts.settings = {{"key", "\"v\""}};
  facts.transports = {
      {"channels", 8},
      {"connections",
       {{{"via", "NET/IB/GDRDMA"},
         {"gpu_direct", true},
         {"used_by", "ring"},
         {"channels", 4},
         {"concern", ""},
         {"pairs", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}}}}}}};
  return facts;
}

// A run folder with results of three findings, and what else a page reads.
struct FinishedRun {
  ScratchFolder folder;
  FinishedRun() {
    SplitScores split =
        scores_of({figures_of_finding("Mass", {0.81, 0.9}),
                   figures_of_finding("Pleural_Thickening", {0.4, 0.6}),
                   figures_of_finding("Hernia", {0.6, 0.9}, 4)});
    OperatingPoint point;
    point.finding = "Mass";
    point.rule = "youden";
    point.threshold = 0.25;
    point.confusion = {30, 20, 80, 10};
    split.points = {point};
    const std::string table =
        "image,label:Mass,prob:Mass\nx,1,0.9\ny,0,0.1\nz,0,0.2\n";
    split.predictions_sha256 = sha256_hex(table);
    write_results(folder.path(), facts_of("a & b"), {split});
    folder.write("metrics.jsonl",
                 "{\"event\":\"train\",\"step\":1,\"loss\":0.5}\n"
                 "{\"event\":\"train\",\"step\":2,\"loss\":0.4}\n");
    folder.write("predictions_test.csv", table);
  }
};

// Every value of `json` in turn, as JSON pointers.
void add_places(const Json& json, const std::string& at,
                std::vector<std::string>& places) {
  places.push_back(at);
  if (!json.is_structured()) return;
  for (const auto& [key, inner] : json.items()) {
    std::string name;
    for (const char c : key)
      name += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    add_places(inner, at + "/" + name, places);
  }
}

}  // namespace

TEST_CASE(
    "the report says what is separated, by which interval, and what it is "
    "not") {
  const FinishedRun run;
  const std::string html = report_html(run.folder.path(), {});
  for (const char* part :
       {"a &amp; b", "Not a medical device", "DenseNet-121",
        "Trained on 500 X-rays of 300 patients, tested on 140 X-rays of 70 "
        "patients. No patient is in both.",
        "10,000 resamples",
        "Mean AUROC <strong>0.80 (0.76 to 0.84) over 2 findings</strong>",
        "Well (95 % interval above 0.8 on these images, each finding taken "
        "alone): Mass.",
        "Not shown to be better than a coin: Pleural Thickening.",
        "Too few to judge, under ten images with it, or under five patients "
        "with it or without: Hernia.",
        "<span>0.855</span> <span>(0.810 to 0.900)</span>",
        "No interval: fewer than five patients with the finding, or without",
        "<span>0.75</span> <span>(0.60 to 0.86)</span>", "<polyline",
        "&quot;v&quot;"}) {
    INFO(part);
    CHECK(has(html, part));
  }
  CHECK_FALSE(has(html, "<script"));
  CHECK_FALSE(has(html, "href=\"http"));
  CHECK_FALSE(has(html, "src="));
}

TEST_CASE("a mean of rare findings alone is said to be rough") {
  const FinishedRun run;
  Json results = read_results(run.folder.path());
  Json& test = results["evaluations"]["test"];
  test["mean_is_rough"] = true;
  test["mean_auroc_interval"] = nullptr;
  run.folder.write("results.json", json_text(results));
  CHECK(has(report_html(run.folder.path(), {}),
            "<strong>0.80 over 2 findings, none with ten positives and ten "
            "negatives of five patients each: rough, no interval</strong>"));
}

TEST_CASE("a command repeats the run only where no resume changed it") {
  const FinishedRun run;
  const std::string repeats = "This repeats the run:</p>";
  CHECK(has(report_html(run.folder.path(), {}), repeats));
  RunFacts facts = facts_of("changed");
  facts.changes = {{7, "train.epochs", "100", "5"}};
  write_results(run.folder.path(), facts, {});
  const std::string html = report_html(run.folder.path(), {});
  CHECK_FALSE(has(html, repeats));
  CHECK_FALSE(has(html, facts.command));
  CHECK(has(html, "No command repeats this run to the last bit"));
  CHECK(has(html, "<td>train.epochs</td>"));
}

TEST_CASE("the transports of a run, or why they are not known, are shown") {
  const FinishedRun run;
  CHECK(has(report_html(run.folder.path(), {}),
            "NET/IB/GDRDMA</th><td>0 -&gt; 1, 1 -&gt; 2, 2 -&gt; 3, 3 -&gt; "
            "4 and 2 more</td><td>ring</td>"));
  RunFacts facts = facts_of("asked");
  facts.transports = {{"not_recorded", "NCCL_DEBUG is set"}};
  write_results(run.folder.path(), facts, {});
  CHECK(has(report_html(run.folder.path(), {}),
            "not recorded, as NCCL_DEBUG is set."));
  facts.transports = Json::object();  // one rank, or CPUs
  write_results(run.folder.path(), facts, {});
  CHECK_FALSE(has(report_html(run.folder.path(), {}), "NCCL"));
}

TEST_CASE("a run's own times are drawn with and without pipelining") {
  const ScratchFolder folder;
  RunFacts facts = facts_of("r");
  const auto page = [&] {
    write_results(folder.path(), facts, {});
    return report_html(folder.path(), {});
  };
  CHECK(has(page(), "Without pipelining, computed: 150 ms a step"));
  for (const Json& step :
       {Json(nullptr), Json(0), Json(-1), Json(1e300), Json(5)}) {
    facts.overlap["step_ms"] = step;
    CHECK_FALSE(has(page(), "pipelining"));
  }
}

TEST_CASE("no text of a run becomes markup of its report") {
  const ScratchFolder folder;
  const std::string evil = "</td><script>alert(1)</script>";
  SplitScores split = scores_of({figures_of_finding(evil, {0.5, 0.6})});
  split.split = "<split>";
  RunFacts facts = facts_of("<img src=x>");
  facts.settings = {{"<k>", "<v onload=\"x\">"}};
  facts.table = evil;
  write_results(folder.path(), facts, {split});
  const std::string html = report_html(folder.path(), {});
  for (const char* part :
       {"<script", "<img", "<k>", "<v ", "<split>", "onload=\"x\""}) {
    INFO(part);
    CHECK_FALSE(has(html, part));
  }
  CHECK(has(html, "&lt;v onload=&quot;x&quot;&gt;"));
}

TEST_CASE("a record with any value in any place makes a page or is refused") {
  const FinishedRun run;
  const Json whole = read_results(run.folder.path());
  std::vector<std::string> places;
  add_places(whole, "", places);
  REQUIRE(places.size() > 80);
  const std::vector<Json> others = {nullptr,
                                    -1e300,
                                    "<script>",
                                    Json::array({1, "x"}),
                                    Json::object({{"a", nullptr}}),
                                    true};
  size_t pages = 0;
  for (const auto& place : places)
    for (const auto& other : others) {
      Json changed = whole;
      changed[Json::json_pointer(place)] = other;
      run.folder.write("results.json", json_text(changed));
      try {
        const std::string html = report_html(run.folder.path(), {});
        if (has(html, "<script") || has(html, "nan")) FAIL(place);
        ++pages;
      } catch (const CheckpointError&) {  // the head of the file
      }
    }
  CHECK(pages > 400);
}

TEST_CASE("a run without results is told how to get them") {
  const ScratchFolder folder;
  CHECK_THROWS_AS(report_html(folder.path(), {}), CheckpointError);
  const auto refusal = [&](const std::string& text) {
    folder.write("results.json", text);
    return error_of<CheckpointError>([&] { report_html(folder.path(), {}); });
  };
  CHECK(has(refusal("{\"format\": 99}"),
            "has the format 99, and this version reads 1"));
  CHECK(has(refusal("{\"a\": 1,\n \"form"),
            "results.json:2: is no JSON: the text ends too early"));
  CHECK(has(refusal("{\"a\": 1,\n\n \"b\" 2}"),
            "results.json:3: is no JSON: '2' cannot stand here"));
  CHECK(has(refusal(""), "results.json:1: is no JSON: the file is empty"));
  CHECK(has(refusal("{\n\"a\": 1,\n\"b\": -1e400\n}"),
            "results.json:3: is no JSON: -1e400 is too large a number"));
  CHECK(has(refusal("[1]"), "is no record of a run"));
  CHECK(has(refusal("{\"format\": 1}"), "results.json:1: has no 'run'"));
  CHECK(has(refusal("{\"format\": 1, \"run\": 3, \"data\": 3, \"model\": 3}"),
            "results.json:1: has no 'evaluations'"));
}

TEST_CASE("a record with damaged parts is refused, not told wrongly") {
  const FinishedRun run;
  const Json whole = read_results(run.folder.path());
  struct Case {
    const char *place, *value, *named;
  };
  for (const auto& [place, value, named] : std::vector<Case>{
           {"/data", "3", "'data.splits'"},
           {"/data/splits", "[]", "'data.splits'"},
           {"/data/splits/test/images", "null", "'data.splits.test'"},
           {"/model", "[]", "'model.network'"},
           {"/evaluations", "[]", "'evaluations'"},
           {"/evaluations/test", "null", "'evaluations.test'"},
           {"/evaluations/test/images", "-1", "'evaluations.test'"},
           {"/evaluations/test/mean_auroc", "7", "'evaluations.test'"},
           {"/evaluations/test/mean_auroc_interval", "[3, 4]",
            "'evaluations.test'"},
           {"/evaluations/test/any_finding_auroc_mean_logit", "9",
            "'evaluations.test'"},
           {"/evaluations/test/findings_in_mean", "99", "'evaluations.test'"},
           {"/evaluations/test/findings/Mass/auroc_interval", "[0.9, 0.2]",
            "'evaluations.test'"},
           {"/data/patients_in_two_splits", "-4",
            "'data.patients_in_two_splits'"},
           {"/resume_changes", "3", "'resume_changes'"},
           {"/evaluations/test/findings", "[]", "'evaluations.test'"}}) {
    INFO(place);
    Json changed = whole;
    changed[Json::json_pointer(place)] = Json::parse(value);
    run.folder.write("results.json", json_text(changed));
    CHECK(has(
        error_of<CheckpointError>([&] { report_html(run.folder.path(), {}); }),
        named + std::string(" is not what a run writes there")));
  }
  Json nameless = whole;
  nameless["run"] = " ";
  run.folder.write("results.json", json_text(nameless));
  CHECK(
      has(report_html(run.folder.path(), {}), "<h1>a run without a name</h1>"));
}

TEST_CASE("published figures stand beside those of the very same list") {
  const auto results = [](int images, int patients, const char* by = "image") {
    return Json{{"data",
                 {{"splits",
                   {{"test", {{"images", images}, {"patients", patients}}}}}}},
                {"evaluations", {{"test", {{"by", by}}}}}};
  };
  CHECK(figures_of_same_list(results(25596, 2797, "patient"), "test").empty());
  CHECK(figures_of_same_list(results(25596, 2797), "test").size() == 2);
  CHECK(figures_of_same_list(results(25596, 2798), "test").empty());
  CHECK(figures_of_same_list(results(230, 186), "test").empty());
  CHECK(figures_of_same_list(results(25596, 2797), "val").empty());
  for (const auto& paper : figures_of_same_list(results(25596, 2797), "test")) {
    double sum = 0;
    for (const auto& [name, auroc] : paper.auroc) sum += auroc;
    CHECK(sum / 14 == Approx(paper.mean).margin(5e-4));  // as the paper says
  }
}

TEST_CASE("what is passed on names no place and nobody") {
  const FinishedRun run;
  run.folder.write("config.yaml",
                   "data:\n  manifest: {path: /data/secret/table.csv}\n");
  run.folder.write("split.csv", "image,patient,split\nx.png,Doe^Jane,train\n");
  const std::string html =
      report_html(run.folder.path(), {.for_sharing = true});
  CHECK_FALSE(has(html, "secret"));
  CHECK_FALSE(has(html, run.folder.path().string()));
  CHECK(has(html, "Well (95 % interval above 0.8"));
}

TEST_CASE("a page says which records it lacks, and why") {
  const FinishedRun run;
  const auto page = [&](bool for_sharing = false) {
    return report_html(run.folder.path(), {.for_sharing = for_sharing});
  };
  const std::string html = page();
  for (const char* gap :
       {"What this page lacks",
        "Validation scores: the run has no images of that split.",
        "Calibration: none was fitted",
        "Groups of patients: the table tells neither sex, view nor age.",
        "examples.json is not in the run folder: none were drawn",
        "Curves of validation: metrics.jsonl has none, as the run has no "
        "validation images."}) {
    INFO(gap);
    CHECK(has(html, gap));
  }
  CHECK_FALSE(has(html, "Operating points, calibration"));
  CHECK_FALSE(has(html, "Test scores:"));
  run.folder.write("config.yaml", "{}\n");
  CHECK(has(page(true), "left out, as this page may be passed on"));
  CHECK_FALSE(has(page(true), "Examples with heat maps"));

  std::filesystem::remove(run.folder / "metrics.jsonl");
  CHECK(has(page(), "metrics.jsonl is not in the run folder"));
  Json results = read_results(run.folder.path());
  results["evaluations"]["test"].erase("operating_points");
  results["data"]["splits"]["val"] = {{"images", 9}};
  run.folder.write("results.json", json_text(results));
  CHECK(has(page(),
            "Operating points, calibration, groups of patients, examples with "
            "heat maps: the scored weights were not evaluated on the "
            "validation split"));
  CHECK(has(page(),
            "Validation scores: the split has images, but eval.splits "
            "does not name it."));
}

namespace {

// Runs of several seeds for each rate; the second and third rate are better.
struct Sweep {
  ScratchFolder folder;
  std::vector<std::filesystem::path> runs;

  void add(const std::string& rate, size_t seeds, double shift,
           size_t first_seed = 1) {
    const auto networks = seeded_predictions(seeds, shift, runs.size());
    for (size_t s = 0; s < seeds; ++s)
      write(rate, std::to_string(first_seed + s), networks[s]);
  }

  void write(const std::string& rate, const std::string& seed,
             const Predictions& p) {
    const std::string name = rate + "-" + seed;
    folder.write(name + "/config.yaml",
                 "train: {lr: " + rate + "}\nrun: {seed: " + seed + "}\n");
    const std::string table = predictions_csv(p);
    folder.write(name + "/predictions_test.csv", table);
    folder.write(name + "/metrics.jsonl", "{\"event\":\"end\",\"step\":9}\n");
    std::string split = "image,patient,split\n";
    for (size_t i = 0; i < p.images.size(); ++i)
      split += p.images[i] + "," + p.patients[i] + ",test\n";
    folder.write(name + "/split.csv", split);
    SplitScores test{"test", score(p), "bb", sha256_hex(table)};
    test.figures = figures_of(p, {}, {.resamples = 100});
    write_results(folder / name, facts_of(name), {test});
    runs.push_back(folder / name);
  }
};

}  // namespace

TEST_CASE("settings are compared over their seeds, in one sentence each") {
  Sweep sweep;
  sweep.add("0.001", 3, 1.0);
  sweep.add("0.002", 3, 1.02);
  sweep.add("0.003", 3, 2.5);
  const auto [html, sentences] = comparison_page(sweep.runs);
  REQUIRE(sentences.size() == 3);
  CHECK(sentences[1].starts_with(
      "train.lr=0.003 better than train.lr=0.001: mean AUROC on test "
      "+0.1"));
  CHECK(
      has(sentences[1],
          ") for train.lr=0.003, 95 % for a new training and new patients, in "
          "all 3 comparisons, 3 seeds each"));
  CHECK(sentences[0].starts_with(
      "no difference shown between train.lr=0.001 and train.lr=0.002: mean "
      "AUROC on test -0.0"));
  CHECK_FALSE(has(sentences[0], "better"));
  // No seed is compared with another one of its setting.
  CHECK(has(html, "<h3>train.lr=0.002 minus train.lr=0.001</h3>"));
  CHECK_FALSE(has(html, "0.001-2 minus"));
  CHECK(html.rfind(sentences[2]) > html.rfind("<table"));
  // The mean row has an interval.
  const auto mean = html.find(">mean</th>");
  REQUIRE(mean != std::string::npos);
  CHECK(has(html.substr(mean, html.find("</tr>", mean) - mean), " to "));
}

TEST_CASE("a worse setting is said to be so by its own sign") {
  Sweep sweep;
  sweep.add("0.001", 3, 2.5);
  sweep.add("0.002", 3, 1.0);
  const auto sentences = comparison_page(sweep.runs).sentences;
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0].starts_with(
      "train.lr=0.001 better than train.lr=0.002: mean AUROC on test "
      "-0.1"));
  CHECK(has(sentences[0], ") for train.lr=0.002, "));
}

TEST_CASE("seeds that only one of two settings has are told") {
  Sweep sweep;
  sweep.add("0.001", 4, 1.0);
  sweep.add("0.002", 3, 1.0, 2);
  sweep.add("0.003", 3, 1.0, 7);
  const auto sentences = comparison_page(sweep.runs).sentences;
  REQUIRE(sentences.size() == 3);
  CHECK(sentences[0].ends_with(
      ", 3 seeds each, 1 more of train.lr=0.001 left out"));
  CHECK(sentences[2].ends_with(", 3 seeds each, none of them the same"));
}

TEST_CASE("of two seeds the page computes what they cannot tell") {
  Sweep sweep;
  sweep.add("0.001", 2, 1.0);
  sweep.add("0.003", 2, 2.5);
  sweep.add("0.004", 1, 2.5);
  const auto [html, sentences] = comparison_page(sweep.runs);
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].starts_with(
      "no difference shown between train.lr=0.001 and train.lr=0.003: of 2 "
      "seeds each, differences in mean AUROC below 0."));
  CHECK(has(sentences[1], "no difference is shown of train.lr=0.004 (three"));
  CHECK(has(html, "of these networks alone"));
}

TEST_CASE("tables that cannot be compared leave a page that says so") {
  Sweep sweep;
  sweep.add("0.001", 1, 1.0);
  sweep.add("0.002", 1, 1.0);
  const auto sentence = [&] {
    const auto [html, sentences] = comparison_page(sweep.runs);
    CHECK(has(html, "<p>Not compared: "));
    return sentences.front();
  };
  const std::string both =
      "train.lr=0.002 and train.lr=0.001 are not compared: ";
  const std::string name = "0.002-1/predictions_test.csv";
  // The AUROCs are the same, and the order of scores is another.
  Predictions other = seeded_predictions(1, 1.0, 1)[0];
  for (auto& p : other.probabilities) p *= 0.5;
  sweep.folder.write(name, predictions_csv(other));
  CHECK(sentence() == both +
                          "predictions_test.csv of 0.002-1 was changed after "
                          "the run (another SHA-256)");
  std::filesystem::remove(sweep.folder / name);
  CHECK(sentence() == both + "predictions_test.csv of 0.002-1 is not there");
  other.labels[0] = 1 - other.labels[0];
  sweep.runs.pop_back();
  sweep.write("0.002", "1", other);
  CHECK(sentence() == both + "labels differ between the tables: 1");
  sweep.folder.write("0.002-1/split.csv", "image,patient,split\n,,\n");
  CHECK(sentence() ==
        both +
            "predictions_test.csv or split.csv of 0.002-1 is damaged or was "
            "changed after the run");
  std::filesystem::remove(sweep.folder / "0.002-1/split.csv");
  CHECK(sentence() == both + "split.csv of 0.002-1 is not there");
}

TEST_CASE("a run without final scores keeps nobody from comparing the others") {
  Sweep sweep;
  sweep.add("0.001", 2, 1.0);
  sweep.add("0.002", 1, 1.0);
  std::filesystem::remove(sweep.runs[1] / "results.json");
  const auto sentences = comparison_page(sweep.runs).sentences;
  CHECK(sentences.front() ==
        "0.001-2 (finished) is left out: it has no final scores");
  sweep.runs.erase(sweep.runs.begin());
  CHECK(has(error_of<CheckpointError>([&] { comparison_page(sweep.runs); }),
            "no results.json"));
}

TEST_CASE("a run whose metrics.jsonl is empty counts in no table") {
  Sweep sweep;
  sweep.add("0.001", 3, 1.0);
  sweep.folder.write("0.001-2/metrics.jsonl", "");
  const auto [html, sentences] = comparison_page(sweep.runs);
  CHECK(sentences.front() ==
        "not counted, because metrics.jsonl is empty, damaged or not there: "
        "0.001-2");
  CHECK(has(html, "(n = 2)"));
  CHECK_FALSE(has(html, "(n = 3)"));
  sweep.folder.write("0.001-1/metrics.jsonl", "\n{}{}\n");
  CHECK(has(error_of<ConfigError>([&] { comparison_page(sweep.runs); }),
            "of 3 runs only 1 can be compared; not counted, because"));
}

TEST_CASE("a setting with a short name is told which it is") {
  Sweep sweep;
  for (const std::string name : {"a", "b"}) {
    sweep.add("0.00" + std::to_string(1 + sweep.runs.size()), 1, 1.0);
    const std::string config = sweep.runs.back().filename() / "config.yaml";
    sweep.folder.write(config,
                       "data: {images: [/" + name + "/x]}\nrun: {seed: 1}\n");
  }
  const auto [html, sentences] = comparison_page(sweep.runs);
  REQUIRE(sentences.size() == 3);
  CHECK(sentences[0] == "setting 1 is data.images=[x] (0.001-1)");
  CHECK(sentences[1] == "setting 2 is data.images=[x] (0.002-1)");
  CHECK(has(html, sentences[1]));
}

TEST_CASE("a setting that differs in many keys is told all of them") {
  Sweep sweep;
  for (const int i : {1, 2}) {
    sweep.add("0.00" + std::to_string(i), 1, 1.0);
    const std::string n = std::to_string(i);
    const std::string config = sweep.runs.back().filename() / "config.yaml";
    sweep.folder.write(
        config, "data: {resize: 24" + n + ", crop: 22" + n +
                    ", rotate_deg: " + n + ", contrast: 0." + n +
                    ", val_fraction: 0." + n + "}\ntrain: {lr: 0." + n +
                    ", batch: " + n + ", epochs: " + n + ", accumulate: " + n +
                    ", weight_decay: 0." + n + ", clip_norm: " + n +
                    ", mixup: 0." + n + ", label_smoothing: 0." + n +
                    ", momentum: 0." + n + ", decay_factor: 0." + n +
                    ", eps: 0." + n + ", ema: 0." + n + "}\nrun: {seed: 1}\n");
  }
  const auto [html, sentences] = comparison_page(sweep.runs);
  CHECK(has(sentences[0], "train.weight_decay=0.1"));
  CHECK(has(html, "train.weight_decay=0.2"));
}

TEST_CASE("seeds of one setting are not compared") {
  Sweep sweep;
  sweep.add("0.001", 3, 1.0);
  const auto [html, sentences] = comparison_page(sweep.runs);
  CHECK(sentences.empty());
  CHECK(has(html, "there are no two settings to compare"));
}
