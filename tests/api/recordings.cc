#include "tests/api/recordings.h"

#include <gtest/gtest.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/files.h"

namespace lookout::api {

bool operator==(const MalformedObject& a, const MalformedObject& b) {
  return a.reason == b.reason && a.excerpt == b.excerpt && a.bytes == b.bytes;
}
bool operator==(const WatchEvent& a, const WatchEvent& b) {
  return a.type == b.type && a.object == b.object;
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

rapidjson::Document parse_json(std::string_view text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseFullPrecisionFlag>(text.data(), text.size());
  EXPECT_FALSE(document.HasParseError()) << text.substr(0, 200);
  return document;
}

std::string to_json(const rapidjson::Value& value) {
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer> writer(out);
  value.Accept(writer);
  return {out.GetString(), out.GetSize()};
}

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
    feed(body.substr(0, position));
    return feed(body.substr(position));
  };
}

bool DecodedList::operator==(const DecodedList&) const = default;
bool DecodedWatch::operator==(const DecodedWatch&) const = default;

DecodedList decode_list(std::string_view body, const StreamOptions& options, const Pieces& pieces) {
  DecodedList out;
  JsonListDecoder decoder(
      options, [&](Object object) { out.items.push_back(std::move(object)); },
      [&](const MalformedObject& malformed) { out.malformed.push_back(malformed); });
  pieces(body, [&](std::string_view piece) { return decoder.feed(piece); });
  out.complete = decoder.finish();
  out.error = decoder.error();
  out.api_version = decoder.api_version();
  out.kind = decoder.kind();
  out.resource_version = decoder.resource_version();
  out.continue_token = decoder.continue_token();
  out.remaining_item_count = decoder.remaining_item_count();
  return out;
}

DecodedWatch decode_watch(std::string_view body, const StreamOptions& options,
                          const Pieces& pieces) {
  DecodedWatch out;
  JsonWatchDecoder decoder(
      options, [&](WatchEvent event) { out.events.push_back(std::move(event)); },
      [&](const MalformedObject& malformed) { out.malformed.push_back(malformed); });
  pieces(body, [&](std::string_view piece) { return decoder.feed(piece); });
  out.complete = decoder.finish();
  out.error = decoder.error();
  return out;
}

}  // namespace test
}  // namespace lookout::api
