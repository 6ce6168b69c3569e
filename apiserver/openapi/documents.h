// The OpenAPI documents of a server.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "apiserver/openapi/schemas.h"
#include "apiserver/resources/served_resource.h"

namespace lookout::apiserver::openapi {

/// An encoded document, created on first use.
struct WireDocument {
  std::string text;
  /// The content_hash() of the text.
  std::string hash;
};
using WireDocumentPtr = std::shared_ptr<const WireDocument>;

/// The documents of one table of resources. Safe to use from many threads.
class Documents {
 public:
  explicit Documents(std::shared_ptr<const resources::ResourceTable> table)
      : table_(std::move(table)) {}

  const resources::ResourceTable* table() const { return table_.get(); }

  /// The OpenAPI v2 document, as JSON and in gnostic's encoding.
  WireDocumentPtr v2_json();
  WireDocumentPtr v2_protobuf();
  /// The URLs of the v3 documents: {"paths": {"api/v1": {"serverRelativeURL": ...}}}.
  WireDocumentPtr v3_index();
  /// The document of "api/v1" or "apis/apps/v1"; null for other names.
  WireDocumentPtr v3(const std::string& group_version);

 private:
  json::Document build(Dialect dialect, std::string_view root_path) const;
  WireDocumentPtr v3_locked(const std::string& group_version);

  const std::shared_ptr<const resources::ResourceTable> table_;
  std::mutex mutex_;
  std::map<std::string, WireDocumentPtr> made_;
};

/// The documents of the currently served resources.
class DocumentCache {
 public:
  std::shared_ptr<Documents> of(const std::shared_ptr<const resources::ResourceTable>& table);

 private:
  std::mutex mutex_;
  std::shared_ptr<Documents> last_;
};

}  // namespace lookout::apiserver::openapi
