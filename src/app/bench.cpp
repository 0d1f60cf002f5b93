#include <CLI/CLI.hpp>

#include "chexnet/app/commands.hpp"
namespace chexnet { void add_bench(CLI::App&, Invocation&) {} }
