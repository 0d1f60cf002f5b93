// The choices that keys of a config offer: one type each, with one table of its
// names, which parsing, --help, did-you-mean, docs/config.md and messages use.
// A key that may be left to the program holds a std::optional, empty for
// "auto".
#pragma once

#include <array>
#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chexnet {

template <class Choice>
struct NamedChoice {
  Choice value;
  const char* name;
};

// How a table of images and labels is laid out.
enum class ManifestFormat {
  kNih,
  kChexpert,
  kMimicCxr,
  kPadchest,
  kVindr,
  kBrax,
  kCsv
};
constexpr auto names_of(ManifestFormat) {
  using enum ManifestFormat;
  return std::to_array<NamedChoice<ManifestFormat>>({{kNih, "nih"},
                                                     {kChexpert, "chexpert"},
                                                     {kMimicCxr, "mimic-cxr"},
                                                     {kPadchest, "padchest"},
                                                     {kVindr, "vindr"},
                                                     {kBrax, "brax"},
                                                     {kCsv, "csv"}});
}

// What a label that is blank or uncertain counts as; kIgnore: it is not
// labeled.
enum class LabelPolicy { kIgnore, kZero, kOne };
constexpr auto names_of(LabelPolicy) {
  using enum LabelPolicy;
  return std::to_array<NamedChoice<LabelPolicy>>(
      {{kIgnore, "ignore"}, {kZero, "zero"}, {kOne, "one"}});
}

// The same for uncertain labels in training; kSmooth: a positive of which one
// is less sure (data/labels.hpp).
enum class TrainingPolicy { kIgnore, kZero, kOne, kSmooth };
constexpr auto names_of(TrainingPolicy) {
  using enum TrainingPolicy;
  return std::to_array<NamedChoice<TrainingPolicy>>({{kIgnore, "ignore"},
                                                     {kZero, "zero"},
                                                     {kOne, "one"},
                                                     {kSmooth, "smooth"}});
}

// How patients are called in what a run writes.
enum class PatientIdForm { kPlain, kPseudonym };
constexpr auto names_of(PatientIdForm) {
  using enum PatientIdForm;
  return std::to_array<NamedChoice<PatientIdForm>>(
      {{kPlain, "plain"}, {kPseudonym, "pseudonym"}});
}

enum class ResizeKind {
  kAntialias,  // torchvision's bilinear antialias kernel for uint8, bit for bit
  kArea        // exact box mean
};
constexpr auto names_of(ResizeKind) {
  using enum ResizeKind;
  return std::to_array<NamedChoice<ResizeKind>>(
      {{kAntialias, "antialias"}, {kArea, "area"}});
}

// kAuto: a JPEG much larger than the wanted size is decoded at a part of it.
enum class JpegScale { kAuto, kOff };
constexpr auto names_of(JpegScale) {
  using enum JpegScale;
  return std::to_array<NamedChoice<JpegScale>>(
      {{kAuto, "auto"}, {kOff, "off"}});
}

// The part of an image for training; kResized: a random part, resized.
enum class TrainCrop { kCenter, kRandom, kResized };
constexpr auto names_of(TrainCrop) {
  using enum TrainCrop;
  return std::to_array<NamedChoice<TrainCrop>>(
      {{kCenter, "center"}, {kRandom, "random"}, {kResized, "resized"}});
}

// The order of training images (data/pipeline.hpp).
enum class PipelineKind { kGlobal, kNew, kOld };
constexpr auto names_of(PipelineKind) {
  using enum PipelineKind;
  return std::to_array<NamedChoice<PipelineKind>>(
      {{kGlobal, "global"}, {kNew, "new"}, {kOld, "old"}});
}

// What to do about images of the table that are not there.
enum class OnMissing { kFail, kSkip };
constexpr auto names_of(OnMissing) {
  using enum OnMissing;
  return std::to_array<NamedChoice<OnMissing>>(
      {{kFail, "fail"}, {kSkip, "skip"}});
}

enum class SplitName { kTrain, kVal, kTest };
constexpr auto names_of(SplitName) {
  using enum SplitName;
  return std::to_array<NamedChoice<SplitName>>(
      {{kTrain, "train"}, {kVal, "val"}, {kTest, "test"}});
}

// Of torchvision; their layers: model/engine/network_spec.hpp.
enum class Architecture {
  kDenseNet121,
  kDenseNet169,
  kDenseNet201,
  kResNet50,
  kResNet101
};
constexpr auto names_of(Architecture) {
  using enum Architecture;
  return std::to_array<NamedChoice<Architecture>>(
      {{kDenseNet121, "densenet121"},
       {kDenseNet169, "densenet169"},
       {kDenseNet201, "densenet201"},
       {kResNet50, "resnet50"},
       {kResNet101, "resnet101"}});
}

enum class OptimizerKind { kAdam, kAdamW, kSgd };
constexpr auto names_of(OptimizerKind) {
  using enum OptimizerKind;
  return std::to_array<NamedChoice<OptimizerKind>>(
      {{kAdam, "adam"}, {kAdamW, "adamw"}, {kSgd, "sgd"}});
}

// How the learning rate grows with the batch.
enum class LrScaling { kNone, kLinear, kSqrt };
constexpr auto names_of(LrScaling) {
  using enum LrScaling;
  return std::to_array<NamedChoice<LrScaling>>(
      {{kNone, "none"}, {kLinear, "linear"}, {kSqrt, "sqrt"}});
}

enum class ScheduleKind { kConstant, kPlateau, kCosine, kStep };
constexpr auto names_of(ScheduleKind) {
  using enum ScheduleKind;
  return std::to_array<NamedChoice<ScheduleKind>>({{kConstant, "constant"},
                                                   {kPlateau, "plateau"},
                                                   {kCosine, "cosine"},
                                                   {kStep, "step"}});
}

// Of activations and of the arithmetic on them; weights are double for kFp64,
// else float. kTf32: kFp32, but a GPU may round factors to 10 bits.
enum class Precision { kFp64, kFp32, kTf32, kBf16, kFp16 };
constexpr auto names_of(Precision) {
  using enum Precision;
  return std::to_array<NamedChoice<Precision>>({{kFp64, "fp64"},
                                                {kFp32, "fp32"},
                                                {kTf32, "tf32"},
                                                {kBf16, "bf16"},
                                                {kFp16, "fp16"}});
}

// kAuto: our own engine wherever it can compute, 3x3 convolutions by Winograd's
// algorithm where it is faster; kDirect: these always as the plain sum; kAten:
// LibTorch's operators everywhere.
enum class EngineKind { kAuto, kDirect, kAten };
constexpr auto names_of(EngineKind) {
  using enum EngineKind;
  return std::to_array<NamedChoice<EngineKind>>(
      {{kAuto, "auto"}, {kDirect, "direct"}, {kAten, "aten"}});
}

// Up to where a network is frozen (model/engine/network_spec.hpp has its
// parts).
enum class FrozenPart { kNone, kStem, kBlock1, kBlock2, kBlock3, kBackbone };
constexpr auto names_of(FrozenPart) {
  using enum FrozenPart;
  return std::to_array<NamedChoice<FrozenPart>>({{kNone, "none"},
                                                 {kStem, "stem"},
                                                 {kBlock1, "block1"},
                                                 {kBlock2, "block2"},
                                                 {kBlock3, "block3"},
                                                 {kBackbone, "backbone"}});
}

// The maps of forward that a GPU keeps for backward
// (model/network_options.hpp).
enum class ActivationMemory { kSpeed, kRecompute };
constexpr auto names_of(ActivationMemory) {
  using enum ActivationMemory;
  return std::to_array<NamedChoice<ActivationMemory>>(
      {{kSpeed, "speed"}, {kRecompute, "recompute"}});
}

// Whether a GPU gets a step as one launch (train/step.hpp).
enum class RecordStep { kAuto, kOn, kOff };
constexpr auto names_of(RecordStep) {
  using enum RecordStep;
  return std::to_array<NamedChoice<RecordStep>>(
      {{kAuto, "auto"}, {kOn, "on"}, {kOff, "off"}});
}

// How often an image is drawn in an epoch (data/balanced.hpp).
enum class SamplingKind { kUniform, kRareFirst };
constexpr auto names_of(SamplingKind) {
  using enum SamplingKind;
  return std::to_array<NamedChoice<SamplingKind>>(
      {{kUniform, "uniform"}, {kRareFirst, "rare_first"}});
}

// How the loss weighs positives against negatives (model/loss.hpp).
enum class LossWeighting { kNone, kPosWeight, kBalanced };
constexpr auto names_of(LossWeighting) {
  using enum LossWeighting;
  return std::to_array<NamedChoice<LossWeighting>>(
      {{kNone, "none"}, {kPosWeight, "pos_weight"}, {kBalanced, "balanced"}});
}

// The loss of an entry (model/loss.hpp).
enum class LossKind { kBce, kFocal, kAsymmetric };
constexpr auto names_of(LossKind) {
  using enum LossKind;
  return std::to_array<NamedChoice<LossKind>>(
      {{kBce, "bce"}, {kFocal, "focal"}, {kAsymmetric, "asymmetric"}});
}

// What to do about a gradient that is infinite or not a number.
enum class OnNonFinite { kFail, kSkip };
constexpr auto names_of(OnNonFinite) {
  using enum OnNonFinite;
  return std::to_array<NamedChoice<OnNonFinite>>(
      {{kFail, "fail"}, {kSkip, "skip"}});
}

// Parts of a picture that an evaluation looks at: the center, with its mirror
// image, or these two of the center and of the four corners.
enum class EvalCrops { kOne, kTwo, kTen };
constexpr auto names_of(EvalCrops) {
  using enum EvalCrops;
  return std::to_array<NamedChoice<EvalCrops>>(
      {{kOne, "1"}, {kTwo, "2"}, {kTen, "10"}});
}

// What a score is of: each image, or all images of a study or of a patient.
enum class ScoredBy { kImage, kStudy, kPatient };
constexpr auto names_of(ScoredBy) {
  using enum ScoredBy;
  return std::to_array<NamedChoice<ScoredBy>>(
      {{kImage, "image"}, {kStudy, "study"}, {kPatient, "patient"}});
}
// How several images make one score.
enum class CombineImages { kMax, kMean };
constexpr auto names_of(CombineImages) {
  using enum CombineImages;
  return std::to_array<NamedChoice<CombineImages>>(
      {{kMax, "max"}, {kMean, "mean"}});
}

// What makes a checkpoint the best one.
enum class BestBy { kAuroc, kLoss };
constexpr auto names_of(BestBy) {
  using enum BestBy;
  return std::to_array<NamedChoice<BestBy>>(
      {{kAuroc, "auroc"}, {kLoss, "loss"}});
}

enum class DeviceKind { kCpu, kCuda };
constexpr auto names_of(DeviceKind) {
  using enum DeviceKind;
  return std::to_array<NamedChoice<DeviceKind>>(
      {{kCpu, "cpu"}, {kCuda, "cuda"}});
}

// Which MPI. The second stands for all of its ABI: MPICH, Cray MPICH, Intel
// MPI.
enum class MpiFamily { kOpenMpi, kMpich };
constexpr auto names_of(MpiFamily) {
  using enum MpiFamily;
  return std::to_array<NamedChoice<MpiFamily>>(
      {{kOpenMpi, "openmpi"}, {kMpich, "mpich"}});
}

// What to do about ranks on the wrong cores: move them, name them, or nothing.
enum class BindPolicy { kFix, kCheck, kOff };
constexpr auto names_of(BindPolicy) {
  using enum BindPolicy;
  return std::to_array<NamedChoice<BindPolicy>>(
      {{kFix, "fix"}, {kCheck, "check"}, {kOff, "off"}});
}

// How float gradients travel between ranks; sums of kNone are in the gradient's
// own type.
enum class GradientCompression { kNone, kFp16, kBf16 };
constexpr auto names_of(GradientCompression) {
  using enum GradientCompression;
  return std::to_array<NamedChoice<GradientCompression>>(
      {{kNone, "none"}, {kFp16, "fp16"}, {kBf16, "bf16"}});
}

template <class Choice>
constexpr const char* choice_name(Choice value) {
  for (const auto& choice : names_of(value))
    if (choice.value == value) return choice.name;
  assert(false && "a value without a name");
  return "";
}

// "auto" for what is left to the program.
template <class Choice>
constexpr const char* choice_name(const std::optional<Choice>& value) {
  return value ? choice_name(*value) : "auto";
}

// Nothing for text that is no name of the type.
template <class Choice>
constexpr std::optional<Choice> find_choice(std::string_view name) {
  for (const auto& choice : names_of(Choice{}))
    if (choice.name == name) return choice.value;
  return std::nullopt;
}

// All names, in the order of the table.
template <class Choice>
std::vector<std::string> choice_names() {
  std::vector<std::string> names;
  for (const auto& choice : names_of(Choice{})) names.emplace_back(choice.name);
  return names;
}

// The same of a key that may be left to the program.
template <class Choice>
std::vector<std::string> names_or_auto() {
  std::vector<std::string> names = choice_names<Choice>();
  names.insert(names.begin(), "auto");
  return names;
}

// data.stage: whether, and where, a node keeps copies of packs, shards and
// archives.
struct StageChoice {
  enum class Kind { kOff, kAuto, kFolder };
  Kind kind = Kind::kOff;
  std::string folder;  // of kFolder

  // "off", "auto", or a folder whose path has a '/'; nothing for other text.
  static std::optional<StageChoice> parse(const std::string& text);
  static const char* known();  // the forms above, for a hint
  std::string text() const;
};

// data.uncertain: the policy of all findings, and of single ones another.
struct UncertainChoice {
  TrainingPolicy policy = TrainingPolicy::kIgnore;
  struct OfFinding {
    std::string finding;
    TrainingPolicy policy;
  };
  std::vector<OfFinding> of_findings = {};

  // {"ignore", "Edema=one"}; nothing for other lists.
  static std::optional<UncertainChoice> parse(
      const std::vector<std::string>& list);
  static const char* known();  // the forms above, for a hint
  std::vector<std::string> list() const;
};

// data.corrupt: what to do about damaged images.
struct CorruptChoice {
  bool skip = false;
  double limit = 0.01;  // largest fraction that is skipped

  // "fail", "skip" or a fraction; nothing for other text.
  static std::optional<CorruptChoice> parse(const std::string& text);
  static const char* known();  // the forms above, for a hint
  std::string text() const;
};

// data.fold: which of how many folds validates.
struct FoldChoice {
  int number = 0, folds = 0;  // from 1 to `folds`; 0 of 0 = off
  bool on() const { return folds > 0; }

  // "off", or "1/5" to "5/5"; nothing for other text.
  static std::optional<FoldChoice> parse(const std::string& text);
  static const char* known();  // the forms above, for a hint
  std::string text() const;
};

// launch.network: the network for gradients.
struct NetworkChoice {
  enum class Kind { kAuto, kInfiniBand, kOmniPath, kTcp, kUcx };
  Kind kind = Kind::kAuto;
  // Of kInfiniBand and kTcp: "mlx5_0", "eth0", "10.1.0.0/16"; empty = any.
  std::string device;

  // "auto", "ib[:mlx5_0]", "opa", "tcp[:eth0]", "ucx"; nothing for other text.
  static std::optional<NetworkChoice> parse(const std::string& text);
  static const char* known();  // the forms above, for a hint
  std::string text() const;
};

}  // namespace chexnet
