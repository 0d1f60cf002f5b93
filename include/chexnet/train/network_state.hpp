// A network and its optimizer to and from a checkpoint folder, and from rank 0
// to all ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/model_metadata.hpp"
#include "chexnet/train/optimizer.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/weight_average.hpp"

namespace chexnet {

// model.safetensors and optimizer.safetensors into `folder`. With an average
// the first holds the averaged weights and the second also those that training
// goes on with; the network is as it was afterwards.
void write_network(const std::filesystem::path& folder,
                   const Parameters& parameters, const Optimizer& optimizer,
                   int64_t step, const std::string& description,
                   WeightAverage* average = nullptr);

// The first of weights, running statistics, optimizer state and average that is
// not finite, by its name; empty where all are. A gradient of 1e30 is finite
// and its square, which Adam keeps, is not.
std::string not_finite_state(const Parameters& parameters,
                             const Optimizer& optimizer,
                             const WeightAverage* average = nullptr);

// Weights of a model file for inference or further training. CheckpointError
// when it is of another network, or learnt other findings, or saw other
// preprocessing than `config` asks for.
void read_network(const std::filesystem::path& file, const Config& config,
                  const std::vector<std::string>& findings,
                  Parameters& parameters);
// The same of a file that was read already: waits for the device only. `origin`
// names it in errors.
void take_network(const SafetensorsFile& file,
                  const std::filesystem::path& origin, const Config& config,
                  const std::vector<std::string>& findings,
                  Parameters& parameters);
// A resume must use the same images: CheckpointError when the training split is
// another; a changed table of the same images (NIH's two releases differ in
// labels) is a warning.
void check_same_data(const std::filesystem::path& folder,
                     const Dataset& dataset);
// After read_network: the state of the optimizer and, with an average, the
// weights that training goes on with. CheckpointError where it does not fit or
// is not finite.
void read_optimizer(const std::filesystem::path& folder,
                    const Parameters& parameters, Optimizer& optimizer,
                    WeightAverage* average = nullptr);

// Parameters, running statistics, optimizer state and average of rank 0 on
// every rank, then a check by hash that all parameters are equal (DeviceError
// when not). `optimizer` and `average` may be null.
void broadcast_from_rank_0(Communicator& comm, Parameters& parameters,
                           Optimizer* optimizer,
                           WeightAverage* average = nullptr);
std::string parameters_sha256(const Parameters& parameters);

}  // namespace chexnet
