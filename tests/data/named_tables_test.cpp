// Tables of MIMIC-CXR-JPG, PadChest, VinDr-CXR and BRAX in small: what their
// loaders get wrong, row by row.
#include <cmath>
#include <map>

#include "chexnet/core/error.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/split.hpp"
#include "data/row_choice.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

DataConfig named_set(ManifestFormat format, const std::string& path) {
  DataConfig config;
  config.manifest.format = {format};
  config.manifest.path = {path};
  return config;
}

// Labels as text: 1, 0, or . for blank.
std::string label_text(const Manifest& m, size_t row) {
  std::string text;
  for (size_t k = 0; k < m.finding_count(); ++k) {
    const float label = m.label_row(row)[k];
    text += std::isnan(label) ? '.' : label == 1 ? '1' : '0';
  }
  return text;
}

size_t row_named(const Manifest& m, const std::string& image) {
  INFO(image);
  REQUIRE(m.rows.contains(image));
  return m.rows.at(image);
}

class MimicFolder {
 public:
  MimicFolder() {
    labels = folder.write("mimic-cxr-2.0.0-chexpert.csv",
                          "subject_id,study_id,Edema,No Finding,Pneumonia\n"
                          "10000001,50000001,1.0,,-1.0\n"
                          "10000002,50000002,,1.0,\n"
                          "11000003,50000003,0.0,,\n");
    folder.write("mimic-cxr-2.0.0-metadata.csv",
                 "dicom_id,subject_id,study_id,ViewPosition,StudyTime\n"
                 "c-1,11000003,50000003,PA,1\n"
                 "a-1,10000001,50000001,AP,1\n"
                 "a-2,10000001,50000001,LATERAL,1\n"
                 "b-1,10000002,50000002,,1\n"
                 "d-1,10000002,50000009,PA,1\n");
    write_splits(
        "a-1,50000001,10000001,train\na-2,50000001,10000001,train\n"
        "b-1,50000002,10000002,validate\nc-1,50000003,11000003,test\n"
        "d-1,50000009,10000002,validate\n");
  }
  void write_splits(const std::string& rows) {
    folder.write("mimic-cxr-2.0.0-split.csv",
                 "dicom_id,study_id,subject_id,split\n" + rows);
  }
  ScratchFolder folder;
  std::string labels;
};

}  // namespace

TEST_CASE("MIMIC-CXR-JPG: a study's labels reach its images, in its splits") {
  MimicFolder set;
  const DataConfig config = named_set(ManifestFormat::kMimicCxr, set.labels);
  const Manifest m = read_manifest(config);
  REQUIRE(m.size() == 4);
  CHECK(m.findings ==
        std::vector<std::string>{"Edema", "No Finding", "Pneumonia"});
  const size_t frontal = row_named(m, "files/p10/p10000001/s50000001/a-1.jpg");
  CHECK(m.patients[frontal] == "10000001");
  CHECK(m.views[frontal] == "AP");
  CHECK(m.studies[frontal] == "50000001");
  // Uncertain is left out of training, not mentioned counts as absent.
  CHECK(label_text(m, frontal) == "10.");
  CHECK(label_text(m, row_named(m, "files/p10/p10000001/s50000001/a-2.jpg")) ==
        "10.");
  const size_t normal = row_named(m, "files/p10/p10000002/s50000002/b-1.jpg");
  CHECK(label_text(m, normal) == "010");
  CHECK(m.views[normal].empty());
  // A study without labels is nobody's test case.
  CHECK(m.left_out.contains("files/p10/p10000002/s50000009/d-1.jpg"));
  CHECK(m.place(normal).ends_with("mimic-cxr-2.0.0-metadata.csv:5"));

  const Splits splits = make_splits(m, config);
  CHECK(splits.train.rows.size() == 2);
  CHECK(splits.val.rows == std::vector{static_cast<uint32_t>(normal)});
  CHECK(splits.test.rows.size() == 1);
  DataConfig folded = config;  // the official test stays
  folded.fold = {1, 2};
  const Manifest again = read_manifest(folded);
  const Splits cut = make_splits(again, folded);
  CHECK(cut.test.rows.size() == 1);
  CHECK(cut.train.rows.size() + cut.val.rows.size() == 3);
  DataConfig frontals = config;
  frontals.filter = {"ViewPosition=AP|PA"};
  CHECK(read_manifest(frontals).size() == 2);
}

TEST_CASE("MIMIC-CXR-JPG: tables that do not belong together are refused") {
  MimicFolder set;
  DataConfig config = named_set(ManifestFormat::kMimicCxr, set.labels);
  const auto refused = [&] {
    return error_of<Error>([&] { read_manifest(config); });
  };
  set.write_splits("a-1,50000001,10000001,train\n");
  CHECK(refused().find("metadata.csv:2: its image is in no split") !=
        std::string::npos);
  set.write_splits("a-1,50000001,10000001,valid\n");
  CHECK(refused().find("split.csv:2: no split 'valid'") != std::string::npos);
  set.write_splits("c-1,50000002,11000003,test\na-1,50000001,10000001,train\n");
  CHECK(refused().find("metadata.csv:2: its image is of another study") !=
        std::string::npos);
  config.manifest.path = {set.folder.write("a-negbio.csv", "study_id\n")};
  CHECK(refused().find("no column 'subject_id'") != std::string::npos);
  config.manifest.path = {
      (set.folder / "mimic-cxr-2.0.0-metadata.csv").string()};
  CHECK(refused().find("is no table of labels of MIMIC-CXR-JPG") !=
        std::string::npos);
  std::filesystem::remove(set.folder / "mimic-cxr-2.0.0-split.csv");
  config.manifest.path = {set.labels};
  CHECK(refused().find("mimic-cxr-2.0.0-split.csv") != std::string::npos);
}

TEST_CASE("MIMIC-CXR-JPG beside other tables keeps its splits") {
  MimicFolder set;
  DataConfig config = named_set(ManifestFormat::kMimicCxr, set.labels);
  config.manifest.format = {ManifestFormat::kCsv, ManifestFormat::kMimicCxr};
  config.manifest.columns.patient = "p";
  config.manifest.path = {
      set.folder.write("own.csv", "image,p,Edema\nx.png,1,1\ny.png,2,0\n"),
      set.labels};
  config.manifest.split = {SplitName::kTrain, SplitName::kTrain};
  const Manifest m = read_manifest(config);
  CHECK(m.size() == 6);
  const Splits splits = make_splits(m, config);
  CHECK(splits.train.rows.size() == 4);
  CHECK(splits.val.rows.size() == 1);
  CHECK(splits.test.rows.size() == 1);
}

TEST_CASE("PadChest: words count whole, and its damaged files stay away") {
  const ScratchFolder folder;
  const std::string head =
      ",ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,"
      "PatientSex_DICOM,Projection,Labels\n";
  const std::string damaged =
      "216840111366964012283393834152009033102258826_00-059-087.png";
  const Manifest m = read_manifest(named_set(
      ManifestFormat::kPadchest,
      folder.write(
          "padchest.csv",
          head +
              "0,1_a.png,7,20080512,1,33,1930.0,F,PA,\"['pseudonodule', "
              "'subcutaneous emphysema', 'pericardial effusion']\"\n"
              "1,2_b.png,7,20080512,2,34,,M,L,\"[' nodule', 'hydropneumothorax "
              "', 'hiatal hernia']\"\n"
              "2,3_c.png,0,20080512,3,35,1950.0,M,AP_horizontal,['normal']\n"
              "3,4_d.png,0,20080512,4,36,1950.0,M,PA,[]\n"
              "4,5_e.png,0,20080512,5,37,1950.0,M,PA,\"['exclude', "
              "'nodule']\"\n"
              "5," +
              damaged +
              ",0,20080512,6,38,1950.0,M,PA,['nodule']\n"
              "6,7_f.png,0,20080512,7,39,1950.0,M,PA,\"['Unchanged', "
              "'Nodule']\"\n")));
  REQUIRE(m.size() == 5);
  CHECK(label_text(m, row_named(m, "0/7_f.png")) == ".....1........");
  CHECK(m.findings == nih_findings());
  CHECK(label_text(m, row_named(m, "7/1_a.png")) == "00000000000000");
  // Effusion, Nodule, Pneumothorax, Hernia
  CHECK(label_text(m, row_named(m, "7/2_b.png")) == "00100101000001");
  CHECK(label_text(m, row_named(m, "0/3_c.png")) == "00000000000000");
  CHECK(label_text(m, row_named(m, "0/4_d.png")) == "..............");
  CHECK(m.ages[0] == 78);
  CHECK(std::isnan(m.ages[1]));
  CHECK(m.sexes[0] == "F");
  CHECK(m.views[2] == "AP_horizontal");
  CHECK(m.studies == std::vector<std::string>{"1", "2", "3", "4", "7"});
  CHECK(m.left_out.contains("0/5_e.png"));
  CHECK(m.left_out.contains("0/" + damaged));
}

TEST_CASE("VinDr-CXR: what most readers of an image say") {
  const ScratchFolder folder;
  const std::string train = folder.write(
      "image_labels_train.csv",
      "image_id,rad_id,Nodule/Mass,Pulmonary fibrosis,Other diseases,"
      "No finding\n"
      "aa,R1,1,0,0,0\nbb,R1,0,0,0,1\naa,R2,1,1,0,0\naa,R3,0,0,1,0\n"
      "bb,R8,0,0,0,1\nbb,R9,1,0,0,0\n");
  const std::string test = folder.write(
      "image_labels_test.csv",
      "image_id,Nodule/Mass,Pulmonary fibrosis,Other disease,No finding\n"
      "cc,0,1,1,0\n");
  DataConfig config = named_set(ManifestFormat::kVindr, train);
  config.manifest.path = {train, test};
  config.manifest.split = {SplitName::kTrain, SplitName::kTest};
  const Manifest m = read_manifest(config);
  REQUIRE(m.size() == 3);
  CHECK(m.findings ==
        std::vector<std::string>{"Nodule/Mass", "Fibrosis", "Other diseases"});
  CHECK(label_text(m, row_named(m, "aa.png")) == "100");
  CHECK(label_text(m, row_named(m, "bb.png")) == "000");
  CHECK(label_text(m, row_named(m, "cc.png")) == "011");
  CHECK_FALSE(m.knows_patients);
  CHECK(m.views[0] == "PA");
  config.filter = {"view=PA|AP"};  // as for the other sets
  CHECK(read_manifest(config).size() == 3);
  config = named_set(
      ManifestFormat::kVindr,
      folder.write("bad.csv", "image_id,rad_id,Nodule/Mass\naa,R1,-1\n"));
  CHECK(error_of<DataError>([&] {
          read_manifest(config);
        }).find("bad.csv:2: Nodule/Mass is neither 0 nor 1") !=
        std::string::npos);
}

TEST_CASE("BRAX: CheXpert's columns beside others, ages in bands") {
  const ScratchFolder folder;
  std::string head = "AccessionNumber,Rows,PatientID,PngPath,DicomPath";
  std::string blank;
  for (const auto& name : chexpert_findings()) {
    head += "," + name;
    if (name != "Edema") blank += ",";
  }
  const Manifest m = read_manifest(
      named_set(ManifestFormat::kBrax,
                folder.write("master_spreadsheet_update.csv",
                             head +
                                 ",PatientSex,PatientAge,ViewPosition\n"
                                 "9,2500,id_1,images/id_1/a.png,x" +
                                 blank + ",1.0,F,85 or more,PA\n")));
  REQUIRE(m.size() == 1);
  CHECK(m.findings == chexpert_findings());
  CHECK(m.images[0] == "images/id_1/a.png");
  CHECK(m.patients[0] == "id_1");
  CHECK(m.studies[0] == "9");
  CHECK(m.ages[0] == 85);
  CHECK(label_text(m, 0) == "00000000000001");
}

TEST_CASE("named data sets: what contradicts itself is refused with its line") {
  const ScratchFolder folder;
  const auto refused = [&](ManifestFormat format, const std::string& table) {
    const auto config =
        named_set(format, folder.write("a-chexpert.csv", table));
    return error_of<DataError>([&] { read_manifest(config); });
  };
  const std::string padchest =
      "ImageID,ImageDir,StudyDate_DICOM,PatientID,PatientBirth,"
      "PatientSex_DICOM,Projection,Labels\n";
  for (const char* list : {"nan", "nodule|mass", "['nodule' 'mass']",
                           "['nodule';'mass']", "['nodule']x", "['nodule"})
    CHECK(refused(ManifestFormat::kPadchest,
                  padchest + "1.png,0,20080512,1,1930,F,PA," + list + "\n")
              .find("a-chexpert.csv:2: Labels: ") != std::string::npos);
  const std::string vindr = "image_id,rad_id,Cardiomegaly\n";
  CHECK(refused(ManifestFormat::kVindr, vindr + "a,R1,1\na,R1,1\n")
            .find(":3: this reader's row") != std::string::npos);
  CHECK(refused(ManifestFormat::kVindr, "image_id,Edema\na,1\na,0\n")
            .find(":3: this reader's row") != std::string::npos);
  folder.write("a-split.csv", "dicom_id,study_id,split\nd,50,train\n");
  folder.write("a-metadata.csv",
               "dicom_id,subject_id,study_id,ViewPosition\nd,10,50,PA\n");
  const std::string mimic = "subject_id,study_id,Edema\n";
  CHECK(refused(ManifestFormat::kMimicCxr, mimic + "11,50,1\n")
            .find("a-metadata.csv:2: its study is of another patient") !=
        std::string::npos);
  folder.write("a-split.csv",
               "dicom_id,study_id,split\nd,50,train\nd,50,test\n");
  CHECK(refused(ManifestFormat::kMimicCxr, mimic + "10,50,1\n")
            .find("a-split.csv:3: its image appears twice") !=
        std::string::npos);
}

TEST_CASE("named data sets: ages are filtered as they are grouped") {
  const ScratchFolder folder;
  DataConfig config = named_set(
      ManifestFormat::kPadchest,
      folder.write("p.csv",
                   "ImageID,ImageDir,StudyDate_DICOM,PatientID,PatientBirth,"
                   "PatientSex_DICOM,Projection,Labels\n"
                   "1.png,0,20080512,1,1930.0,F,PA,['normal']\n"
                   "2.png,0,20080512,2,1995.0,F,PA,['normal']\n"));
  config.filter = {"age>=18"};
  CHECK(read_manifest(config).images == std::vector<std::string>{"0/1.png"});
  CHECK(years("85 or more") == 85);
  CHECK(years("60-64") == 60);
  CHECK(years("058Y") == 58);
  CHECK_FALSE(years("-5-3x"));
  CHECK_FALSE(years("or more"));
}
