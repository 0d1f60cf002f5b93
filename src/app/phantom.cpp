// phantom: a drawn data set to try the program on where no X-rays may be copied
// to.
#include "chexnet/data/phantom.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/signals.hpp"

namespace chexnet {

void add_phantom(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "phantom", "draw a synthetic X-ray set in the NIH layout, for trials");
  struct Options : PhantomOptions {
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("out", options->out, "folder to write")
      ->required()
      ->check(in_file_system());
  command->add_option("--images", options->images, "number of images")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--size", options->size, "side in pixels")
      ->check(CLI::Range(32, 2048))
      ->capture_default_str();
  add_seed_option(*command, "--seed", options->seed,
                  "the same seed gives the same set")
      ->capture_default_str();
  command->add_option("--threads", options->threads, "threads; 0 = all cores")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  options->threads = 0;
  command->callback([&invocation, options] {
    invocation.run = [options] {
      if (options->threads == 0)
        options->threads = static_cast<int>(allowed_cpus().size());
      Progress progress(true);
      const double start = now_s();
      install_stop_signals();
      try {
        write_phantom_set(*options, [&](int done) {
          if (stop_requested()) throw WorkStopped();
          progress.show("phantom: " + std::to_string(done) + "/" +
                        std::to_string(options->images) + " images");
        });
      } catch (const WorkStopped&) {
        progress.clear();
        log_info("stopped on request; nothing was written");
        return static_cast<int>(ExitCode::kRequeue);
      }
      progress.clear();
      const double seconds = now_s() - start;
      log_info("phantom: " + counted(options->images, "synthetic image") +
               " in " + options->out.string() + " (" + fixed(seconds, 1) +
               " s)");
      if (options->json)
        std::cout << json_text(nlohmann::json{{"folder", options->out.string()},
                                              {"images", options->images},
                                              {"seconds", seconds}})
                  << std::endl;
      return 0;
    };
  });
}

}  // namespace chexnet
