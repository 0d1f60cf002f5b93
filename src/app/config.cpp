// config: the table of options, for reading or as the page docs/config.md,
// which a test holds equal to it; and the bash completion.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/config/options.hpp"
#include "completion.hpp"

namespace chexnet {

void add_config(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "config", "config keys: types, defaults, meanings; bash completion");
  struct Options {
    std::string prefix;
    bool all = false, markdown = false, completion = false;
  };
  auto options = std::make_shared<Options>();
  auto* prefix = command->add_option("prefix", options->prefix,
                                     "only keys with this prefix, e.g. data.");
  auto* all = command->add_flag("--all", options->all,
                                "all keys instead of the common ones");
  auto* markdown = command->add_flag(
      "--markdown", options->markdown,
      "as a table in markdown; without a prefix the page docs/config.md");
  command
      ->add_flag("--completion", options->completion,
                 "print the bash completion instead")
      ->excludes(prefix)
      ->excludes(all)
      ->excludes(markdown);
  command->callback([&app, &invocation, options] {
    invocation.run = [&app, options] {
      if (options->completion) {
        print_completion(app);
        return 0;
      }
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
