#include "tests/api/recordings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "lookout/api/detail/json_values.h"
#include "lookout/api/protobuf.h"
#include "tests/support/files.h"

namespace lookout::api {

bool operator==(const MalformedObject& a, const MalformedObject& b) {
  return a.reason == b.reason && a.key == b.key && a.bytes == b.bytes;
}
bool operator==(const WatchEvent& a, const WatchEvent& b) {
  return a.type == b.type && a.object == b.object;
}
bool operator==(const UnknownFields& a, const UnknownFields& b) {
  return a.count == b.count && a.first == b.first;
}

namespace test {
namespace {

const std::filesystem::path kData = "kube-1.36";

std::vector<std::string> names_in(const char* folder, std::string_view extension) {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(lookout::test::testdata(kData / folder))) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(extension) && name.find(".table.") == std::string::npos)
      out.push_back(name.substr(0, name.size() - extension.size()));
  }
  if (out.empty()) throw std::logic_error(std::string("no recordings in ") + folder);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::string> recorded_lists() { return names_in("list", ".json"); }
std::vector<std::string> recorded_watches() { return names_in("watch", ".jsonl"); }
std::string list_body(const std::string& name) {
  return lookout::test::read_file(lookout::test::testdata(kData / "list" / (name + ".json")));
}
std::string watch_body(const std::string& name) {
  return lookout::test::read_file(lookout::test::testdata(kData / "watch" / (name + ".jsonl")));
}

std::vector<std::string> lists_in_both_encodings() { return names_in("list", ".pb"); }
std::string protobuf_recording(const std::string& file) {
  return lookout::test::read_file(lookout::test::testdata(kData / file));
}

std::string test_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

rapidjson::Document parse_json(std::string_view text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseFullPrecisionFlag>(text.data(), text.size());
  EXPECT_FALSE(document.HasParseError()) << text.substr(0, 200);
  return document;
}

std::string to_json(const rapidjson::Value& value) { return detail::to_json(value); }

std::vector<std::string> recorded_items(const std::string& name) {
  rapidjson::Document list = parse_json(list_body(name));
  auto& allocator = list.GetAllocator();
  std::string kind = list["kind"].GetString();
  kind = kind.substr(0, kind.size() - std::string_view("List").size());
  std::vector<std::string> out;
  for (auto& item : list["items"].GetArray()) {
    if (!item.HasMember("kind")) {
      item.AddMember("kind", rapidjson::Value(kind.c_str(), allocator), allocator);
      item.AddMember("apiVersion", rapidjson::Value(list["apiVersion"], allocator), allocator);
    }
    out.push_back(to_json(item));
  }
  return out;
}

std::vector<std::string> all_recorded_items() {
  std::vector<std::string> out;
  for (const auto& name : recorded_lists()) {
    for (auto& item : recorded_items(name)) out.push_back(std::move(item));
  }
  return out;
}

Pieces in_one_piece() {
  return [](std::string_view body, const Feed& feed) { return feed(body); };
}
Pieces byte_by_byte() {
  return [](std::string_view body, const Feed& feed) {
    bool fine = true;
    for (std::size_t i = 0; i < body.size(); ++i) fine = feed(body.substr(i, 1));
    return fine;
  };
}
Pieces cut_at(std::size_t position) {
  return [=](std::string_view body, const Feed& feed) {
    const std::size_t cut = std::min(position, body.size());
    feed(body.substr(0, cut));
    return feed(body.substr(cut));
  };
}

bool Decoded::operator==(const Decoded&) const = default;
bool DecodedList::operator==(const DecodedList&) const = default;
bool DecodedWatch::operator==(const DecodedWatch&) const = default;

namespace {

/// Decodes a body. The decoder's result goes to `out`, its values to `take`.
template <class Decoder, class Take>
std::unique_ptr<Decoder> decode_by(std::string_view body, const StreamOptions& options,
                                   const Pieces& pieces, Decoded& out, const Take& take) {
  auto decoder = std::make_unique<Decoder>(
      options, take, [&](const MalformedObject& malformed) { out.malformed.push_back(malformed); });
  pieces(body, [&](std::string_view piece) { return decoder->feed(piece); });
  out.complete = decoder->finish();
  out.error = decoder->error();
  out.unknown = decoder->unknown_fields();
  out.would_lose = decoder->would_lose();
  return decoder;
}

template <class Decoder>
DecodedList decode_list_by(std::string_view body, const StreamOptions& options,
                           const Pieces& pieces) {
  DecodedList out;
  const auto decoder = decode_by<Decoder>(
      body, options, pieces, out, [&](Object object) { out.items.push_back(std::move(object)); });
  out.api_version = decoder->api_version();
  out.kind = decoder->kind();
  out.resource_version = decoder->resource_version();
  out.continue_token = decoder->continue_token();
  out.remaining_item_count = decoder->remaining_item_count();
  return out;
}

template <class Decoder>
DecodedWatch decode_watch_by(std::string_view body, const StreamOptions& options,
                             const Pieces& pieces) {
  DecodedWatch out;
  decode_by<Decoder>(body, options, pieces, out,
                     [&](WatchEvent event) { out.events.push_back(std::move(event)); });
  return out;
}

}  // namespace

DecodedList decode_list(std::string_view body, const StreamOptions& options, const Pieces& pieces) {
  return decode_list_by<JsonListDecoder>(body, options, pieces);
}
DecodedList decode_protobuf_list(std::string_view body, const StreamOptions& options,
                                 const Pieces& pieces) {
  return decode_list_by<ProtobufListDecoder>(body, options, pieces);
}
DecodedWatch decode_watch(std::string_view body, const StreamOptions& options,
                          const Pieces& pieces) {
  return decode_watch_by<JsonWatchDecoder>(body, options, pieces);
}
DecodedWatch decode_protobuf_watch(std::string_view body, const StreamOptions& options,
                                   const Pieces& pieces) {
  return decode_watch_by<ProtobufWatchDecoder>(body, options, pieces);
}

}  // namespace test
}  // namespace lookout::api
