// nlohmann-json keeps the last of two equal keys, and its parser with a
// callback looks through a whole object after each of its members. So the text
// is read twice: by events, which need no memory but for keys, and then whole.
#include "checked_json.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

namespace chexnet {
namespace {

class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(const JsonLimits& limits) : limits_(limits) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return counted(); }
  bool boolean(bool) override { return counted(); }
  bool number_integer(number_integer_t) override { return counted(); }
  bool number_unsigned(number_unsigned_t) override { return counted(); }
  bool number_float(number_float_t, const string_t&) override {
    return counted();
  }
  bool string(string_t&) override { return counted(); }
  bool binary(binary_t&) override { return counted(); }
  bool start_object(size_t) override { return begin(); }
  bool start_array(size_t) override { return begin(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return counted();
    return stop("key '" + name + "' appears twice");
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool counted() {
    if (++values_ <= limits_.values) return true;
    return stop("it holds more than " + std::to_string(limits_.values) +
                " values");
  }
  bool begin() {
    keys_.emplace_back();
    if (keys_.size() <= limits_.depth) return counted();
    return stop("it is nested more than " + std::to_string(limits_.depth) +
                " deep");
  }
  bool end() {
    keys_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::vector<std::set<std::string>> keys_;  // of each object that is open
  size_t values_ = 0;
  std::string problem_;
};

}  // namespace

std::string json_problem(std::string_view text, const JsonLimits& limits) {
  Events events(limits);
  nlohmann::json::sax_parse(text, &events);
  return events.problem();
}

nlohmann::json checked_json(std::string_view text, const JsonLimits& limits) {
  if (const auto problem = json_problem(text, limits); !problem.empty())
    throw std::runtime_error(problem);
  return nlohmann::json::parse(text);
}

}  // namespace chexnet
