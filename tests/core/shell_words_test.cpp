#include "chexnet/core/shell_words.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("quotes keep the blanks of a word") {
  using Words = std::vector<std::string>;
  CHECK(words_of("") == Words{});
  CHECK(words_of("  --mca btl  ^openib\t-x A ") ==
        Words{"--mca", "btl", "^openib", "-x", "A"});
  CHECK(words_of("-x 'A=1 2' --name \"it's\" ''") ==
        Words{"-x", "A=1 2", "--name", "it's", ""});
  const Words words = {"a b", "c", "$d"};
  CHECK(words_of(command_text(words)) == words);
  for (const char* open : {"'", "-x \"A=1 2", "--name it's"})
    CHECK(error_of<ConfigError>([&] {
            words_of(open);
          }).find("a quote is not closed") != std::string::npos);
}

TEST_CASE("an option counts as given in both spellings") {
  CHECK(has_option({"train", "--resume", "auto"}, "--resume"));
  CHECK(has_option({"train", "--resume=auto"}, "--resume"));
  CHECK_FALSE(has_option(
      {"train", "--resumed", "resume", "--set", "x=--resume"}, "--resume"));
}
