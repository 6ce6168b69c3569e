#include "apiserver/storage/etcd3/context.h"

#include <fmt/format.h>

#include <utility>

#include "apiserver/storage/shared_json.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using Code = StorageError::Code;
using rest::TransportError;

/// Whether the request was too large: for this client or for etcd, or so large that the gRPC layer of
/// etcd did not read it.
bool is_too_large(const EtcdError& e) {
  const std::string_view text = e.what();
  return text.find("request is too large") != std::string_view::npos ||
         (e.code() == EtcdError::kResourceExhausted &&
          text.find("received message larger than max") != std::string_view::npos);
}

[[noreturn]] void rethrow(const EtcdError& e, const std::string& key, Revision asked) {
  const std::string_view text = e.what();
  if (e.is_compacted())
    throw api::StatusError::expired("The resourceVersion for the provided list is too old.");
  if (e.is_future_revision()) throw api::StatusError::too_large_resource_version(asked, 0, 1);
  if (text.find("timed out") != std::string_view::npos)
    throw StorageError(Code::kTimeout, key, 0, e.what());
  if (e.is_transient() && e.code() != EtcdError::kInternal)
    throw StorageError(Code::kUnreachable, key, 0, e.what());
  if (is_too_large(e)) throw api::StatusError::request_entity_too_large(e.what());
  throw api::StatusError::internal_error(e.what());
}

}  // namespace

Context::Decoded Context::decode(std::string_view whole_key, std::string value,
                                 Revision revision) const {
  std::string why;
  try {
    Transformer::Read read = transformer->from_storage(std::move(value), whole_key);
    return {codec->decode(std::move(read.value), revision), read.stale};
  } catch (const TransformError& e) {
    why = fmt::format("unable to transform key \"{}\": {}", whole_key, e.what());
  } catch (const api::DecodeError& e) {
    why = fmt::format("unable to decode key \"{}\": {}", whole_key, e.what());
  }
  if (metrics != nullptr) metrics->decode_error();
  throw StorageError(Code::kCorruptObject, std::string(whole_key), revision, why);
}

api::Object Context::decode_event(std::string_view whole_key, std::string value,
                                  Revision revision) const {
  if (api::Object own = recent->find(value, revision)) return own;
  return decode(whole_key, std::move(value), revision).object;
}

std::string Context::value_of(std::string_view whole_key, const Codec::Encoded& encoded) const {
  return transformer->to_storage(encoded.value, whole_key);
}

api::Object Context::written(std::uint64_t write, Revision revision, const api::Object& object,
                             const Codec::Encoded& encoded) const {
  api::Object out = recent->written(write, revision, object);
  if (encoded.place != 0 && encoded.value.size() < kLongestShared)
    share_json(out, codec->json_of(encoded, revision));
  return out;
}

void rethrow_as_storage_error(const std::exception_ptr& failure, const std::string& whole_key,
                              Revision asked) {
  try {
    std::rethrow_exception(failure);
  } catch (const EtcdError& e) {
    rethrow(e, whole_key, asked);
  } catch (const TransportError& e) {
    throw StorageError(
        e.kind() == TransportError::Kind::kTimeout ? Code::kTimeout : Code::kUnreachable, whole_key,
        0, e.what());
  } catch (const api::DecodeError& e) {
    throw api::StatusError::internal_error(e.what());
  }
}

}  // namespace lookout::apiserver::storage::etcd3
