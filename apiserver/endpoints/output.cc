#include "apiserver/endpoints/output.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "apiserver/endpoints/protobuf_output.h"
#include "apiserver/storage/shared_json.h"
#include "apiserver/storage/vector_source.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/object_editor.h"

namespace lookout::apiserver::endpoints {
namespace {

api::Object metadata_of(const api::Object& object, const OutputFormat& format) {
  return api::with_type(api::partial_metadata(object), format.meta_version,
                        "PartialObjectMetadata");
}

class ListStream final : public http::BodyStream {
 public:
  ListStream(resources::ServedResourcePtr resource, ListHead head,
             std::unique_ptr<storage::ObjectSource> source, OutputFormat format)
      : resource_(std::move(resource)),
        head_(std::move(head)),
        source_(std::move(source)),
        format_(format) {}

  Awaitable<bool> next(std::vector<http::Piece>& pieces) override {
    pieces.clear();
    auto piece = std::make_shared<std::string>();
    if (!std::exchange(begun_, true)) append_head(*piece);
    bool more = true;
    while (more && piece->size() < kPieceBytes) {
      more = co_await source_->next(objects_, kObjectsAtOnce);
      for (const api::Object& object : objects_) append_item(object, *piece);
    }
    if (!more) *piece += "]}\n";
    pieces.push_back(std::move(piece));
    co_return more;
  }

 private:
  void append_head(std::string& out) const {
    const bool partial = format_.transform == Transform::kPartialMetadata;
    const bool table = format_.transform == Transform::kTable;
    out += R"({"kind":)";
    append_json_string(table     ? "Table"
                       : partial ? "PartialObjectMetadataList"
                                 : std::string_view(resource_->list_kind),
                       out);
    out += R"(,"apiVersion":)";
    append_json_string(partial || table ? format_.meta_version : resource_->type.api_version(),
                       out);
    out += R"(,"metadata":{"resourceVersion":)";
    append_json_string(head_.resource_version, out);
    const bool custom = resource_->custom && format_.transform == Transform::kNone;
    if (custom || !head_.continue_token.empty()) {
      out += R"(,"continue":)";
      append_json_string(head_.continue_token, out);
    }
    if (head_.remaining) out += fmt::format(R"(,"remainingItemCount":{})", *head_.remaining);
    out += '}';
    if (table) {
      out += R"(,"columnDefinitions":)" + tables::column_definitions(*resource_->printer);
      out += R"(,"rows":[)";
    } else {
      out += R"(,"items":[)";
    }
  }

  void append_item(const api::Object& stored, std::string& out) {
    if (!std::exchange(first_, false)) out += ',';
    if (format_.transform == Transform::kPartialMetadata) {
      const api::Object metadata = metadata_of(stored, format_);
      api::detail::write_json(metadata.body(), out);
      return;
    }
    const api::Object object = resource_->from_storage(stored);
    if (format_.transform == Transform::kTable) {
      out += tables::table_row(*resource_->printer, stored, object, format_.include,
                               std::string(format_.meta_version), now_);
      return;
    }
    if (resource_->custom) {
      api::detail::write_json(object.body(), out);
    } else {
      // Items of built-in lists have no type: the list has it.
      api::detail::write_json_without({"kind", "apiVersion"}, object.body(), out);
    }
  }

  const resources::ServedResourcePtr resource_;
  const ListHead head_;
  const std::unique_ptr<storage::ObjectSource> source_;
  const OutputFormat format_;
  /// Ages are relative to this time.
  const api::Time now_ =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  std::vector<api::Object> objects_;
  bool begun_ = false;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<storage::ObjectSource> objects_source(std::vector<api::Object> objects) {
  return std::make_unique<storage::VectorSource>(std::move(objects));
}

void append_json_string(std::string_view text, std::string& out) {
  api::detail::write_json_string(text, out);
}

http::Response status_response(const api::Status& status, bool protobuf) {
  http::Response response;
  // A status without a code is a bug in the server.
  response.status = status.code != 0 ? status.code : status.status == "Success" ? 200 : 500;
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  if (status.retry_after_seconds > 0)
    response.headers.emplace_back("Retry-After", std::to_string(status.retry_after_seconds));
  if (protobuf && set_protobuf_body(status.to_object(), response)) return response;
  response.body = status.to_object().to_json() + "\n";
  return response;
}

http::Response object_response(int code, const api::Object& object, const OutputFormat& format) {
  http::Response response;
  response.status = code;
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  // A Status is not converted.
  const bool partial = format.transform == Transform::kPartialMetadata && object.kind() != "Status";
  const api::Object shown = partial ? metadata_of(object, format) : object;
  if (format.protobuf && set_protobuf_body(shown, response)) return response;
  response.body = *storage::shared_json(shown) + '\n';
  return response;
}

std::string table_of(const tables::Printer& printer, const api::Object& stored,
                     const api::Object& shown, const OutputFormat& format, bool with_columns) {
  const api::Time now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  std::string out = R"({"kind":"Table","apiVersion":)";
  append_json_string(format.meta_version, out);
  out += R"(,"metadata":{"resourceVersion":)";
  append_json_string(shown.resource_version(), out);
  out += R"(},"columnDefinitions":)";
  out += with_columns ? tables::column_definitions(printer) : "null";
  out += R"(,"rows":[)";
  out += tables::table_row(printer, stored, shown, format.include, std::string(format.meta_version),
                           now);
  return out + "]}";
}

http::Response table_response(int code, const tables::Printer& printer, const api::Object& stored,
                              const api::Object& shown, const OutputFormat& format) {
  http::Response response;
  response.status = code;
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  response.body = table_of(printer, stored, shown, format, true) + "\n";
  return response;
}

std::unique_ptr<http::BodyStream> list_stream(resources::ServedResourcePtr resource, ListHead head,
                                              std::unique_ptr<storage::ObjectSource> source,
                                              OutputFormat format) {
  if (format.protobuf) {
    return protobuf_list_stream(std::move(resource), std::move(head), std::move(source), format);
  }
  return std::make_unique<ListStream>(std::move(resource), std::move(head), std::move(source),
                                      format);
}

}  // namespace lookout::apiserver::endpoints
