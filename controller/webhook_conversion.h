// Conversions: handles ConversionReviews.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/controller/webhook_conversion.h"

namespace lookout::controller::detail {

/// Hubs and their spokes. Safe to use from any thread.
class Conversions {
 public:
  /// Throws InvalidArgument if the spoke cannot be added.
  void add(Spoke spoke);

  /// Answers a ConversionReview of v1. Calls the program's functions. Throws
  /// api::StatusError (400) if `body` is not a review.
  std::string answer(std::string_view body);

  /// Conversions that threw something other than a lookout::Error.
  std::uint64_t panics() const { return panics_; }

 private:
  struct Versions {
    api::Resource hub;
    std::map<std::string, Spoke, std::less<>> spokes;  // by version
  };

  std::optional<Versions> find(const std::string& group, const std::string& kind) const;
  api::Object convert(const api::Object& from, const api::GroupVersionKind& wanted) const;

  mutable std::mutex mutex_;
  std::map<std::string, Versions, std::less<>> kinds_;  // by "Kind.group"; guarded by mutex_
  std::atomic<std::uint64_t> panics_{0};
};

}  // namespace lookout::controller::detail
