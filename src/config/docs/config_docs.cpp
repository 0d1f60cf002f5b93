// Prints docs/config.md without the rest of the program:
//   ninja -C build/release config_docs && build/release/config_docs >
//   docs/config.md
#include <iostream>

#include "chexnet/config/options.hpp"

int main() {
  std::cout << chexnet::options_markdown();
  return 0;
}
