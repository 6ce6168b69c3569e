// The updates that a page receives.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cmd/registry/catalog.h"
#include "cmd/registry/page/history.h"

namespace lookout::cmd::registry_cmd {

/// The update from `before` (null: nothing) to `after`, as a JSON object:
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
/// "reset": the page drops its state first. "services": the changed services; "put": their new or
/// changed instances; "drop": the pods of removed instances. "gone": the removed services.
/// "problems" and "traffic" are complete, and present only if they have changed. "pods" has the
/// changes only; null means that the pod has no entry anymore. RATES are [picks per second, errors
/// per second, ejected, callers] (notes.h).
std::string encode_update(const CatalogState* before, const CatalogState& after);

/// {"service", "changes": [{"at": MILLISECONDS, "pod", "event", "detail"}]}.
std::string encode_history(const std::string& service, const std::vector<Change>& changes);

/// A server-sent event.
std::string encode_event(const std::string& name, const std::string& data);

/// Encodes updates as events. Clients with the same state share the text.
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
