// YAML as configs and cluster files have it.
#include "chexnet/config/strict_yaml.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  accepted<ConfigError>([&] {
    for (const auto& [key, value] :
         read_strict_yaml("x.yaml", text_of(bytes))) {
      require(value.place.starts_with("x.yaml:"), "a value has a place");
      require(value.is_list || value.items.size() == 1, "a plain value is one");
    }
  });
}

std::vector<std::string> seeds() {
  return {"data:\n  images: [/a, 'b c']\n  resize: 256\n",
          "a.b: {c: 1, d: \"x\\ty\"}\n? k\n: v\n",
          "--- |\n text\n...\n",
          "x: &a [1, 2]\ny: *a\n",
          "m: >-\n  folded\n  text\n\n# end\n",
          "%YAML 1.2\n---\nk: !!str 5\nl: ~\n"};
}

const Registered kTarget{{"yaml", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
