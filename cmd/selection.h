// The objects that a command line selects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/cli.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/rest/client.h"
#include "lookout/rest/discovery.h"

namespace lookout::cmd {

/// The default page size of lists, like that of kubectl's --chunk-size.
inline constexpr std::int64_t kPageSize = 500;

/// A resource or a category, as the user named it, and the names of objects; without names, all objects.
struct Target {
  std::string resource;
  std::vector<std::string> names = {};
};

/// The flags that select objects.
struct SelectionFlags {
  std::string resource;
  std::vector<std::string> names;
  std::string ns;
  bool all_namespaces = false;
  std::string label_selector;
  std::string field_selector;
  /// Of lists; 0: the whole list at once.
  std::int64_t page_size = kPageSize;
  /// Set by check().
  std::vector<Target> targets;

  /// Returns the option of the resource, which is not required.
  CLI::Option* add_to(CLI::App& app);
  /// Reads "pods", "pods,services", "pods web api" and "pods/web services/web", as in kubectl. Throws
  /// CLI::ValidationError for invalid flags.
  void check();

  /// Throws CLI::ValidationError for more than a watch can follow. Call check() first.
  void check_for_watch() const;

  /// All objects that the selectors select, read page by page.
  std::vector<api::Object> list(const rest::ResourceClient& objects) const;

  bool has_selector() const { return !label_selector.empty() || !field_selector.empty(); }
  bool has_names() const;
  /// The namespace of a resource; empty for all namespaces, and if the resource has none.
  std::string namespace_of(const api::Resource& of, const rest::Client& client) const;
};

/// The resources of a server by the names that users write. Discovers them when it needs to.
class ResourceFinder {
 public:
  explicit ResourceFinder(const rest::Client& client) : client_(client) {}

  /// The resource. Throws Error, with a suggestion, if the server has none.
  api::Resource find(const std::string& name);
  /// The resources of a category such as "all", or the one resource.
  std::vector<api::Resource> find_all(const std::string& name);
  /// The resource of an object. Throws Error if the server has none.
  api::Resource find(const api::Object& object);

 private:
  const std::vector<rest::ApiResource>& discovered();

  const rest::Client& client_;
  std::optional<std::vector<rest::ApiResource>> discovered_;
};

}  // namespace lookout::cmd
