#include "chexnet/app/limit_output.hpp"

namespace chexnet {

std::string LimitOutput::text() const {
  std::string text = aligned(evidence) +
                     "\nlimited by: " + limit_name(report.limit) + "\n  " +
                     report.reason + "\nwhat to change:\n";
  for (const auto& advice : report.advice) text += "  - " + advice + "\n";
  return text;
}

Json LimitOutput::whole_json() const {
  Json whole = json;
  whole["limit"] = limit_name(report.limit);
  whole["reason"] = report.reason;
  whole["advice"] = report.advice;
  if (report.workers > 0) whole["workers"] = report.workers;
  return whole;
}

}  // namespace chexnet
