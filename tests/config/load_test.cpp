#include "chexnet/config/load.hpp"

#include <cstdlib>
#include <sstream>

#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

namespace {
std::string refused(const std::string& yaml) {
  return error_of<ConfigError>([&] { load_config_text("exp.yaml", yaml, {}); });
}
}  // namespace

TEST_CASE("a --set gives one value or list to one key") {
  for (const std::string given :
       {"data.filter={view: PA}", "data.test_list={a: b}",
        "eval.splits={test: 1}", "train.lr=1\nzzz: 3"}) {
    INFO(given);
    CHECK(error_of<ConfigError>([&] {
            load_config({}, {given});
          }).find("not a value or a list") != std::string::npos);
  }
  CHECK(error_of<ConfigError>([] {
          load_config({}, {"data.filter={}"});
        }).find("'data.filter' is an empty table") != std::string::npos);
  CHECK(refused("train:\n  optimizer: {}\n")
            .starts_with("[config] exp.yaml:2: 'train.optimizer' is an empty "
                         "table"));
}

TEST_CASE(
    "a config that is wrong is refused with file, line and the nearest names") {
  struct Case {
    const char* yaml;
    const char* part;
  };
  const std::vector<Case> cases = {
      {"train:\n  lr: 1\n  lr: 2\n",
       "exp.yaml:3: key 'train.lr' appears twice"},
      {"train:\n  lrr: 1\n",
       "exp.yaml:2: unknown key 'train.lrr'. Hint: nearest are 'train.lr'"},
      {"train:\n  learning_rate: 1\n", "Hint: nearest are 'train.lr'"},
      {"batch_size: 1\n", "Hint: nearest are 'train.batch'"},
      {"data:\n  epochs: 1\n", "Hint: nearest are 'train.epochs'"},
      {"train:\n  lr: fast\n",
       "exp.yaml:2: 'train.lr' wants number, not 'fast'"},
      {"train:\n  batch: 1.5\n", "wants integer or auto, not '1.5'"},
      {"train:\n  batch: 0\n", "exp.yaml:2: 'train.batch' = 0 is out of range"},
      {"train:\n  lr: 1e30\n",
       "'train.lr' = 1e30 is out of range. Hint: between 0 and 1000; "},
      {"train:\n  batch: [1, 2]\n", "not 'a list'"},
      {"data:\n  flip: yes\n", "wants true/false, not 'yes'"},
      {"model:\n  arch: densenet12\n",
       "'densenet12' is not known. Hint: one of 'densenet121'"},
      {"a: &x 1\nb: *x\n", "exp.yaml:2: aliases"},
      {"data.resize: 64\ndata: {resize: 72}\n",
       "exp.yaml:2: key 'data.resize' appears twice"},
      {"train: {lr: 1}\n---\ntrain: {lr: 2}\n",
       "exp.yaml:2: a second document (---) begins"},
      {"run: {dir: \"gs://bucket/run\"}\n",
       "'gs://bucket/run' is in an object store"},
      {"model: {weights: \"s3://bucket/w\"}\n",
       "'s3://bucket/w' is in an object store, and this must be in a file "
       "system"},
      {"train: [lr\n", "exp.yaml:2: not valid YAML"},
      {"- 1\n", "not a table of keys"},
      {"data: null\n", "exp.yaml:1: 'data' holds keys, and has a value here"},
      {"launch: {network: ether}\n",
       "exp.yaml:1: 'launch.network' = 'ether' is not known. Hint: auto, ib"},
      {"launch: {network: \"opa:hfi1\"}\n", "'opa:hfi1' is not known"},
      {"train: {precision: fp8}\n", "'fp8' is not known. Hint: one of 'fp64'"},
      {"data: {workers: few}\n", "wants integer or auto, not 'few'"},
      {"data: {manifest: {path: \"${CHEXNET_SURELY_UNSET}/x\"}}\n",
       "CHEXNET_SURELY_UNSET is not set"},
  };
  for (const auto& c : cases) {
    INFO(c.yaml << " -> " << refused(c.yaml));
    CHECK(refused(c.yaml).find(c.part) != std::string::npos);
  }
  std::string deep = "x";
  for (int i = 0; i < 40; ++i) deep = "{a: " + deep + "}";
  CHECK(refused(deep).find("nested too deeply") != std::string::npos);
  CHECK(refused("# " + std::string(1 << 20, 'x')).find("larger than 256 KiB") !=
        std::string::npos);
}

TEST_CASE("exponents of a loss that has none, or other than two, are refused") {
  const auto refusal = [](LossKind loss, const Doubles& gamma) {
    Config config = load_config_text("c.yaml",
                                     "data: {manifest: {path: t.csv}, images: "
                                     "[i]}\nmodel: {weights: none}\n",
                                     {});
    config.train.loss = loss;
    config.train.loss_gamma = gamma;
    return error_of<ConfigError>([&] { check_for_training(config); });
  };
  CHECK(refusal(LossKind::kBce, {2, 2}).find("bce has no exponents") !=
        std::string::npos);
  for (const Doubles& gamma : {Doubles{2}, {2, 2, 2}, {-1, 2}, {2, 101}})
    CHECK(refusal(LossKind::kFocal, gamma).find("two numbers from 0 to 100") !=
          std::string::npos);
}

TEST_CASE("a name of an earlier version is refused with what is written now") {
  CHECK(!removed_names().empty());
  for (const auto& [name, instead] : removed_names()) {
    INFO(name);
    const auto equals = name.find('=');
    const std::string key = name.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? "1" : name.substr(equals + 1);
    CHECK((find_option(key) == nullptr) == (equals == std::string::npos));
    CHECK(refused(key + ": " + value + "\n").find("Hint: " + instead) !=
          std::string::npos);
    CHECK(error_of<ConfigError>([&] {
            load_config({}, {key + "=" + value});
          }).find("Hint: " + instead) != std::string::npos);
    if (equals == std::string::npos)
      CHECK(unknown_key_text(key).find("Hint: " + instead) !=
            std::string::npos);
  }
}

TEST_CASE("later files override earlier ones and --set overrides all") {
  const ScratchFolder folder;
  const auto base = folder.write(
      "base.yaml", "train: {lr: 0.5, batch: 8}\nrun: {name: base}\n");
  const auto site = folder.write("site.yaml", "run:\n  name: site\n");
  const Config config = load_config(
      {base, site}, {"train.lr=1e-3", "data.images=[a, b]", "train.batch=6_4"});
  CHECK(config.train.lr == 1e-3);
  CHECK(config.train.batch == 64);
  CHECK(config.run.name == "site");
  CHECK(config.data.images == Strings{"a", "b"});
  CHECK(error_of<ConfigError>([&] {
          load_config({}, {"train.lr"});
        }).find("no '='") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          load_config({}, {"train.rl=1"});
        }).find("'train.lr'") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          load_config({folder / "absent.yaml"}, {});
        }).find("absent.yaml") != std::string::npos);
}

TEST_CASE("paths know ~ and environment variables with defaults") {
  setenv("CHEXNET_TEST_PLACE", "/somewhere", 1);
  setenv("HOME", "/home/someone", 1);
  CHECK(expanded_path("${CHEXNET_TEST_PLACE}/x") == "/somewhere/x");
  CHECK(expanded_path("a/${CHEXNET_SURELY_UNSET:-b}/c") == "a/b/c");
  CHECK(expanded_path("~/x") == "/home/someone/x");
  CHECK(expanded_path("a~b") == "a~b");
  CHECK(expanded_path("${CHEXNET_SURELY_UNSET:-~/b}") == "/home/someone/b");
}

TEST_CASE("the resolved config reads back equal") {
  Config config = load_config(
      {}, {"data.manifest.path=/x y/t.csv", "data.findings=[A b, \"c, d\"]",
           "train.lr=0.1", "run.name=\"007\"",
           "data.manifest.columns.image=\"#\\\"\""});
  const Config again = load_config_text("resolved", config_yaml(config), {});
  for (const auto& option : config_options()) {
    INFO(option.key);
    CHECK(option_text(option, config) == option_text(option, again));
  }
  CHECK(again.run.name == "007");
  CHECK(again.data.findings == Strings{"A b", "c, d"});
}

TEST_CASE("a config that travels with a model names no places") {
  const Config config =
      load_config({}, {"data.manifest.path=/home/someone/t.csv",
                       "data.images=[/home/someone/i]", "data.crop=96",
                       "run.dir=/home/someone/run", "run.name=someone",
                       "launch.hostfile=/home/someone/hosts",
                       "data.s3.endpoint=https://s3.someone.org",
                       "launch.mpi_args=[--from, someone]",
                       "model.weights=/home/someone/w"});
  const std::string text = config_yaml(without_places(config));
  CHECK(text.find("someone") == std::string::npos);
  const Config again = load_config_text("model", text, {});
  CHECK(again.data.crop == 96);
  CHECK(again.data.stage.kind == StageChoice::Kind::kOff);
}

TEST_CASE(
    "images, tables and lists may be on s3://, and in no other store; a run "
    "may not") {
  CHECK(object_store_problem("s3://bucket/x").find("file system") !=
        std::string::npos);
  CHECK(object_store_problem("/data/odd://name").empty());
  CHECK(object_store_problem("runs/x").empty());
  const Config config = load_config({}, {"data.images=[\"s3://bucket/x\"]"});
  CHECK(config.data.images == Strings{"s3://bucket/x"});
  for (const std::string key :
       {"data.manifest.path", "data.train_list", "data.val_list",
        "data.test_list", "data.exclude", "data.finding_names"}) {
    INFO(key);
    CHECK_NOTHROW(load_config({}, {key + "=s3://bucket/x"}));
    CHECK_THROWS_AS(load_config({}, {key + "=gs://bucket/x"}), ConfigError);
  }
  CHECK(error_of<ConfigError>([] {
          load_config({}, {"run.dir=s3://bucket/x"});
        }).find("run.after_checkpoint") != std::string::npos);
  CHECK(other_store_problem("s3://bucket/x").empty());
  CHECK(other_store_problem("/data/odd://name").empty());
}

TEST_CASE("what a run needs is asked for by name") {
  Config config;
  const auto missing = [&] {
    return error_of<ConfigError>([&] { check_for_training(config); });
  };
  CHECK(missing().find("data.manifest.path") != std::string::npos);
  config.data.manifest.path = {"t.csv"};
  CHECK(missing().find("data.images") != std::string::npos);
  config.data.images = {"i"};
  CHECK(missing().find("model.weights") != std::string::npos);
  config.model.weights = "none";
  CHECK(missing().empty());
  config.train.lr = 0;
  CHECK(missing().find("train.lr: 0: no weight would ever change") !=
        std::string::npos);
  config.train.lr = 0.001;
  config.train.warmup_epochs = config.train.epochs;
  CHECK(missing().find("train.warmup_epochs: not less than train.epochs") !=
        std::string::npos);
  config.train.warmup_epochs = 0;
  config.data.crop = 512;
  CHECK(missing().find("data.crop") != std::string::npos);
  config.data.crop = 224;
  config.model.memory = ActivationMemory::kRecompute;
  CHECK(missing().empty());
  for (const bool in_fp64 : {false, true}) {
    config.train.precision =
        in_fp64 ? std::optional(Precision::kFp64) : std::nullopt;
    config.train.engine = in_fp64 ? EngineKind::kAuto : EngineKind::kAten;
    CHECK(missing().find("model.memory: recompute, which only our own") !=
          std::string::npos);
  }
}

TEST_CASE("several tables and one table are written alike") {
  const Config one = load_config({}, {"data.manifest.path=t.csv"});
  CHECK(one.data.manifest.path == Strings{"t.csv"});
  const Config two = load_config({}, {"data.manifest.path=[a.csv, b.csv]",
                                      "data.manifest.format=[nih, chexpert]",
                                      "data.manifest.split=[train, val]"});
  CHECK(two.data.manifest.path == Strings{"a.csv", "b.csv"});
  CHECK(two.data.manifest.format ==
        ManifestFormats{ManifestFormat::kNih, ManifestFormat::kChexpert});
  CHECK(two.data.manifest.split ==
        SplitNames{SplitName::kTrain, SplitName::kVal});
  const Config again = load_config_text("again", config_yaml(two), {});
  CHECK(config_yaml(again) == config_yaml(two));
}

TEST_CASE("a config is written without a character that a terminal obeys") {
  Config named;
  named.run.name = "a\x1b[2J\n\tb\x7f\u009b\u202e\\x41";
  const std::string text = config_yaml(named);
  CHECK(text.find(R"(name: "a\x1b[2J\x0a\x09b\x7f\x9b\u202e\\x41")") !=
        std::string::npos);
  CHECK(load_config_text("again", text, {}).run.name == named.run.name);
}

TEST_CASE("folds and draws that cannot be are refused") {
  const auto refused = [](const Strings& set) {
    Strings all = {"data.manifest.path=t.csv", "data.images=[i]",
                   "model.weights=none"};
    all.insert(all.end(), set.begin(), set.end());
    return error_of<ConfigError>(
        [&] { check_for_training(load_config({}, all)); });
  };
  for (const std::string fold : {"off", "1/2", "5/5", "1000/1000"})
    CHECK(refused({"data.fold=" + fold}).empty());
  for (const std::string fold :
       {"", "0", "3", "1/1", "0/5", "6/5", "1/1001", "-1/5", "1/5/5", "a/b"}) {
    INFO(fold);
    CHECK(refused({"data.fold=" + fold}).find("of how many folds validates") !=
          std::string::npos);
  }
  CHECK(refused({"train.mixup=1.5"}).find("is out of range") !=
        std::string::npos);
  for (const char* draws : {"train.mixup=0.2", "train.sampling=rare_first"}) {
    CHECK(refused({draws}).empty());
    CHECK(refused({draws, "data.pipeline=old"}).find("data.pipeline: ") !=
          std::string::npos);
  }
}

TEST_CASE("a split that does not exist is found in the config") {
  const auto wrong = error_of<ConfigError>(
      [] { load_config({}, {"eval.splits=[val, tset]"}); });
  CHECK(
      wrong.find("'eval.splits' = 'tset' is not known. Hint: one of 'test'") !=
      std::string::npos);
  CHECK(load_config({}, {"eval.splits=[]"}).eval.splits.empty());
}

TEST_CASE("only the listed keys may change on a resume") {
  Config before, now;
  now.train.epochs = 99;
  now.run.log_every = 3;
  CHECK(resume_conflicts(before, now).empty());
  now.train.lr = 7;
  CHECK(resume_conflicts(before, now) ==
        std::vector<std::string>{"train.lr: 0.001 -> 7"});
}

TEST_CASE("a size for evaluation may not become another on a resume") {
  const Config given = load_config({}, {"data.eval_resize=300"});
  CHECK(resume_conflicts(given, Config{}) ==
        std::vector<std::string>{"data.eval_resize: 300 -> auto"});
}

TEST_CASE("docs/config.md is what the program prints") {
  std::istringstream page(read_text(source_file("docs/config.md")));
  std::istringstream program(options_markdown());
  std::string on_page, printed;
  for (int line = 1;; ++line) {
    const bool page_goes_on = static_cast<bool>(std::getline(page, on_page));
    const bool program_goes_on =
        static_cast<bool>(std::getline(program, printed));
    INFO("docs/config.md:" << line << " is\n"
                           << on_page << "\nand should be\n"
                           << printed);
    INFO(
        "write it by: ninja -C build/release config_docs && "
        "build/release/config_docs > docs/config.md");
    REQUIRE(page_goes_on == program_goes_on);
    if (!page_goes_on) break;
    REQUIRE(on_page == printed);
  }
}

TEST_CASE("the common keys come first, and a hidden one for its name alone") {
  const std::string common = options_help(), all = options_help("", true);
  CHECK(std::ranges::count(common, '\n') < 80);
  CHECK(common.find("  train.lr = ") != std::string::npos);
  CHECK(common.find("  train.eps = ") == std::string::npos);
  for (const auto& option : config_options()) {
    INFO(option.key);
    CHECK((all.find("  " + option.key + " = ") != std::string::npos) ==
          (option.tier != Tier::kHidden));
  }
  CHECK(all.find("train.order_file") == std::string::npos);
  CHECK(options_help("train.order_file").starts_with("  train.order_file = "));
  const std::string page = options_markdown();
  CHECK(page.find("`train.lr`") < page.find("## All other keys"));
  CHECK(page.find("## All other keys") < page.find("`train.eps`"));
}

TEST_CASE("keys are listed by prefix, and a prefix of none is refused") {
  const std::string page = options_markdown("launch.r");
  CHECK(std::ranges::count(page, '\n') == 5);
  CHECK(page.starts_with("| key "));
  CHECK(page.find("| `launch.restarts`") != std::string::npos);
  CHECK(options_help("launch.ranks").starts_with("  launch.ranks = auto"));
  CHECK(error_of<ConfigError>([] { options_help("lanch.ranks"); })
            .find("no key starts with 'lanch.ranks'. Hint: nearest are "
                  "'launch.ranks'") != std::string::npos);
  CHECK_THROWS_AS(options_markdown("lanch.ranks"), ConfigError);
}

TEST_CASE("the shipped configs load") {
  setenv("NIH", "/nih", 1);
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_file("configs"))) {
    if (entry.is_directory()) continue;  // clusters, for `plan`
    INFO(entry.path());
    CHECK(error_of<Error>([&] {
            check_for_training(load_config({entry.path()}, {}));
          }).empty());
    ++count;
  }
  CHECK(count >= 4);
}

TEST_CASE(
    "the config with CheXNet's name trains what its paper trains for 14 "
    "findings") {
  const Config c =
      load_config({source_file("configs/chexnet_densenet121.yaml")}, {});
  CHECK(c.model.arch == Architecture::kDenseNet121);
  CHECK(c.train.class_weights == LossWeighting::kNone);
  CHECK(c.checkpoint.best == BestBy::kLoss);
  CHECK((c.train.optimizer == OptimizerKind::kAdam &&
         c.train.betas == Doubles{0.9, 0.999}));
  CHECK((c.train.weight_decay == 0 && c.train.warmup_epochs == 0));
  CHECK((c.train.batch == 16 && c.train.lr == 1e-3 &&
         c.train.lr_scaling == LrScaling::kNone));
  CHECK((c.train.schedule == ScheduleKind::kPlateau &&
         c.train.decay_factor == 0.1));
  CHECK(c.model.sync_batchnorm);
  CHECK(
      (c.data.resize == 224 && c.data.crop == 224 && c.data.eval_resize == 0));
  CHECK((c.data.flip && c.data.train_crop == TrainCrop::kCenter));
  CHECK((c.data.rotate_deg == 0 && c.data.zoom == 0 && c.data.contrast == 0));
}

TEST_CASE(
    "a shipped config that scales the rate of Adam's family does so by the "
    "square root") {
  const Config c =
      load_config({source_file("configs/chexnet_resnet50.yaml")}, {});
  CHECK((c.train.optimizer == OptimizerKind::kAdamW &&
         c.train.lr_scaling == LrScaling::kSqrt));
}
