#include "apiserver/endpoints/watch_stream.h"

#include <algorithm>
#include <utility>

#include "apiserver/endpoints/output.h"
#include "apiserver/storage/shared_json.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/symbols.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::endpoints {

WatchStream::WatchStream(resources::ServedResourcePtr resource,
                         std::unique_ptr<storage::Watch> watch, WatchStreamOptions options,
                         std::shared_ptr<Counters> counters)
    : resource_(std::move(resource)),
      watch_(std::move(watch)),
      options_(std::move(options)),
      counters_(std::move(counters)),
      retired_(resource_->retired, Cancel{watch_.get()}) {
  form_ = resource_->type.api_version();
  if (options_.format.transform == Transform::kPartialMetadata)
    form_ = options_.format.meta_version;
  if (options_.format.protobuf) form_ += " protobuf";
  if (options_.bookmarks) next_bookmark_ = Clock::now() + options_.bookmark_interval;
  ++counters_->watches_started;
  ++counters_->watches;
}

WatchStream::~WatchStream() { --counters_->watches; }

Awaitable<bool> WatchStream::next(std::vector<http::Piece>& pieces) {
  pieces.clear();
  if (!std::exchange(prepared_, true)) watch_->on_stuck = cut_off;
  while (pieces.empty()) {
    if (finished_) co_return false;
    if (encoded_ < events_.size()) {
      encode_some(pieces);
      continue;
    }
    if (last_) co_return false;
    const auto until = std::min(options_.deadline, next_bookmark_);
    encoded_ = 0;
    last_ = !co_await watch_->next(events_, until);
    // As in kube-apiserver, the watch ends with the first object: no object is a list.
    const bool failed = !events_.empty() && events_.front().type == api::EventType::kError;
    if (options_.format.as_list && !events_.empty() && !failed) co_return false;
    const auto now = Clock::now();
    if (now >= options_.deadline) {
      // A final bookmark, from which the client can continue. (A watch from a future version has none
      // yet.)
      const bool told = std::any_of(events_.begin(), events_.end(), [](const storage::Event& e) {
        return e.type == api::EventType::kBookmark;
      });
      if (!options_.bookmarks || (ending_ && (told || events_.empty()))) {
        last_ = true;
      } else if (!std::exchange(ending_, true)) {
        watch_->request_bookmark();
      }
    } else if (now >= next_bookmark_) {
      watch_->request_bookmark();
      next_bookmark_ = now + options_.bookmark_interval;
    }
  }
  co_return true;
}

/// Encodes events up to the maximum size of a write, which limits the memory for a client that does
/// not read.
void WatchStream::encode_some(std::vector<http::Piece>& pieces) {
  for (std::size_t size = 0; encoded_ < events_.size() && size < kPieceBytes; ++encoded_) {
    const storage::Event& event = events_[encoded_];
    pieces.push_back(encode(event));
    size += pieces.back()->size();
    ++counters_->events_sent;
    if (options_.metrics) options_.metrics->event_sent();
    // The storage ends a watch after an error.
    if (event.type == api::EventType::kError) last_ = true;
  }
}

void WatchStream::end() {
  finished_ = true;
  watch_->cancel();
}

void WatchStream::on_slow_client() {
  ++counters_->slow_watchers;
  log::warn("closed {}: the client does not read its events", options_.description);
}

http::Piece WatchStream::encode(const storage::Event& event) {
  const auto make = [&] {
    ++counters_->events_encoded;
    return line(event);
  };
  // Tables depend on the time, because they show ages.
  const bool alone = event.change == nullptr || options_.format.transform == Transform::kTable;
  if (alone) return std::make_shared<const std::string>(make());
  return event.change->encoding(event.type, form_, make);
}

std::string WatchStream::line(const storage::Event& event) {
  std::string out = R"({"type":")";
  out += api::to_string(event.type);
  out += R"(","object":)";
  api::Object object = event.object;
  if (event.type == api::EventType::kBookmark) {
    object = bookmark(event);
  } else if (event.type != api::EventType::kError) {
    object = options_.format.transform == Transform::kPartialMetadata
                 ? api::with_type(api::partial_metadata(object), options_.format.meta_version,
                                  "PartialObjectMetadata")
                 : resource_->from_storage(object);
  }
  if (options_.format.protobuf) {
    std::string frame;
    api::ProtobufEncoder().encode_event(event.type, object, frame);
    return frame;
  }
  if (options_.format.transform == Transform::kTable && event.type != api::EventType::kError) {
    const bool is_bookmark = event.type == api::EventType::kBookmark;
    out += table_of(*resource_->printer, is_bookmark ? object : event.object, object,
                    options_.format, !std::exchange(columns_shown_, true));
    return out + "}\n";
  }
  // Initial objects are not responses to writes.
  if (event.change != nullptr) {
    out += *storage::shared_json(object);
  } else {
    api::detail::write_json(object.body(), out);
  }
  out += "}\n";
  return out;
}

api::Object WatchStream::bookmark(const storage::Event& event) const {
  const bool partial = options_.format.transform == Transform::kPartialMetadata;
  api::detail::FlatWriter writer;
  writer.begin_object();
  writer.key(api::sym::kKind);
  writer.string(partial ? "PartialObjectMetadata" : std::string_view(resource_->type.kind));
  writer.key(api::sym::kApiVersion);
  writer.string(partial ? options_.format.meta_version
                        : std::string_view(resource_->type.api_version()));
  writer.key(api::sym::kMetadata);
  writer.begin_object();
  writer.key(api::sym::kResourceVersion);
  writer.string(std::to_string(event.revision));
  if (event.initial_events_end) {
    writer.key(api::sym::kAnnotations);
    writer.begin_object();
    writer.key(api::kInitialEventsEndAnnotation);
    writer.string("true");
    writer.end_object();
  }
  writer.end_object();
  writer.end_object();
  return writer.finish();
}

}  // namespace lookout::apiserver::endpoints
