// Which rows of two tables are taken: conditions, a list of what is left out,
// and weights of images.
//
//   input   conditions, a line break between them | NUL | data.exclude | NUL
//           | a table | NUL | another table
#include <algorithm>
#include <cmath>

#include "chexnet/data/manifest.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  static MemoryFile left_out, one, other;
  Reader parts(bytes);
  const auto conditions = bytes_of(parts.until('\0'));
  const std::string names = parts.until('\0'), table = parts.until('\0');
  DataConfig config;
  config.manifest.format = {ManifestFormat::kCsv};
  config.manifest.path = {
      one.holding(std::as_bytes(std::span(table.data(), table.size())))};
  if (!parts.rest().empty())
    config.manifest.path.push_back(other.holding(parts.rest()));
  for (Reader lines(conditions); !lines.rest().empty();)
    config.filter.push_back(lines.until('\n'));
  if (!names.empty())
    config.exclude =
        left_out.holding(std::as_bytes(std::span(names.data(), names.size())));
  if (table.find("weight") != std::string::npos)
    config.sample_weight = "weight";
  Manifest m;
  if (!accepted<DataError, ConfigError>([&] { m = read_manifest(config); }))
    return;
  require(m.size() > 0, "there is something");
  for (const auto& image : m.images)
    require(
        ("\n" + names + "\n").find("\n" + image + "\n") == std::string::npos,
        "what is left out is not there");
  // Fewer conditions choose no fewer rows.
  config.filter.clear();
  config.exclude.clear();
  Manifest all;
  if (accepted<DataError, ConfigError>([&] { all = read_manifest(config); }))
    require(all.size() >= m.size(), "a condition adds no row");
}

std::vector<std::string> seeds() {
  const std::string head = "image,patient,age,sex,view,weight,Mass\n";
  const std::string table = head +
                            "a.png,1,40,M,PA,1,1\nb.png,2,058Y,F,AP,0.5,0\n"
                            "c.png,3,7M,,PA,2,\n";
  const std::string nul(1, '\0');
  return {"view=PA" + nul + "b.png\n" + nul + table,
          "age>=18\nsex!=M|x\nage<90" + nul + nul + table,
          "age<=40\npatient=1|3\nage>2" + nul + "2\n\n" + nul + table + nul +
              head + "d.png,4,50,M,AP,1,0\n",
          "Mass=1" + nul +
              "\xEF\xBB\xBF"
              "c.png\nnot-there\n" +
              nul + table,
          "vew=PA" + nul + nul + table,
          "view" + nul + "a,b\n" + nul + table,
          "" + nul + nul + "image,Mass\na.png,1\n"};
}

const Registered kTarget{{"row_choice", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
