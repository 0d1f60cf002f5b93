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
      "config",
      "list the common config keys, or all, with types, defaults and meanings");
  struct Options {
    std::string prefix;
    bool all = false, markdown = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("prefix", options->prefix,
                      "only keys with this prefix, e.g. data.");
  command->add_flag("--all", options->all,
                    "all keys instead of the common ones");
  command->add_flag("--markdown", options->markdown,
                    "as a table in markdown; without a prefix the page "
                    "docs/config.md");
  command->callback([&invocation, options] {
    invocation.run = [options] {
      std::cout << (options->markdown
                        ? options_markdown(options->prefix)
                        : options_help(options->prefix, options->all));
      if (options->prefix.empty() && !options->all && !options->markdown)
        std::cout << "These are the common keys. `config --all` lists all, "
                     "`config data.` those that begin so\n";
      return 0;
    };
  });
}

}  // namespace chexnet
