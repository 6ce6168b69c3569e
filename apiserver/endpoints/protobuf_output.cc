#include "apiserver/endpoints/protobuf_output.h"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>
#include <vector>

#include "lookout/api/detail/object_editor.h"
#include "lookout/api/protobuf.h"

namespace lookout::apiserver::endpoints {
namespace {

/// The approximate number of bytes to encode before a write to the socket.

class ProtobufListStream final : public http::BodyStream {
 public:
  ProtobufListStream(resources::ServedResourcePtr resource, ListHead head,
                     std::unique_ptr<storage::ObjectSource> source, const OutputFormat& format)
      : resource_(std::move(resource)),
        head_(std::move(head)),
        source_(std::move(source)),
        metadata_only_(format.transform == Transform::kPartialMetadata),
        api_version_(metadata_only_ ? "meta.k8s.io/v1" : resource_->type.api_version()),
        kind_(metadata_only_ ? "PartialObjectMetadata" : resource_->type.kind),
        list_kind_(metadata_only_ ? "PartialObjectMetadataList" : resource_->list_kind) {}

  Awaitable<bool> next(std::vector<http::Piece>& pieces) override {
    pieces.clear();
    auto piece = std::make_shared<std::string>();
    if (!std::exchange(begun_, true)) {
      const std::size_t size = co_await measure();
      api::ProtobufListMeta meta;
      meta.resource_version = head_.resource_version;
      meta.continue_token = head_.continue_token;
      meta.remaining_item_count = head_.remaining;
      encoder_.encode_list_head(api_version_, list_kind_, meta, size, *piece);
    }
    while (sent_ < objects_.size() && piece->size() < kPieceBytes)
      append_item(objects_[sent_++], *piece);
    const bool more = sent_ < objects_.size();
    if (!more) api::ProtobufEncoder::encode_list_tail(*piece);
    pieces.push_back(std::move(piece));
    co_return more;
  }

 private:
  /// Reads all objects from the source. Returns their encoded size.
  Awaitable<std::size_t> measure() {
    const auto executor = co_await boost::asio::this_coro::executor;
    std::size_t total = 0;
    std::string bytes;
    std::vector<api::Object> some;
    for (bool more = true; more;) {
      more = co_await source_->next(some, kObjectsAtOnce);
      for (api::Object& object : some) {
        append_item(object, bytes);
        objects_.push_back(std::move(object));
      }
      if (bytes.size() < kPieceBytes) continue;
      total += bytes.size();
      bytes.clear();
      // Yield to other coroutines.
      co_await boost::asio::post(executor, boost::asio::use_awaitable);
    }
    co_return total + bytes.size();
  }

  void append_item(const api::Object& stored, std::string& out) {
    // Every item has the type of the list, even if the object itself has none.
    encoder_.encode_list_item(
        api_version_, kind_,
        metadata_only_ ? api::partial_metadata(stored) : resource_->from_storage(stored), out);
  }

  const resources::ServedResourcePtr resource_;
  const ListHead head_;
  const std::unique_ptr<storage::ObjectSource> source_;
  const bool metadata_only_;
  const std::string api_version_;
  const std::string kind_;
  const std::string list_kind_;
  api::ProtobufEncoder encoder_;
  std::vector<api::Object> objects_;
  std::size_t sent_ = 0;
  bool begun_ = false;
};

}  // namespace

std::string content_type_of(const OutputFormat& format, bool watch) {
  if (!format.protobuf) return "application/json";
  return std::string(api::kProtobufMediaType) + (watch ? ";stream=watch" : "");
}

bool set_protobuf_body(const api::Object& object, http::Response& response) {
  std::string body;
  if (!api::ProtobufEncoder().encode(object, body)) return false;
  response.content_type = api::kProtobufMediaType;
  response.body = std::move(body);
  return true;
}

std::unique_ptr<http::BodyStream> protobuf_list_stream(
    resources::ServedResourcePtr resource, ListHead head,
    std::unique_ptr<storage::ObjectSource> source, const OutputFormat& format) {
  return std::make_unique<ProtobufListStream>(std::move(resource), std::move(head),
                                              std::move(source), format);
}

}  // namespace lookout::apiserver::endpoints
