// Executes a program and takes its output. Its stderr and environment are ours.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

namespace chexnet {

struct ChildOutput {
  int exit_code = 0;  // 128 + signal when killed
  std::string output;
};
// DeviceError when it cannot be started. `command[0]` is looked up in PATH.
// Killed after `limit_s` (a batch system whose server is down lets its clients
// hang).
ChildOutput output_of(const std::vector<std::string>& command,
                      double limit_s = 1e9);

// Where `program` is that PATH leads to; empty where there is none.
std::string in_path(const std::string& program);

// Executes `command` by /bin/sh -c with one argument, $1, and returns its exit
// code and the end of its stderr. stdin and stdout are /dev/null. It has its
// own process group, so that no Ctrl-C of ours reaches it. The group is killed
// on `stop`, where the command ends but has left something running, and when
// this process ends, even by kill -9. Any thread. DeviceError as above.
ChildOutput run_in_shell(const std::string& command,
                         const std::string& argument,
                         const std::stop_token& stop);

}  // namespace chexnet
