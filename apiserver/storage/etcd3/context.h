// Context: the dependencies of a resource's storage.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/storage/etcd3/client.h"
#include "apiserver/storage/etcd3/codec.h"
#include "apiserver/storage/etcd3/metrics.h"
#include "apiserver/storage/etcd3/recent_writes.h"
#include "lookout/api/object.h"
#include "lookout/apiserver/storage/transformer.h"

namespace lookout::apiserver::storage::etcd3 {

/// Shared by a store and its watchers. Thread-safe.
struct Context {
  std::shared_ptr<Client> client;
  std::shared_ptr<const Codec> codec;
  TransformerPtr transformer;
  /// "/registry/pods", without a slash at its end.
  std::string prefix;
  /// Null: no metrics.
  std::shared_ptr<ResourceMetrics> metrics = nullptr;

  /// The objects of the store's recent writes. Its watchers use them instead of decoding events.
  std::shared_ptr<RecentWrites> recent = std::make_shared<RecentWrites>();

  std::string whole_key(std::string_view key) const { return prefix + "/" + std::string(key); }
  /// A whole key without the prefix.
  std::string relative(std::string_view whole) const {
    return std::string(whole.substr(std::min(whole.size(), prefix.size() + 1)));
  }

  struct Decoded {
    api::Object object;
    bool stale = false;
  };
  /// Decodes a value; its resourceVersion is `revision`. Throws StorageError (kCorruptObject),
  /// which names the key.
  Decoded decode(std::string_view whole_key, std::string value, Revision revision) const;
  /// The object of an event. Objects that the store has just encoded are not decoded.
  api::Object decode_event(std::string_view whole_key, std::string value, Revision revision) const;
  /// The value of an encoded object.
  std::string value_of(std::string_view whole_key, const Codec::Encoded& encoded) const;
  /// The written object. Its JSON is cached for the response.
  api::Object written(std::uint64_t write, Revision revision, const api::Object& object,
                      const Codec::Encoded& encoded) const;
};

/// Rethrows an etcd error of a request for `whole_key` as StorageError or api::StatusError. Other errors
/// are unchanged.
[[noreturn]] void rethrow_as_storage_error(const std::exception_ptr& failure,
                                           const std::string& whole_key, Revision asked = 0);

}  // namespace lookout::apiserver::storage::etcd3
