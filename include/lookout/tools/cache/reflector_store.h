// Stores for a reflector without an informer.
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

/// Adapts an Indexer for a reflector, without notifications:
///
///     Indexer pods({{std::string(kNamespaceIndex), index_by_namespace}});
///     IndexerStore target(pods);
///     auto reflector = Reflector::create(source, target, options);
///
/// Each batch of changes becomes one version. Used on the reflector's strand.
class IndexerStore : public ReflectorStore {
 public:
  /// `store` must outlive this object.
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

/// client-go's UndeltaStore: after each change it passes the whole content to `push`. The snapshot
/// is free, however large the store is. Safe to use from any thread; if several threads change the
/// store, `push` may run on several threads at once and may receive the same state twice.
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
