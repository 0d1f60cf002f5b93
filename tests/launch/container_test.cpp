#include "chexnet/launch/container.hpp"

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {
std::string text_of(const std::vector<Mount>& mounts) {
  std::string text;
  for (const auto& mount : mounts)
    text +=
        mount.source + ":" + mount.target + (mount.read_only ? ":ro " : " ");
  return text;
}
}  // namespace

TEST_CASE("a mount has a source, a place inside, and may be for reading") {
  CHECK(text_of({parsed_mount("/a")}) == "/a:/a ");
  CHECK(text_of({parsed_mount("/c:/b:ro"), parsed_mount("/a:/b:rw")}) ==
        "/c:/b:ro /a:/b ");
  for (const char* text : {"", "folder", "/a:b", "/a:/b:no", "/a:/b:ro:x",
                           "/a,/b", ":/b", "/a\n:/b"})
    CHECK_FALSE(error_of<ConfigError>([&] { parsed_mount(text); }).empty());
}

TEST_CASE(
    "a container sees what a config names, by as few folders as hold it") {
  const ScratchFolder folder;
  const auto& root = folder.path();
  folder.write("work/cfg.yaml", "");
  folder.write("data/images/1.png", "");
  folder.write("data/table.csv", "");
  const std::vector<std::string> paths = {
      "cfg.yaml", (root / "data/table.csv").string(),
      (root / "data/images/").string(), (root / "work/runs/new").string()};
  const std::string own = root.string();
  CHECK(text_of(with_mounts_of(paths, root / "work", {})) ==
        own + "/data:" + own + "/data " + own + "/work:" + own + "/work ");
  // What was given stays, and shows what is below it.
  CHECK(text_of(with_mounts_of(paths, root / "work",
                               {{"/elsewhere", own + "/data", true}})) ==
        "/elsewhere:" + own + "/data:ro " + own + "/work:" + own + "/work ");
  CHECK(error_of<ConfigError>([&] {
          with_mounts_of({"/no-such-folder/x"}, root / "work", {});
        }).find("/no-such-folder/x: no folder above it") != std::string::npos);
}

TEST_CASE("a mount is named whole") {
  const ScratchFolder folder;
  CHECK(error_of<ConfigError>([&] {
          with_mounts_of({}, folder.path(), {{"data", "/inside"}});
        }).find("--mount data:/inside: a relative path") != std::string::npos);
}

TEST_CASE("Pyxis gets the host of a registry behind a #") {
  CHECK(pyxis_image("host.org#a/b:1") == "host.org#a/b:1");
  CHECK(pyxis_image("host.org/a/b:1") == "host.org#a/b:1");
  CHECK(pyxis_image("docker://host:5000/a") == "host:5000#a");
  CHECK(pyxis_image("localhost/a") == "localhost#a");
  for (const char* image : {"a", "a:1", "team/a:1.2", "user@host.org#a",
                            "/apps/a.sqsh", "./a.sqsh", "../x.y/a.sqsh"})
    CHECK(pyxis_image(image) == image);
}

TEST_CASE("a path of the container is found outside of it") {
  const std::vector<Mount> mounts = {{"/disk/runs", "/runs"}, {"/a", "/a"}};
  CHECK(path_on_host("/runs/one", mounts) == "/disk/runs/one");
  CHECK(path_on_host("/runs", mounts) == "/disk/runs");
  CHECK(path_on_host("/a/../runs/x/", mounts) == "/disk/runs/x");
  for (const char* path : {"/a/one", "/runs2/one", "runs/one"})
    CHECK(path_on_host(path, mounts) == path);
}

TEST_CASE("the paths of a config are those in a file system") {
  Config config;
  config.data.manifest.path = {"/t.csv"};
  config.data.images = {"s3://bucket/x", "/images"};
  config.model.weights = "none";
  config.run.dir = "/runs/1";
  auto paths = named_paths(config);
  std::ranges::sort(paths);
  CHECK(paths == std::vector<std::string>{"/images", "/runs/1", "/t.csv"});
}
