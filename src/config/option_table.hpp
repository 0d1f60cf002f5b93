// The rows of the table of options, by section. A row names its member and adds
// what its type does not show.
#pragma once

#include "chexnet/config/options.hpp"

namespace chexnet {

std::vector<ConfigOption> run_table();
std::vector<ConfigOption> data_table();
std::vector<ConfigOption> image_table();  // of data: from file to batch
std::vector<ConfigOption> privacy_table();
std::vector<ConfigOption> train_table();  // model and train
std::vector<ConfigOption> eval_table();   // eval and checkpoint
std::vector<ConfigOption> launch_table();

// The parts of a table, or the tables, one after the other.
std::vector<ConfigOption> joined(
    const std::vector<std::vector<ConfigOption>>& parts);

constexpr double kNoMaximum = 1e15;  // a double holds every integer up to here

// Members that need a conversion; the others convert by themselves.
template <class Plain>
FieldRef field_ref(Plain& member) {
  return &member;
}

template <class Choice>
requires std::is_enum_v<Choice> FieldRef field_ref(Choice& member) {
  return NamedValue{choice_names<Choice>(),
                    [&member] { return std::string(choice_name(member)); },
                    [&member](const std::string& text) {
                      const auto found = find_choice<Choice>(text);
                      if (found) member = *found;
                      return found.has_value();
                    }};
}

template <class Choice>
requires std::is_enum_v<Choice> FieldRef
field_ref(std::optional<Choice>& member) {
  return NamedValue{names_or_auto<Choice>(),
                    [&member] { return std::string(choice_name(member)); },
                    [&member](const std::string& text) {
                      const auto found = find_choice<Choice>(text);
                      if (found || text == "auto") member = found;
                      return found || text == "auto";
                    }};
}

template <class Choice>
requires std::is_enum_v<Choice> FieldRef
field_ref(std::vector<Choice>& member) {
  return NamedList{choice_names<Choice>(),
                   [&member] {
                     Strings names;
                     for (const Choice value : member)
                       names.emplace_back(choice_name(value));
                     return names;
                   },
                   [&member](const Strings& names) {
                     std::vector<Choice> values;
                     for (const auto& name : names)
                       if (const auto found = find_choice<Choice>(name))
                         values.push_back(*found);
                     const bool all_known = values.size() == names.size();
                     if (all_known) member = std::move(values);
                     return all_known;
                   }};
}

FieldRef field_ref(StageChoice& member);
FieldRef field_ref(CorruptChoice& member);
FieldRef field_ref(FoldChoice& member);
FieldRef field_ref(UncertainChoice& member);
FieldRef field_ref(NetworkChoice& member);
FieldRef field_ref(std::optional<DeviceKind>& member);

// The key is the member's path.
#define MEMBER(member) \
  .key = #member,      \
  .field = [](Config& config) { return field_ref(config.member); }

// The same of an integer whose 0 is said "auto".
#define AUTO_MEMBER(member)                                 \
  .key = #member, .field = [](Config& config) -> FieldRef { \
    return AutoInteger{&config.member};                     \
  }

}  // namespace chexnet
