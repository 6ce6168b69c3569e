// Stores that a reflector can fill without an informer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/reflector.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::cache {

/// Lets a reflector keep an Indexer up to date, without notifications:
///
///     Indexer pods({{std::string(kNamespaceIndex), index_by_namespace}});
///     IndexerStore target(pods);
///     auto reflector = Reflector::create(source, target, options);
///
/// Changes that come together become one version. Lives on the reflector's strand.
class IndexerStore : public ReflectorStore {
 public:
  /// `store` must outlive it.
  explicit IndexerStore(Indexer& store) : store_(store) {}

  void add(const api::Object& object) override;
  void update(const api::Object& object) override;
  void remove(const api::Object& object) override;
  void replace(std::vector<api::Object> objects, const std::string& resource_version) override;
  void resync() override {}
  void flush(const std::string& resource_version) override;
  api::Object prepare(api::Object object) const override;
  std::vector<api::Object> objects() const override;

 private:
  Indexer& store_;
  std::vector<StoreChange> changes_;
};

/// client-go's UndeltaStore: after each change it hands over everything that is there. A snapshot
/// costs nothing, however large the store is. Safe to use from any thread; with changes on several
/// threads `push` may be called with the same state twice, and from several threads at a time.
class UndeltaStore : public ReflectorStore {
 public:
  using Push = std::function<void(const Snapshot&)>;
  explicit UndeltaStore(Push push, KeyFunc key_func = {})
      : store_(std::move(key_func), Indexers{}), push_(std::move(push)) {}

  void add(const api::Object& object) override;
  void update(const api::Object& object) override { add(object); }
  void remove(const api::Object& object) override;
  void replace(std::vector<api::Object> objects, const std::string& resource_version) override;
  void resync() override {}
  void flush(const std::string& resource_version) override;
  std::vector<api::Object> objects() const override;

  const Indexer& store() const LOOKOUT_LIFETIME_BOUND { return store_; }

 private:
  Indexer store_;
  const Push push_;
};

}  // namespace lookout::cache
