#include "chexnet/data/split_table.hpp"

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {

namespace fs = std::filesystem;

std::vector<SplitRow> split_rows(const Manifest& manifest, const Splits& splits,
                                 const PatientIds& ids) {
  std::vector<SplitRow> rows;
  for (const Split* split : {&splits.train, &splits.val, &splits.test})
    for (const auto row : split->rows)
      rows.push_back({manifest.images[row],
                      ids.in_files(manifest.patients[row]), split->name});
  return rows;
}

namespace {

fs::path sum_of(const fs::path& path) { return path.string() + ".sha256"; }

}  // namespace

void write_splits_csv(const fs::path& path, const std::vector<SplitRow>& rows) {
  std::string table = "image,patient,split\n";
  for (const auto& row : rows)
    table += csv_field(row.image) + "," + csv_field(row.patient) + "," +
             row.split + "\n";
  write_atomically(sum_of(path),
                   sha256_hex(table) + "  " + path.filename().string() + "\n");
  write_atomically(path, table);
}

std::vector<SplitRow> read_splits_csv(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  CsvReader csv(text, path.string());
  std::vector<std::string_view> fields;
  const std::vector<std::string_view> header = {"image", "patient", "split"};
  if (!csv.next(fields) || fields != header)
    throw DataError(
        "[split] {}: does not begin with image,patient,split. Hint: it is "
        "written by training; without it the check for patients that were "
        "trained on is left out",
        path.string());
  const auto refuse = [&](size_t line, const char* what) {
    throw DataError(
        "[split] {}:{}: {}. Hint: the file is damaged or was changed; what it "
        "says of patients cannot be trusted",
        path.string(), line, what);
  };
  if (!text.ends_with('\n')) refuse(csv.line(), "its end is cut off");
  std::error_code error;
  if (fs::exists(sum_of(path), error) &&
      !read_text(sum_of(path)).starts_with(sha256_hex(text)))
    refuse(csv.line(),
           "is not the table that the run wrote (split.csv.sha256)");
  std::vector<SplitRow> rows;
  while (csv.next(fields)) {
    const bool is_row =
        fields.size() == header.size() && !fields[0].empty() &&
        (fields[2] == "train" || fields[2] == "val" || fields[2] == "test");
    if (!is_row) refuse(csv.line(), "is no image, patient and split");
    rows.push_back({std::string(fields[0]), std::string(fields[1]),
                    std::string(fields[2])});
  }
  if (rows.empty()) refuse(csv.line(), "names no image");
  return rows;
}

std::optional<PatientIds> ids_of(const std::vector<SplitRow>& rows,
                                 const PrivacyConfig& config) {
  std::vector<std::string> written;
  for (const auto& row : rows) written.push_back(row.patient);
  return ids_as_written(config, written);
}

PatientIds ids_for(const Config& config, const std::filesystem::path& path) {
  std::vector<SplitRow> rows;
  try {
    if (std::filesystem::is_regular_file(path)) rows = read_splits_csv(path);
  } catch (const DataError&) {  // is written anew
  }
  if (!ids_of(rows, config.privacy))
    throw ConfigError(
        "[privacy] {} calls patients by pseudonyms of another key than the one "
        "at hand. Hint: privacy.key names the run's own, by a full path",
        path.string());
  return patient_ids(config);
}

}  // namespace chexnet
