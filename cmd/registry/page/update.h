// What a page is told when something has changed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cmd/registry/catalog.h"
#include "cmd/registry/page/history.h"

namespace lookout::cmd::registry_cmd {

/// One JSON object, from which a page that knows `before` (null: nothing) can tell what is in
/// `after`:
///
///     {"reset": true, "revision": 7, "synced": true, "live": true, "since": MILLISECONDS,
///      "error": "", "services": [{"name": "web", "put": [INSTANCE...], "drop": ["shop/web-1"]}],
///      "gone": ["cart"],
///      "problems": [{"kind": "namespace", "where": "shop", "service": "", "reason": "...",
///                    "code": 403, "at": MILLISECONDS}], "problemsInAll": 1,
///      "pods": {"shop/web-2": {"leaving": true, "why": ""}, "shop/web-3": null},
///      "traffic": {"asked": 3, "answered": 3, "services": {"web": {"all": RATES,
///                  "instances": {"shop/web-2": RATES}}}}}
///
/// "reset" says that what the page knows is to be forgotten first. "services" has those that have
/// changed, "put" the instances that are new or other than before, "drop" the pods of those that
/// are no more, "gone" the services that are no more. "problems" and "traffic" are whole, and there
/// only if they have changed; "pods" has what has changed, null for pods of which there is nothing
/// to say any more. RATES are [picks a second, errors a second, ejected, callers] (notes.h).
std::string encode_update(const CatalogState* before, const CatalogState& after);

/// {"service", "changes": [{"at": MILLISECONDS, "pod", "event", "detail"}]}.
std::string encode_history(const std::string& service, const std::vector<Change>& changes);

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
