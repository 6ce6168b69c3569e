// etcd's responses: the first byte selects their kind; the split into pieces must make no
// difference.
#include <string>
#include <vector>

#include "apiserver/storage/etcd3/messages.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using namespace lookout::apiserver::storage::etcd3;

namespace {

/// The output of a reader for a response.
struct Told {
  std::vector<std::string> items;
  bool complete = false;
  std::string error;

  bool operator==(const Told&) const = default;
};

std::string describe(const KeyValue& kv) {
  return kv.key + '=' + kv.value + ' ' + std::to_string(kv.create_revision) + ' ' +
         std::to_string(kv.mod_revision) + ' ' + std::to_string(kv.version) + ' ' +
         std::to_string(kv.lease);
}

template <class Feed>
Told read(AnswerKind kind, const Feed& feed) {
  constexpr std::size_t kMaxValue = 1000;
  Told out;
  MessageReader::Callbacks callbacks;
  callbacks.key_value = [&](KeyValue kv) {
    fuzz::require(kv.key.size() + kv.value.size() <= kMaxValue);
    out.items.push_back(describe(kv));
  };
  callbacks.event = [&](KeyEvent event) {
    out.items.push_back(std::to_string(event.deleted) + describe(event.kv) +
                        (event.previous ? describe(*event.previous) : std::string()));
  };
  callbacks.message = [&](const Message& m) {
    out.items.push_back(std::to_string(m.cluster_id) + ' ' + std::to_string(m.revision) + ' ' +
                        std::to_string(m.count) + ' ' + std::to_string(m.events) + ' ' +
                        std::to_string(m.watch_id) + ' ' + std::to_string(m.created) +
                        std::to_string(m.canceled) + std::to_string(m.fragment) + m.cancel_reason +
                        m.token + m.version + std::to_string(m.client_urls.size()));
  };
  MessageReader reader(kind, std::move(callbacks), kMaxValue);
  feed(reader);
  out.complete = reader.complete();
  out.error = reader.error();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto kind =
      static_cast<AnswerKind>(data[0] % (static_cast<unsigned>(AnswerKind::kMembers) + 1));
  const std::string_view body = fuzz::text_of(data + 1, size - 1);
  Told whole = read(kind, [&](MessageReader& reader) { reader.feed(body); });
  Told pieces = read(kind, [&](MessageReader& reader) {
    fuzz::feed_in_pieces(body, [&](std::string_view piece) { reader.feed(piece); });
  });
  // The rest of an invalid response is not compared.
  if (!whole.error.empty()) whole.complete = pieces.complete = false;
  fuzz::require(whole == pieces);
  return 0;
}
