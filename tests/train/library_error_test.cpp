#include "chexnet/train/library_error.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What LibTorch says of a full GPU, in 2.11.
const c10::OutOfMemoryError kFull(
    c10::SourceLocation{"malloc", "CUDACachingAllocator.cpp", 1},
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 15.77 GiB of which 1.20 GiB is free. Including non-PyTorch "
    "memory, this process has 14.5 GiB memory in use. Of the allocated memory "
    "14.0 GiB is allocated by PyTorch. If reserved but unallocated memory is "
    "large try setting PYTORCH_ALLOC_CONF=expandable_segments:True");

}  // namespace

TEST_CASE("each error of a library has a cause in one line and a remedy") {
  struct Case {
    const char *said, *cause, *remedy;
  };
  for (const Case& c :
       {Case{"CUDA error: no kernel image is available for execution on the "
             "device\nCUDA kernel errors might be asynchronously reported",
             "no kernel image is available for execution on the device",
             "--cuda cuda12"},
        Case{"CUDA error: an illegal memory access was encountered\nSearch",
             "illegal memory access", "Xid"},
        Case{"cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "NOT_INITIALIZED",
             "LD_LIBRARY_PATH"},
        Case{"cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "EXECUTION_FAILED",
             "another cuDNN"},
        Case{"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
             "`cublasCreate(handle)`",
             "ALLOC_FAILED", "lower train.batch"},
        Case{"[enforce fail at alloc_cpu.cpp:124] data. DefaultCPUAllocator: "
             "not enough memory: you tried to allocate 1 bytes.",
             "not enough memory", "the host's memory is full"},
        Case{"mat1 and mat2 shapes cannot be multiplied",
             "cannot be multiplied", "train.engine"}}) {
    const std::string text = library_error_text(
        c10::Error(c10::SourceLocation{"f", "f.cpp", 1}, c.said));
    INFO(text);
    CHECK(text.starts_with("[libtorch] "));
    CHECK(has(text, c.cause));
    CHECK(has(text.substr(text.find(". Hint: ")), c.remedy));
    CHECK_FALSE(has(text, "\n"));
    CHECK_FALSE(has(text, "report it"));
    CHECK_FALSE(has(text, "f.cpp"));
  }
}

TEST_CASE("a step without room names its batch and what computes the same") {
  TrainConfig config;
  const auto text = [&](FullStep step) {
    return out_of_memory_text(kFull, config, step);
  };
  CHECK(has(text({512, 128, 4, {}}),
            "no room for a step of 128 images (train.batch=512, "
            "train.accumulate=1): CUDA out of memory. Tried to allocate "
            "2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which "
            "1.20 GiB is free. Hint: train.accumulate=2 computes the same "
            "batch in parts of 64 images; train.batch=auto"));
  CHECK(has(text({512, 128, 4, 50}),
            "Hint: 50 images at once fit: train.batch=200, or "
            "train.accumulate=4 computes the same batch in parts of 32 "
            "images"));
  CHECK(has(text({512, 128, 4, 50, true}),
            "in parts of 32 images; model.memory=recompute takes less"));
  // What was measured after the failure is no smaller: memory in pieces.
  CHECK(has(text({512, 128, 4, 128}), "Hint: train.accumulate=2 computes"));
  CHECK(has(text({512, 128, 4, 0}), "Hint: a smaller data.crop"));
  config.accumulate = 4;
  CHECK(has(text({12, 12, 1, {}}),
            "a step of 3 images (train.batch=12, train.accumulate=4)"));
  CHECK(has(text({12, 12, 1, 2}),
            "2 images at once fit: train.batch=8, or train.accumulate=6"));
  config.accumulate = 1;
  CHECK(has(text({1, 1, 1, {}}), "a step of 1 image ("));
  CHECK(has(text({1, 1, 1, {}}), "a smaller data.crop"));
  config.batch.reset();
  CHECK(has(text({12, 12, 1, {}}), "auto came too close"));
  CHECK(has(library_error_text(kFull), "is free. Hint: lower train.batch"));
}
