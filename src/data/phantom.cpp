// Workers draw and describe; the tables are put together afterwards in the
// order of the plan, so the number of threads changes nothing. The table comes
// last: with it the set is whole.
#include "chexnet/data/phantom.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "chexnet/core/error.hpp"
#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/image/encode.hpp"
#include "chexnet/data/manifest.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTable = "Data_Entry_2017.csv";
constexpr const char* kLock = ".phantom.lock";
constexpr std::array<std::string_view, 6> kContents = {kTable,
                                                       "images",
                                                       "train_val_list.txt",
                                                       "test_list.txt",
                                                       "BBox_List_2017.csv",
                                                       "README.txt"};

// A folder with room for a set, which goes away with this object unless it is
// kept. It was empty, so all that has a name of the set there is ours.
class NewSet {
 public:
  explicit NewSet(fs::path folder) : folder_(std::move(folder)) {}
  ~NewSet() {
    std::error_code ignored;
    if (is_begun_)
      for (const auto name : kContents) fs::remove_all(folder_ / name, ignored);
    lock_.reset();
    if (is_new_) fs::remove(folder_, ignored);  // only if it is empty
  }
  NewSet(const NewSet&) = delete;
  NewSet& operator=(const NewSet&) = delete;

  // CheckpointError.
  void begin() {
    refuse_what_is_there();
    std::error_code error;
    is_new_ = fs::create_directories(folder_, error);
    if (error) refuse(error.message(), "choose a writable folder");
    auto lock = FileLock::try_take(folder_ / kLock);
    if (!lock)
      refuse("another command draws a set there now", "choose another folder");
    lock_.emplace(std::move(*lock));
    refuse_what_is_there();  // another command may have begun in between
    is_begun_ = true;
    fs::create_directory(folder_ / "images", error);
    if (error) refuse(error.message(), "choose a writable folder");
  }
  void keep() { is_begun_ = false; }

 private:
  void refuse_what_is_there() const {
    std::error_code error;
    if (fs::exists(folder_ / kTable, error))
      refuse("holds a data set already", "choose another folder, or remove it");
    for (fs::directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name != kLock)
        refuse("is not an empty folder: " + printable(name) + " lies in it",
               "name a new one");
    }
  }
  [[noreturn]] void refuse(const std::string& what, const char* hint) const {
    throw CheckpointError("[phantom] {}: {}. Hint: {}",
                          printable(folder_.string()), what, hint);
  }

  fs::path folder_;
  bool is_new_ = false, is_begun_ = false;
  std::optional<FileLock> lock_;
};

struct PhantomEntry {
  uint32_t patient, follow_up;
  bool test;
  std::string name, rows, boxes;  // filled by a worker
};

std::string image_name(uint32_t patient, uint32_t follow_up) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%08u_%03u.png", patient, follow_up);
  return text.data();
}

// Patients with one to four images each, a quarter of them for test.
std::vector<PhantomEntry> plan(const PhantomOptions& options) {
  std::vector<PhantomEntry> entries;
  for (uint32_t patient = 1;
       entries.size() < static_cast<size_t>(options.images); ++patient) {
    Random random(options.seed, Purpose::kPhantom,
                  uint64_t{patient} | (uint64_t{1} << 60));
    const bool test = random.chance(options.test_fraction);
    const uint32_t count = 1 + random.below(4);
    for (uint32_t f = 0;
         f < count && entries.size() < static_cast<size_t>(options.images); ++f)
      entries.push_back({patient, f, test, image_name(patient, f), "", ""});
  }
  return entries;
}

void describe(PhantomEntry& entry, const PhantomImage& image) {
  std::string labels;
  const auto& names = nih_findings();
  for (size_t k = 0; k < names.size(); ++k)
    if (image.findings[k]) labels += (labels.empty() ? "" : "|") + names[k];
  if (labels.empty()) labels = "No Finding";
  const std::string side = std::to_string(image.size);
  entry.rows =
      entry.name + "," + labels + "," + std::to_string(entry.follow_up) + "," +
      std::to_string(entry.patient) + "," + std::to_string(image.age) + "," +
      image.sex + "," + image.view + "," + side + "," + side + ",0.143,0.143\n";
  for (const auto& box : image.boxes)
    entry.boxes += entry.name + "," +
                   (names[box.finding] == "Infiltration" ? "Infiltrate"
                                                         : names[box.finding]) +
                   "," + fixed(box.x, 3) + "," + fixed(box.y, 3) + "," +
                   fixed(box.width, 3) + "," + fixed(box.height, 3) + ",,,\n";
}

}  // namespace

void write_phantom_set(const PhantomOptions& options,
                       const std::function<void(int)>& progress) {
  NewSet set(options.out);
  set.begin();
  auto entries = plan(options);

  std::atomic<int> done = 0;
  parallel_for(
      entries.size(), options.threads,
      [&](size_t i) {
        const PhantomImage image =
            draw_phantom(options.seed, entries[i].patient, entries[i].follow_up,
                         options.size);
        OutputFile file(options.out / "images" / entries[i].name);
        file.write(
            encode_gray_png(image.pixels.data(), image.size, image.size));
        file.commit();
        describe(entries[i], image);
        ++done;
      },
      [&] { progress(done); });

  std::string table =
      "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient "
      "Gender,View "
      "Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]\n";
  std::string boxes = "Image Index,Finding Label,Bbox [x,y,w,h],,,\n", train,
              test;
  for (const auto& entry : entries) {
    table += entry.rows;
    boxes += entry.boxes;
    (entry.test ? test : train) += entry.name + "\n";
  }
  write_atomically(options.out / "train_val_list.txt", train);
  write_atomically(options.out / "test_list.txt", test);
  write_atomically(options.out / "BBox_List_2017.csv", boxes);
  write_atomically(options.out / "README.txt",
                   "Synthetic drawings made by `chexnet-train phantom --seed " +
                       std::to_string(options.seed) + " --size " +
                       std::to_string(options.size) +
                       "`.\n"
                       "They show no patient and say nothing about medicine; "
                       "scores on them say "
                       "only that the program learns.\n"
                       "Boxes are in pixels of these images.\n");
  write_atomically(options.out / kTable, table);
  set.keep();
}

}  // namespace chexnet
