// config: the table of options, for reading or as the page docs/config.md,
// which a test holds equal to it.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/config/options.hpp"

namespace chexnet {

void add_config(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "config", "list the config keys, with types, defaults and meanings");
  struct Options {
    std::string prefix;
    bool markdown = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("prefix", options->prefix,
                      "only keys with this prefix, e.g. data.");
  command->add_flag("--markdown", options->markdown,
                    "as a table in markdown; without a prefix the page "
                    "docs/config.md");
  command->callback([&invocation, options] {
    invocation.run = [options] {
      std::cout << (options->markdown ? options_markdown(options->prefix)
                                      : options_help(options->prefix));
      return 0;
    };
  });
}

}  // namespace chexnet
