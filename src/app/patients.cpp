// The answer is in the run's split.csv.
#include "patients.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "chexnet/config/load.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/report/run_summary.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

using ImagesOfSplits = std::map<std::string, size_t>;

PatientIds ids_of_run(const PatientsQuery& query,
                      const std::vector<SplitRow>& rows) {
  const Config config = load_config({fs::path(query.run) / "config.yaml"}, {},
                                    nullptr, [&query](Config& c) {
                                      if (!query.key.empty())
                                        c.privacy.key = query.key;
                                    });
  const auto ids = ids_of(rows, config.privacy);
  if (!ids)
    throw ConfigError(
        "[inspect] {}: its split.csv calls patients by pseudonyms, and their "
        "key is not at hand: absent, or another one ({}). Hint: --key names "
        "its file (privacy.key of the run)",
        query.run,
        config.privacy.key.empty() ? "this user's own" : config.privacy.key);
  return *ids;
}

// NIH's tables write one patient as 75 and as 00000075.
constexpr size_t kMostDigits = 16;

// Ids with the same number and another count of leading zeros, or without the
// blanks of `text`; none for a text that is no number.
std::vector<std::string> other_spellings(const std::string& text) {
  std::vector<std::string> ids;
  const std::string id{trimmed(text)};
  if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    return ids;
  const size_t begin = std::min(id.find_first_not_of('0'), id.size() - 1);
  for (std::string other = id.substr(begin); other.size() <= kMostDigits;
       other.insert(0, "0"))
    if (other != text) ids.push_back(other);
  return ids;
}

// A pseudonym as split.csv writes it: in small letters.
std::string as_pseudonym(const std::string& id) {
  std::string small = lowered(id);
  return is_pseudonym(small) ? small : "";
}

// Of a pseudonym whose key this run did not use: it may mean a patient that the
// run has. Empty where it would have been found.
std::string why_unknown(const std::string& pseudonym,
                        const std::vector<SplitRow>& rows) {
  const std::string own = rows.empty() ? "" : rows.front().patient;
  if (!is_pseudonym(own)) return "; a pseudonym, and this run has plain ids";
  const std::string key = own.substr(0, own.find('-') + 1);
  if (pseudonym.starts_with(key)) return "";
  return "; a pseudonym of another key: this run's begin with " + key;
}

std::string sentence(const ImagesOfSplits& found) {
  if (found.empty()) return "not in this run";
  std::string text;
  for (const auto& [split, images] : found)
    text += (text.empty() ? "" : ", ") + split + " (" +
            counted(static_cast<int64_t>(images), "image") + ")";
  return text;
}

}  // namespace

void print_patients(const PatientsQuery& query) {
  check_holds_run(query.run);
  const auto rows = read_splits_csv(fs::path(query.run) / "split.csv");
  std::map<std::string, ImagesOfSplits> known;
  for (const auto& row : rows) ++known[row.patient][row.split];
  // A query by pseudonyms needs no key.
  PatientIds ids;
  if (!std::ranges::all_of(query.patients, is_pseudonym, as_pseudonym))
    ids = ids_of_run(query, rows);

  Json json = Json::array();
  for (const auto& patient : query.patients) {
    const std::string pseudonym = as_pseudonym(patient);
    std::string id = pseudonym.empty() ? ids.in_files(patient) : pseudonym;
    if (known.contains(patient)) id = patient;
    const ImagesOfSplits& found = known[id];
    std::string more;
    if (found.empty() && !pseudonym.empty()) more = why_unknown(id, rows);
    const bool other_key = !more.empty();
    if (found.empty() && patient.find(',') != std::string::npos)
      more += "; one id with a comma: several are separated by blanks";
    Json same_number = Json::object();
    for (const auto& other : other_spellings(patient)) {
      const auto of_other = known.find(ids.in_files(other));
      if (of_other == known.end()) continue;
      same_number[other] = of_other->second;
      more += "; but " + other + ": " + sentence(of_other->second);
    }
    if (!query.json)
      std::cout << printable(patient) << ": " << sentence(found) << more
                << "\n";
    json.push_back({{"patient", patient}, {"images", found}});
    if (other_key) json.back()["other_key"] = true;
    if (!same_number.empty()) json.back()["same_number"] = same_number;
  }
  if (query.json) std::cout << json_text(json, 1) << "\n";
}

}  // namespace chexnet
