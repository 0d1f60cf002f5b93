#include "chexnet/config/choices.hpp"

#include <set>
#include <string_view>

#include "chexnet/config/load.hpp"
#include "chexnet/config/options.hpp"
#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("each choice of each key is read, and printed as it was written") {
  int choices = 0;
  for (const auto& option : config_options()) {
    const std::set<std::string> distinct(option.choices.begin(),
                                         option.choices.end());
    CHECK(distinct.size() == option.choices.size());
    for (const auto& choice : option.choices) {
      INFO(option.key << " = " << choice);
      const bool is_list = option_type(option).starts_with("list");
      const std::string value =
          is_list ? "[" + choice + "]" : "\"" + choice + "\"";
      const Config config = load_config({}, {option.key + "=" + value});
      const std::string text = option_text(option, config);
      CHECK((text == choice || text == "\"" + choice + "\"" ||
             text == "[" + choice + "]"));
      ++choices;
    }
  }
  CHECK(choices > 50);
}

namespace {

// The compiler writes a value of an enum as its name, and one that no
// enumerator has as a cast of a number.
template <auto kValue>
constexpr bool has_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  return text.substr(text.find("kValue = ") + 9).front() != '(';
}

// The names of a choice stand in the order of its values, so a value that has
// no name is the one after the last.
template <class Choice>
constexpr bool every_value_has_a_name() {
  constexpr size_t kNames = names_of(Choice{}).size();
  static_assert(has_enumerator<static_cast<Choice>(kNames - 1)>());
  for (size_t i = 0; i < kNames; ++i)
    if (static_cast<size_t>(names_of(Choice{})[i].value) != i) return false;
  return !has_enumerator<static_cast<Choice>(kNames)>();
}

}  // namespace

// No value of a choice is without a name.
static_assert(every_value_has_a_name<Architecture>());
static_assert(every_value_has_a_name<ManifestFormat>());
static_assert(every_value_has_a_name<LabelPolicy>());
static_assert(every_value_has_a_name<TrainingPolicy>());
static_assert(every_value_has_a_name<PatientIdForm>());
static_assert(every_value_has_a_name<ResizeKind>());
static_assert(every_value_has_a_name<JpegScale>());
static_assert(every_value_has_a_name<TrainCrop>());
static_assert(every_value_has_a_name<PipelineKind>());
static_assert(every_value_has_a_name<SplitName>());
static_assert(every_value_has_a_name<OptimizerKind>());
static_assert(every_value_has_a_name<LrScaling>());
static_assert(every_value_has_a_name<ScheduleKind>());
static_assert(every_value_has_a_name<Precision>());
static_assert(every_value_has_a_name<EngineKind>());
static_assert(every_value_has_a_name<SamplingKind>());
static_assert(every_value_has_a_name<LossWeighting>());
static_assert(every_value_has_a_name<OnNonFinite>());
static_assert(every_value_has_a_name<EvalCrops>());
static_assert(every_value_has_a_name<BestBy>());
static_assert(every_value_has_a_name<DeviceKind>());
static_assert(every_value_has_a_name<MpiFamily>());
static_assert(every_value_has_a_name<BindPolicy>());
static_assert(every_value_has_a_name<GradientCompression>());

TEST_CASE("a folder of staged copies is told from a misspelled word") {
  CHECK(load_config({}, {"data.stage=auto"}).data.stage.kind ==
        StageChoice::Kind::kAuto);
  CHECK(load_config({}, {"data.stage=./here"}).data.stage.folder == "./here");
  for (const std::string word : {"Auto", "of", "none", "false", "", "here"}) {
    INFO(word);
    CHECK(error_of<ConfigError>([&] {
            load_config({}, {"data.stage=" + word});
          }).find("Hint: off, auto or a folder") != std::string::npos);
  }
}

TEST_CASE("uncertain labels have a policy, and single findings another") {
  const auto read = [](const std::string& value) {
    return load_config({}, {"data.uncertain=" + value}).data.uncertain;
  };
  CHECK(read("smooth").list() == Strings{"smooth"});
  CHECK(read("[Edema=one]").list() == Strings{"ignore", "Edema=one"});
  CHECK(read("[A=B=zero, one]").list() == Strings{"one", "A=B=zero"});
  for (const std::string value :
       {"maybe", "[one, zero]", "[Mass=maybe]", "[Mass]", "[ignore, Mass=]"}) {
    INFO(value);
    CHECK(error_of<ConfigError>([&] {
            read(value);
          }).find("Hint: ignore, zero, one or smooth, and finding=one") !=
          std::string::npos);
  }
}

TEST_CASE("damaged images fail, or a fraction of them is skipped") {
  const auto read = [](const std::string& value) {
    return load_config({}, {"data.corrupt=" + value}).data.corrupt;
  };
  CHECK_FALSE(read("fail").skip);
  CHECK((read("skip").skip && read("skip").limit == 0.01));
  CHECK((read("0").skip && read("0").limit == 0));
  CHECK(read("0.25").text() == "0.25");
  CHECK(read("1").limit == 1);
  for (const std::string value : {"", "2", "-0.1", "nan", "some", "1%"}) {
    INFO(value);
    CHECK(error_of<ConfigError>([&] {
            read(value);
          }).find("largest fraction that is skipped") != std::string::npos);
  }
}

TEST_CASE("auto is the absence of a value") {
  const Config config = load_config(
      {}, {"train.batch=auto", "data.workers=auto", "launch.bucket_mb=auto",
           "train.precision=auto", "launch.device=auto", "data.blank=auto"});
  CHECK((!config.train.batch && !config.data.workers &&
         !config.launch.bucket_mb));
  CHECK(
      (!config.train.precision && !config.launch.device && !config.data.blank));
  CHECK(option_text(*find_option("train.batch"), config) == "auto");
  CHECK(option_text(*find_option("train.precision"), config) == "auto");

  for (const std::string key : {"launch.ranks", "launch.ranks_per_node",
                                "launch.threads", "data.eval_resize"}) {
    const ConfigOption& option = *find_option(key);
    CHECK(option_text(option, Config{}) == "auto");
    CHECK(option_text(option, load_config({}, {key + "=8"})) == "8");
    CHECK(option_text(option, load_config({}, {key + "=auto"})) == "auto");
    CHECK(error_of<ConfigError>([&] {
            load_config({}, {key + "=0"});
          }).find("is out of range") != std::string::npos);
  }

  const Config given =
      load_config({}, {"data.workers=0", "launch.bucket_mb=0.5",
                       "train.precision=fp16", "eval.blank=one"});
  CHECK((given.data.workers == 0 && given.launch.bucket_mb == 0.5));
  CHECK((given.train.precision == Precision::kFp16 &&
         given.eval.blank == LabelPolicy::kOne));
}

TEST_CASE("a network is a kind and a device, and prints as it was written") {
  for (const std::string text : {"auto", "ib", "ib:mlx5_0", "opa", "tcp",
                                 "tcp:eth0", "tcp:10.1.0.0/16", "ucx"}) {
    INFO(text);
    const auto network = NetworkChoice::parse(text);
    REQUIRE(network);
    CHECK(network->text() == text);
  }
  CHECK(NetworkChoice::parse("ib:mlx5_0")->kind ==
        NetworkChoice::Kind::kInfiniBand);
  CHECK(NetworkChoice::parse("tcp:eth0")->device == "eth0");
  for (const std::string text :
       {"ether", "", "IB", "auto:eth0", "opa:hfi1_0", "ucx:eth0"}) {
    INFO(text);
    CHECK_FALSE(NetworkChoice::parse(text));
  }
}

TEST_CASE("a stage is off, automatic or a folder") {
  using Kind = StageChoice::Kind;
  CHECK(StageChoice::parse("off")->kind == Kind::kOff);
  CHECK(StageChoice::parse("auto")->kind == Kind::kAuto);
  const StageChoice folder = *StageChoice::parse("./off");
  CHECK((folder.kind == Kind::kFolder && folder.folder == "./off" &&
         folder.text() == "./off"));

  setenv("CHEXNET_TEST_DISK", "/disk", 1);
  Strings variables;
  const Config config = load_config(
      {}, {"data.stage=${CHEXNET_TEST_DISK}/x", "data.images=[a]"}, &variables);
  CHECK(config.data.stage.folder == "/disk/x");
  CHECK(variables == Strings{"CHEXNET_TEST_DISK"});
}
