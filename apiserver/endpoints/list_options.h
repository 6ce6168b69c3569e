// The options of lists and watches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/resources/store.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/attributes.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// metav1.ListOptions as the server understands them.
struct ListOptions {
  storage::Predicate predicate = {};
  bool watch = false;
  bool allow_watch_bookmarks = false;
  LOOKOUT_OPTION std::string resource_version = {};
  LOOKOUT_OPTION std::string resource_version_match = {};
  std::optional<std::int64_t> timeout_seconds = {};
  std::int64_t limit = 0;
  LOOKOUT_OPTION std::string continue_token = {};
  std::optional<bool> send_initial_events = {};
  /// The exact name and namespace in the field selector; empty if it has none.
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string ns = {};
};

/// Parses and validates the parameters of a list, watch or deletecollection. A name in the path of an
/// old-style watch selects that object. Throws api::StatusError: 400 for malformed parameters, 422
/// for invalid combinations.
ListOptions parse_list_options(const http::Request& request,
                               const resources::ServedResource& resource, bool watch,
                               const std::string& name);

/// The keys to read.
resources::KeyRange key_range(const resources::Target& target, const ListOptions& options);

/// The options for the storage. Throws api::StatusError for an invalid resourceVersion or continue
/// token.
storage::ListOptions storage_list_options(const ListOptions& options,
                                          const resources::KeyRange& range);
storage::WatchOptions storage_watch_options(const ListOptions& options);

/// The continue token, in the API server's format, which is opaque to clients.
std::string encode_continue(std::string_view start_key, std::string_view prefix,
                            std::int64_t revision);
struct ContinueToken {
  std::string start_key;
  /// Negative: the newest state.
  std::int64_t revision = 0;
};
/// Throws api::StatusError (400).
ContinueToken decode_continue(std::string_view token, std::string_view prefix);

/// The 410 for an expired continue token, with a token that continues with the newest state.
api::StatusError continue_expired(const ContinueToken& token, std::string_view prefix);

/// The minimum revision for a parsed resourceVersion: "0" is any revision, and "" the newest (0).
storage::Revision minimum_revision(std::string_view text, storage::Revision revision);

/// A resourceVersion; 0 for an empty one. Throws InvalidArgument with the API server's message.
storage::Revision parse_revision(std::string_view text);

}  // namespace lookout::apiserver::endpoints
