// inspect --patient: was this patient in the training of that network?
#pragma once

#include <string>
#include <vector>

namespace chexnet {

struct PatientsQuery {
  std::string run, key;  // key: of the run's pseudonyms; empty: its config's
  // Ids as the run's table has them, or pseudonyms, which need no key.
  std::vector<std::string> patients;
  bool json = false;
};

// Prints a line, or with json an object, for each patient. CheckpointError: no
// run; ConfigError: its pseudonyms' key is not at hand.
void print_patients(const PatientsQuery& query);

}  // namespace chexnet
