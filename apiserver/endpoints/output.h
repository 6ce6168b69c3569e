// Objects, lists and Statuses as response bodies.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/endpoints/negotiation.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/tables/printer.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The approximate size of a piece of a response.
inline constexpr std::size_t kPieceBytes = 128 * 1024;
/// The number of objects read from a list at once.
inline constexpr std::size_t kObjectsAtOnce = 64;

/// A Status with its code, and the headers that go with it.
http::Response status_response(const api::Status& status, bool protobuf = false);

http::Response object_response(int code, const api::Object& object, const OutputFormat& format);

/// A table of one object: `stored` is the printer's input, `shown` is for the client.
std::string table_of(const tables::Printer& printer, const api::Object& stored,
                     const api::Object& shown, const OutputFormat& format, bool with_columns);
http::Response table_response(int code, const tables::Printer& printer, const api::Object& stored,
                              const api::Object& shown, const OutputFormat& format);

/// The metadata of a list.
struct ListHead {
  std::string resource_version;
  std::string continue_token;
  std::optional<std::int64_t> remaining;
};

/// A list that is encoded while the client reads it. Objects of `source` are as stored.
std::unique_ptr<http::BodyStream> list_stream(resources::ServedResourcePtr resource, ListHead head,
                                              std::unique_ptr<storage::ObjectSource> source,
                                              OutputFormat format);

/// Objects in memory as a source.
std::unique_ptr<storage::ObjectSource> objects_source(std::vector<api::Object> objects);

/// Appends `"text"`, escaped.
void append_json_string(std::string_view text, std::string& out);

}  // namespace lookout::apiserver::endpoints
