#include "chexnet/launch/hosts.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "chexnet/core/error.hpp"
#include "chexnet/launch/environment.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("host files of Open MPI, MPICH and PBS") {
  const ScratchFolder folder;
  const auto hosts_of = [&](const std::string& text) {
    std::ofstream(folder.path() / "hosts") << text;
    std::string found;
    for (const auto& host : read_hostfile(folder.path() / "hosts"))
      found += host.name + "=" + std::to_string(host.slots) + " ";
    return found;
  };
  CHECK(hosts_of("# two\nnode1 slots=2 max_slots=4\n\nnode2 slots=3 # c\n") ==
        "node1=2 node2=3 ");
  CHECK(hosts_of("\xEF\xBB\xBFnode1:4\r\nnode2\r\n") == "node1=4 node2=1 ");
  CHECK(hosts_of("n2\nn2\nn1\nn2\n") == "n2=3 n1=1 ");
  for (const std::string address : {"fd00::2 slots=2", "::1", "fe80::1%eth0"})
    CHECK(error_of<ConfigError>([&] {
            hosts_of("n1\n" + address + "\n");
          }).find("is an address of IPv6") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          hosts_of("n1:2:3\n");
        }).find("'2:3' is no number of slots") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          hosts_of("n1\nn2 slot=2\n");
        }).find("hosts:2: 'slot=2'") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          hosts_of("n1 slots=0\n");
        }).find("'0' is no number") != std::string::npos);
  // 2^32 + 1, which an int would take for 1; and sums that no int holds.
  for (const char* slots : {"4294967297", "99999999999999999999", "2000000"})
    CHECK(error_of<ConfigError>([&] {
            hosts_of(std::string("n1:") + slots);
          }).find("is no number of slots") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          hosts_of("n1:1000000\nn1:1000000\n");
        }).find("hosts:2: 'n1' has too many slots") != std::string::npos);
  // Each would be another list of hosts once mpirun has it.
  const std::string nul(1, '\0');
  for (const std::string& name :
       {std::string(), std::string("a,b"), "a" + nul + "b",
        std::string("\x1b[2J"), std::string("n1;n2"), std::string("n[1-9]"),
        std::string("-x"), std::string("a\\b")})
    CHECK(error_of<ConfigError>([&] {
            hosts_of("n1\n" + name + ":2\n");
          }).find("is no name of a host") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          hosts_of("::1;n2 slots=2\n");
        }).find("is no") != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          hosts_of("# none\n");
        }).find("names no host") != std::string::npos);
  // Of all hosts together: an int holds the sum.
  std::string many;
  for (int i = 0; i < 3000; ++i)
    many += "n" + std::to_string(i) + " slots=1048576\n";
  CHECK(error_of<ConfigError>([&] {
          hosts_of(many);
        }).find("hosts:2: 'n1' has too many slots") != std::string::npos);
}

TEST_CASE("a host file that is no file of hosts is refused at once") {
  const ScratchFolder folder;
  const auto refused = [](const std::string& path, const std::string& why) {
    const std::string error =
        error_of<ConfigError>([&] { read_hostfile(path, "PBS_NODEFILE"); });
    INFO(error);
    return error.find("PBS_NODEFILE=" + path + ": " + why) != std::string::npos;
  };
  const std::string pipe = (folder.path() / "pipe").string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refused(pipe, "is no regular file"));
  CHECK(refused("/dev/zero", "is no regular file"));
  CHECK(refused("/dev/null", "is no regular file"));
  CHECK(refused(folder.path().string(), "is no regular file"));
  CHECK(refused((folder.path() / "absent").string(), "cannot be read"));
  const std::string large = folder.write("large", "n1\n");
  std::filesystem::resize_file(large, (std::uintmax_t{64} << 20) + 1);
  CHECK(refused(large, "is larger than 64 MiB"));
}

TEST_CASE("a host knows its own names") {
  CHECK(is_this_host("localhost"));
  CHECK(is_this_host("127.0.0.1"));
  CHECK(is_this_host("127.0.0.9"));
  CHECK_FALSE(is_this_host("2001:db8::7"));
  CHECK(is_this_host(host_name()));
  CHECK(is_this_host(host_name() + ".some.domain"));
  CHECK_FALSE(is_this_host("192.0.2.7"));
  CHECK_FALSE(is_this_host("no-such-host.invalid"));
}
