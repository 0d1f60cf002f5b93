#include "chexnet/report/redaction.hpp"

#include <nlohmann/json.hpp>

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
      {"770001 7700012", "PATIENT 7700012"}};
  for (const auto& [text, wanted] : cases) CHECK(redaction.of_text(text) == wanted);
}

TEST_CASE("what looks like a name goes without being told") {
  Redaction redaction;
  redaction.hide_path("/data/St. Elsewhere/nih", "PATH");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/home/mueller/table.csv:418: empty", "PATH:418: empty"},
      {"in /data/St. Elsewhere/nih/images/x y.png.", "in PATH IMAGE."},
      {"/data/St. Elsewhere/nihx", "PATH. Elsewhere/nihx"},
      {"/usr/lib/libmpi.so.40 of /opt/mpi", "/usr/lib/libmpi.so.40 of PATH"},
      {"https://s3.st-elsewhere.org:9000/bucket/key?x", "https://PLACE"},
      {"[s3] s3://bucket/mueller/a.png: gone", "[s3] s3://PLACE: gone"},
      {"10.1.2.3:4711 and 0.1.0, 2.11.0", "ADDRESS:4711 and 0.1.0, 2.11.0"},
      {"1.2.840.113619.2.5", "UID"},
      {"00001234_003 00001234 1234", "ID ID 1234"},
      {"patient.jpg, mine.yaml, config.yaml", "IMAGE, FILE, config.yaml"}};
  for (const auto& [text, wanted] : cases) CHECK(redaction.of_text(text) == wanted);
}

TEST_CASE("JSON stays JSON, with its keys, numbers and events") {
  Redaction redaction;
  for (const char* user : {"host", "train", "a1", "step"}) redaction.hide(user, "USER");
  const std::string lines = R"({"event":"train","step":123456,"host":"a1","loss":null})"
                            "\n{\"event\":\"tra a1";
  CHECK(redaction.of_json(lines) == R"({"event":"train","step":123456,"host":"USER","loss":null})"
                                    "\n{\"event\":\"tra USER\n");
  const auto whole =
      nlohmann::json::parse(redaction.of_json("{\n \"all\": [{\"host\": \"a1\"}]\n}\n"));
  CHECK(whole["all"][0]["host"] == "USER");
}

TEST_CASE("a config keeps its keys") {
  Redaction redaction;
  redaction.hide("run", "RUN");
  redaction.hide_path("set/mueller", "PATH");
  CHECK(redaction.of_yaml("run:\n  dir: run\n  images: [set/mueller/a, set/mueller]\n") ==
        "run:\n  dir: RUN\n  images: [PATH, PATH]\n");
}
