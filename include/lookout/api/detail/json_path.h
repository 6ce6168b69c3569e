// Kubernetes' JSONPath, for the printer columns of custom resources and for `lookout get`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/value.h"

namespace lookout::api::detail {

/// A path such as `.spec.replicas`, `.metadata.labels['a\.b']`, `.spec.hosts[*].name`, `['a.b','c']` or
/// `.status.conditions[?(@.type=="Ready")].status` (k8s.io/client-go/util/jsonpath without the
/// template language around it). Immutable.
class JsonPath {
 public:
  /// nullopt if the text is not a valid path.
  static std::optional<JsonPath> parse(std::string_view text);

  /// The values at the path, in order; empty if there are none.
  std::vector<Value> find(Value root) const;
  /// The same for kubectl's templates: throws Error if an index is out of the bounds of its array.
  std::vector<Value> find_in_bounds(Value root) const;

 private:
  struct Step {
    enum class Kind { kMember, kWildcard, kSlice, kFilter, kDescend, kUnion };
    Kind kind = Kind::kMember;
    std::string name = {};
    // A slice, as in Go: an index is a slice of one.
    std::optional<std::int64_t> begin = {};
    std::optional<std::int64_t> end = {};
    std::int64_t stride = 1;
    bool single = false;
    // A filter.
    std::vector<Step> left = {};
    std::string comparison = {};
    std::string right = {};
    bool right_is_text = false;
    // The paths of a union. A quoted member with dots has one, too: its name as a path, which is tried first.
    std::vector<std::vector<Step>> choices = {};
  };

  class Parser;

  static void apply(const Step& step, Value value, std::vector<Value>& out);
  static std::vector<Value> walk(const std::vector<Step>& steps, std::vector<Value> from,
                                 bool in_bounds);
  static void check_bounds(const Step& step, Value value);
  static bool passes(const Step& step, Value value);

  std::vector<Step> steps_;
};

}  // namespace lookout::api::detail
