#include "chexnet/report/redaction.hpp"

#include <nlohmann/json.hpp>

#include "report/help_config.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("hidden words go where they are whole, and only there") {
  Redaction redaction;
  redaction.hide("MRN-770000", "PATIENT");
  redaction.hide("MRN-77", "PATIENT");
  redaction.hide("al", "USER");
  redaction.hide("node17.site.example", "HOST-1");
  redaction.hide("Jürgen Groß", "USER");
  redaction.hide("13", "PATIENT");
  redaction.hide("770001", "PATIENT");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"patient MRN-770000 is", "patient PATIENT is"},
      {"MRN-7700001, MRN-770", "MRN-7700001, MRN-770"},
      {"MRN-77:MRN-77", "PATIENT:PATIENT"},
      {"al's value of al, total", "USER's value of USER, total"},
      {"on node17.site.example: down", "on HOST-1: down"},
      {"Jürgen Groß, Jürgen Großmann", "USER, Jürgen Großmann"},
      {"epoch 13", "epoch 13"},
      {"patient 13 of 13, MRN=13: 13",
       "patient PATIENT of 13, MRN=PATIENT: PATIENT"},
      {"Patient ID 13, 12 patients", "Patient ID PATIENT, 12 patients"},
      {"770001 7700012", "PATIENT 7700012"}};
  for (const auto& [text, wanted] : cases)
    CHECK(redaction.of_text(text) == wanted);
}

TEST_CASE("what looks like a name goes without being told") {
  Redaction redaction;
  redaction.hide_path("/data/St. Elsewhere/nih", "PATH");
  redaction.hide_path("/data/O'Brien pics", "PATH");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/home/mueller/table.csv:418: empty", "PATH:418: empty"},
      {"in /data/St. Elsewhere/nih/images/x y.png.", "in PATH."},
      {"[decode] /other/Ann M Doe/x y.png: gone: 3.png",
       "[decode] PATH: gone: IMAGE"},
      {"/data/St. Elsewhere/nihx", "PATH"},
      {R"(train '/data/O'\''Brien pics/x.csv')",
       R"(train 'PATH'\''PATH FILE')"},
      {"s3://set/Ann M Doe/x.png: 403", "s3://PLACE: 403"},
      {"/usr/lib/libmpi.so.40 of /opt/mpi", "/usr/lib/libmpi.so.40 of PATH"},
      {"https://s3.st-elsewhere.org:9000/bucket/key?x", "https://PLACE"},
      {"[s3] s3://bucket/mueller/a.png: gone", "[s3] s3://PLACE: gone"},
      {"10.1.2.3:4711 and 0.1.0, 2.11.0", "ADDRESS:4711 and 0.1.0, 2.11.0"},
      {"1.2.840.113619.2.5", "UID"},
      {"00001234_003 00001234 1234", "ID ID 1234"},
      {"patient.jpg, mine.yaml, config.yaml", "IMAGE, FILE, config.yaml"}};
  for (const auto& [text, wanted] : cases)
    CHECK(redaction.of_text(text) == wanted);
}

TEST_CASE("JSON stays JSON, with its own keys, numbers and events") {
  Redaction redaction;
  for (const char* user : {"host", "train", "a1", "step"})
    redaction.hide(user, "USER");
  const std::string lines =
      R"({"event":"train","step":123456,"host":"a1","loss":null})"
      "\n{\"event\":\"tra a1";
  CHECK(redaction.of_json(lines) ==
        R"({"event":"train","step":123456,"host":"USER","loss":null})"
        "\n{\"event\":\"tra USER\n");
  const auto whole = nlohmann::json::parse(
      redaction.of_json("{\n \"all\": [{\"host\": \"a1\"}]\n}\n"));
  CHECK(whole["all"][0]["host"] == "USER");
}

TEST_CASE("names that are keys or numbers of JSON are hidden as well") {
  Redaction redaction;
  redaction.hide_name("MRN-770000", "PATIENT");
  redaction.hide("4711", "PATIENT");
  redaction.hide("770001", "PATIENT");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"MRN-770000":{"loss":1},"00012345_003.png":2})",
       R"({"PATIENT":{"loss":1},"IMAGE":2})"},
      {R"({"/a/1.png":1,"/b/2.png":2,"Pleural Effusion":3})",
       R"({"PATH":1,"PATH 2":2,"Pleural Effusion":3})"},
      {R"({"patient":4711,"step":4711,"patients":4711})",
       R"({"patient":"PATIENT","step":4711,"patients":4711})"},
      {R"({"patients":[4711,4712],"at":[770001,-1.5]})",
       R"({"patients":["PATIENT",4712],"at":["PATIENT",-1.5]})"}};
  for (const auto& [text, wanted] : cases)
    CHECK(redaction.of_json(text + "\nno JSON") == wanted + "\nno JSON\n");
}

TEST_CASE("a name goes as a whole, also where it holds blanks and quotes") {
  Redaction redaction;
  redaction.hide_path("/data/St. Elsewhere", "PATH");
  for (const char* name :
       {"Vreni Zgraggen 3", "Kantonsspital Uri", "O'Brien=3;3.png", "train",
        "MRN 77003 Zgraggen.png", "Kantonsspital Uri/Vreni Zgraggen 3/a.bmp"})
    redaction.hide_name(name, "IMAGE");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/data/St. Elsewhere/Vreni Zgraggen 3/scan.png: damaged",
       "PATH: damaged"},
      {"/data/St. Elsewhere/Vreni Zgraggen 3: no folder", "PATH: no folder"},
      {"/data/St. Elsewhere/Unknown Ann 3/scan.png: damaged", "PATH: damaged"},
      {"/other/Kantonsspital Uri/Vreni Zgraggen 3/a.bmp: damaged",
       "PATH: damaged"},
      {"/data/St. Elsewhere/O'Brien=3;3.png", "PATH"},
      {"/other/Ann Uster/O'Brien=3;3.png: damaged", "PATH: damaged"},
      {"Vreni Zgraggen 3/scan.png: damaged", "IMAGE: damaged"},
      {"O'Brien=3;3.png, O'Brien", "IMAGE, O'IMAGE"},
      {"MRN 77003 Zgraggen.png: damaged", "IMAGE: damaged"},
      {"in Uri, train split", "in IMAGE, train split"}};
  for (const auto& [text, wanted] : cases)
    CHECK(redaction.of_text(text) == wanted);
}

TEST_CASE(
    "a config shows what the program gives to choose from, and no free text") {
  const std::string yaml = R"(run: {name: Uri, seed: 7}
secret: hunter2
data:
  images: [/set/mueller/a, /set/mueller]
  train_list: ""
  mean: [0.5, 0.25, 0.125]
  resize: hunter2
  stage: "off"
model: {arch: densenet121, weights: /mueller/w.safetensors, sync_batchnorm: true}
eval: {splits: [val, hunter2]}
launch: {hostfile: icu-hosts, network: auto, mpi_args: [--host, "icu-node7:2", -x, TOKENX=hunter2]}
)";
  CHECK(config_for_help(yaml) == R"(run:
  name: TEXT
  seed: 7
data:
  images: [2 items]
  train_list: ""
  mean: [0.5, 0.25, 0.125]
  resize: TEXT
  stage: "off"
model:
  arch: densenet121
  weights: TEXT
  sync_batchnorm: true
eval:
  splits: [2 items]
launch:
  hostfile: TEXT
  network: auto
  mpi_args: [4 items]
# and 1 keys that are not known
)");
  Redaction redaction;
  hide_config(yaml, redaction);
  CHECK(redaction.of_text(
            "mpirun --host icu-node7:2 -x TOKENX=hunter2 of Uri, icu-hosts") ==
        "mpirun --host TEXT:2 -x TEXT=TEXT of RUN, PATH");
  CHECK(config_for_help("run: [") == "# no YAML\n");
}
