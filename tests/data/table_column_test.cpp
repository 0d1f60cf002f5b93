#include "chexnet/data/table_column.hpp"

#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("cells of any column stand by the rows of the manifest") {
  const ScratchFolder folder;
  DataConfig config;
  config.manifest.format = {ManifestFormat::kCsv};
  config.manifest.columns.findings = {"Mass"};
  const auto a = folder.write(
      "a.csv", "image,Ward,Mass\nx.png,\"ICU, 2\",1\n\ny.png,,0\n");
  const auto b = folder.write("b.csv", "Mass,image,ward\n1,z.png, ER \n");
  config.manifest.path = {a, b};
  const Manifest both = read_manifest(config);
  CHECK(table_column(both, "ward") ==
        std::vector<std::string>{"ICU, 2", "", "ER"});
  const auto refusal = [&](const std::string& column) {
    return error_of<DataError>([&] { table_column(both, column); });
  };
  CHECK(
      refusal("view").find("has no column 'view'. Hint: it has image, Ward") !=
      std::string::npos);
  folder.write("b.csv", "Mass,image,ward,Ward\n1,z.png,ER,OR\n");
  CHECK(refusal("ward").find("column 'ward' is in the header twice") !=
        std::string::npos);
  folder.write("b.csv", "Mass,image,ward\n");
  CHECK(refusal("ward").find("b.csv: has changed") != std::string::npos);
}
