// What a page is told when something has changed.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "cmd/registry/page/catalog.h"

namespace lookout::cmd::registry_cmd {

/// One JSON object, from which a page that knows `before` (null: nothing) can tell what is in
/// `after`:
///
///     {"reset": true, "revision": 7, "synced": true, "live": true, "since": MILLISECONDS,
///      "services": [{"name": "web", "put": [INSTANCE...], "drop": ["default/web-1"]}],
///      "gone": ["cart"]}
///
/// "reset" says that what the page knows is to be forgotten first. "services" has those that have
/// changed, "put" the instances that are new or other than before, "drop" the pods of those that
/// are no more, "gone" the services that are no more.
std::string encode_update(const CatalogState* before, const CatalogState& after);

/// A server-sent event.
std::string encode_event(const std::string& name, const std::string& data);

/// Updates as events, for many clients: most of them know the same, and are told the same text.
class UpdateEncoder {
 public:
  using Text = std::shared_ptr<const std::string>;
  Text encode(const CatalogStatePtr& before, const CatalogStatePtr& after);

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::uint64_t before_ = 0;
  std::uint64_t after_ = 0;
  Text last_;
};

}  // namespace lookout::cmd::registry_cmd
