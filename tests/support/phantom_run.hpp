// A data set of a few drawn X-rays and a config that trains on it within
// seconds.
#pragma once

#include <string>

#include "chexnet/config/config.hpp"
#include "support/fixtures.hpp"
#include "support/phantom_set.hpp"

namespace chexnet {

struct PhantomRun {
  ScratchFolder folder;
  Config config;

  explicit PhantomRun(int images = 16) {
    draw_phantom_set(folder / "set", images, 48);
    DataConfig& data = config.data;
    data.manifest.path = {(folder / "set/Data_Entry_2017.csv").string()};
    data.images = {(folder / "set/images").string()};
    data.train_list = (folder / "set/train_val_list.txt").string();
    data.test_list = (folder / "set/test_list.txt").string();
    data.resize = 36;
    data.crop = 32;
    data.workers = 1;
    data.prefetch = 2;
    data.corrupt.limit = 1;
    config.model.weights = "none";
    config.train.batch = 4;
    config.eval.batch = 4;
    config.launch.threads = 1;
    config.run.dir = (folder / "run").string();
  }

  void damage(const std::string& image) const {
    folder.write("set/images/" + image, "no image");
  }
};

}  // namespace chexnet
