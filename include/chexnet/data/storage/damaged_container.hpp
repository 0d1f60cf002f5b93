// What a damaged container still gives: the parts before the damage.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/data/storage/entry.hpp"

namespace chexnet {

// Called with the message of a DataError instead of throwing it.
using ReportDamage = std::function<void(const std::string& message)>;
// Throws it on where nobody wants the report.
void report_damage(const ReportDamage& damaged, const DataError& error);

// As container_entries(); where the container is damaged, the parts that were
// whole before that are returned, and no index of them is kept.
std::vector<Entry> entries_before_damage(Store& store, const StoredFile& file,
                                         ContainerKind kind,
                                         const ShowProgress& progress,
                                         const ReportDamage& damaged);

}  // namespace chexnet
