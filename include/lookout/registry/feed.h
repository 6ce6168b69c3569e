// The current set of a service, for code that needs it all the time.
#pragma once

#include <memory>
#include <string>

#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// The current set of a service for those who need it all the time: load() takes no lock and
/// allocates nothing, however many threads call it and whatever changes meanwhile.
///
/// Must not outlive the Discovery's loop; a closed registry leaves it with the last set.
class Feed {
 public:
  /// Throws as Discovery::subscribe().
  Feed(Discovery& discovery, const std::string& service);
  ~Feed();
  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;

  /// Never null; empty until there is data. Begins with what the Discovery knows.
  InstanceSetPtr load() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lookout::registry
