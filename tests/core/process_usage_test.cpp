#include "chexnet/core/process_usage.hpp"

#include <string>

#include "chexnet/core/output_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("what a control group leaves, with its cached files given back") {
  const ScratchFolder folder;
  const ControlGroup group{folder / "max", folder / "current", folder / "stat"};
  CHECK_FALSE(control_group_room(group));
  write_atomically(group.limit, "max\n");
  write_atomically(group.used, "900\n");
  CHECK_FALSE(control_group_room(group));
  write_atomically(group.limit, "1000\n");
  CHECK(control_group_room(group) == 100);
  write_atomically(group.stat,
                   "anon 150\ninactive_file 500\nactive_file 250\nslab 7\n");
  CHECK(control_group_room(group) == 850);
  write_atomically(group.used, "1200\n");
  CHECK(control_group_room(group) == 550);
  write_atomically(group.used, "2000\n");
  CHECK(control_group_room(group) == 0);
  write_atomically(group.used, "100\n");  // the files are not read at once
  CHECK(control_group_room(group) == 1000);
}
