#include "fakes/fake_cudart/capture.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "fakes/fake_cudart/stream.hpp"
#include "fakes/fake_cudart/watch.hpp"

namespace fake_cuda {
namespace {

// Kept at `at` of a graph; `stream` counts its streams, 0 is the one whose
// capture was begun.
struct Item {
  enum class Kind { kWork, kRecord, kWait, kExternal };
  Kind kind = Kind::kWork;
  size_t stream = 0;
  Maker make = {};
  Uses uses = {};
  size_t record = 0;            // of kRecord, and which a kWait waits for
  cudaEvent_t event = nullptr;  // of kExternal
};

struct Capture {
  std::vector<cudaStream_t> streams;
  std::vector<Item> items;
  // Where events of the capture were recorded last.
  std::map<cudaEvent_t, size_t> records;
  // How many items of each CUDA stream come before what a stream gets next; and
  // before a record, by its index.
  std::vector<std::vector<size_t>> before;
  std::map<size_t, std::vector<size_t>> before_record;
  std::vector<size_t> count;  // items of each stream
  Uses uses;
  cudaError_t error = cudaSuccess;

  size_t index_of(cudaStream_t stream) const {
    return static_cast<size_t>(std::ranges::find(streams, stream) -
                               streams.begin());
  }
  size_t joined(cudaStream_t stream) {
    const size_t index = index_of(stream);
    if (index < streams.size()) return index;
    streams.push_back(stream);
    count.push_back(0);
    before.emplace_back();
    return index;
  }
  void add(Item item) {
    auto& own = before[item.stream];
    if (own.size() <= item.stream) own.resize(item.stream + 1);
    own[item.stream] = ++count[item.stream];
    items.push_back(std::move(item));
  }
  void take(size_t stream, const std::vector<size_t>& others) {
    auto& own = before[stream];
    if (own.size() < others.size()) own.resize(others.size());
    for (size_t i = 0; i < others.size(); ++i)
      own[i] = std::max(own[i], others[i]);
  }
  bool is_joined() const {
    std::vector<size_t> first = before[0];
    first.resize(streams.size());
    return first == count;
  }
};

thread_local std::unique_ptr<Capture> capture;

}  // namespace

bool is_capturing() { return capture != nullptr; }

bool is_captured(cudaStream_t stream) {
  return capture && capture->index_of(stream) < capture->streams.size();
}

cudaError_t refused(cudaError_t error) {
  if (capture->error == cudaSuccess) capture->error = error;
  return noted(error);
}

void keep_uses(Uses uses) { capture->uses = std::move(uses); }

void keep_work(cudaStream_t stream, Maker make) {
  capture->add({.stream = capture->index_of(stream),
                .make = std::move(make),
                .uses = std::exchange(capture->uses, {})});
}

void keep_record(cudaStream_t stream, cudaEvent_t event, bool external) {
  const size_t index = capture->index_of(stream);
  if (external) {
    capture->add(
        {.kind = Item::Kind::kExternal, .stream = index, .event = event});
    return;
  }
  const size_t place = capture->items.size();
  capture->add({.kind = Item::Kind::kRecord, .stream = index, .record = place});
  capture->records[event] = place;
  capture->before_record[place] = capture->before[index];
}

bool keep_wait(cudaStream_t stream, cudaEvent_t event) {
  if (!capture) return false;
  const auto record = capture->records.find(event);
  if (record == capture->records.end()) {
    if (!is_captured(stream)) return false;
    refused(cudaErrorStreamCaptureIsolation);
    return true;
  }
  const size_t index = capture->joined(stream);
  capture->take(index, capture->before_record[record->second]);
  capture->add(
      {.kind = Item::Kind::kWait, .stream = index, .record = record->second});
  return true;
}

}  // namespace fake_cuda

struct CUgraph_st {
  std::vector<fake_cuda::Item> items;
  size_t streams = 1;
};

struct CUgraphExec_st {
  CUgraph_st graph;
  std::vector<cudaStream_t> own;  // [stream - 1]
};

using namespace fake_cuda;

namespace {

void enqueue_item(const CUgraphExec_st& exec, cudaStream_t on,
                  std::map<size_t, Fence*>& fences) {
  for (const Item& item : exec.graph.items) {
    cudaStream_t stream = item.stream == 0 ? on : exec.own[item.stream - 1];
    switch (item.kind) {
      case Item::Kind::kWork:
        if (!item.uses.what.empty())
          uses(stream, item.uses.what, item.uses.ranges);
        enqueue_aside(stream, item.make());
        break;
      case Item::Kind::kRecord:
        fences[item.record] = Fence::make();
        fences[item.record]->put_on(stream);
        saw_record(&exec.graph.items[item.record], stream);
        break;
      case Item::Kind::kWait: {
        const Fence* fence = fences.at(item.record);
        saw_wait(stream, &exec.graph.items[item.record]);
        enqueue_aside(stream, [fence] { fence->wait(); });
        break;
      }
      case Item::Kind::kExternal:
        record(item.event, stream);
        break;
    }
  }
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  if (capture || stream == nullptr || mode != cudaStreamCaptureModeThreadLocal)
    return noted(cudaErrorStreamCaptureUnsupported);
  capture = std::make_unique<Capture>();
  capture->joined(stream);
  return checked();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!capture || capture->streams[0] != stream)
    return noted(cudaErrorIllegalState);
  const auto ended = std::exchange(capture, nullptr);
  if (ended->error != cudaSuccess)
    return noted(cudaErrorStreamCaptureInvalidated);
  if (!ended->is_joined()) return noted(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(ended->items), ended->streams.size()};
  return checked();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long) {
  *exec = new CUgraphExec_st{*graph, {}};
  for (size_t i = 1; i < graph->streams; ++i)
    cudaStreamCreateWithFlags(&(*exec)->own.emplace_back(),
                              cudaStreamNonBlocking);
  return checked();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
// Launched work is still done.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  for (cudaStream_t stream : exec->own) cudaStreamDestroy(stream);
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (is_capturing()) return refused(cudaErrorStreamCaptureUnsupported);
  enqueue(stream, [] {});
  for (cudaStream_t own : exec->own) order(stream, own);
  std::map<size_t, Fence*> fences;
  enqueue_item(*exec, stream, fences);
  return checked();
}

}  // extern "C"
