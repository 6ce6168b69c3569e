// Feed: the current set of a service.
#pragma once

#include <memory>
#include <string>

#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// The current set of a service, for code that reads it often: load() takes no lock and allocates
/// nothing, regardless of concurrent calls and changes.
///
/// Must not outlive the Discovery's event loop. After the registry is closed, it keeps the last
/// set.
class Feed {
 public:
  /// Throws what Discovery::subscribe() throws.
  Feed(Discovery& discovery, const std::string& service);
  ~Feed();
  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;

  /// Never null; empty until there is data. Starts with the data that the Discovery has.
  InstanceSetPtr load() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lookout::registry
