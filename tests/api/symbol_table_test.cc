#include "lookout/api/detail/symbol_table.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/object.h"
#include "lookout/api/symbol.h"
#include "lookout/api/symbols.h"
#include "tests/api/recordings.h"
#include "tests/support/files.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;

std::set<std::string> schema_fields() {
  std::set<std::string> out;
  const auto facts = test::parse_json(
      lookout::test::read_file(lookout::test::testdata("../../api/schema/kubernetes-1.36.json")));
  for (const auto& [_, type] : facts["types"].GetObject()) {
    if (!type.HasMember("fields")) continue;
    for (const auto& field : type["fields"].GetArray()) out.emplace(field["name"].GetString());
  }
  return out;
}

/// The lists of api/schema/well_known.txt, by their headings.
std::map<std::string, std::set<std::string>> well_known_lists() {
  std::map<std::string, std::set<std::string>> out;
  std::string heading;
  for (const auto& line : lookout::test::lines(
           lookout::test::read_file(lookout::test::testdata("../../api/schema/well_known.txt")))) {
    if (line.empty() || line[0] == '#') continue;
    line[0] == '[' ? void(heading = line) : void(out[heading].insert(line));
  }
  return out;
}

/// The symbols among them.
std::set<std::string> well_known() {
  std::set<std::string> out;
  for (const auto& [heading, names] : well_known_lists()) {
    if (heading == "[member-orders]") continue;
    for (const auto& name : names)
      if (!name.starts_with("f:")) out.insert(name);
  }
  return out;
}

TEST(SymbolTableTest, EveryFieldOfTheSchemaHasASymbol) {
  const auto fields = schema_fields();
  ASSERT_GT(fields.size(), 800u);
  std::set<std::uint16_t> ids, ranks;
  for (const auto& field : fields) {
    const auto symbol = Symbol::find(field);
    ASSERT_TRUE(symbol) << field;
    EXPECT_EQ(symbol->text(), field);
    EXPECT_EQ(detail::managed_symbol_text(symbol->id), "f:" + field);
    EXPECT_NE(detail::symbol_rank(symbol->id), detail::kNoRank) << field;
    EXPECT_FALSE(detail::is_field_set_name(field)) << "FlatWriter counts on it: " << field;
    ids.insert(symbol->id);
    ranks.insert(detail::symbol_rank(symbol->id));
  }
  EXPECT_EQ(ids.size(), fields.size());
  EXPECT_EQ(ranks.size(), fields.size());
}

TEST(SymbolTableTest, EveryWellKnownStringHasASymbol) {
  const auto strings = well_known();
  ASSERT_GT(strings.size(), 200u);
  for (const auto& text : strings) {
    const auto symbol = Symbol::find(text);
    ASSERT_TRUE(symbol) << text;
    EXPECT_EQ(symbol->text(), text);
  }
}

TEST(SymbolTableTest, ConstantsNameTheirFields) {
  EXPECT_EQ(sym::kMetadata.text(), "metadata");
  EXPECT_EQ(sym::kResourceVersion.text(), "resourceVersion");
  EXPECT_EQ(sym::kCapitalPort.text(), "Port");
  EXPECT_EQ(sym::kPort.text(), "port");
  EXPECT_EQ(sym::kDollarRef.text(), "$ref");
  EXPECT_EQ(Symbol::find("metadata"), sym::kMetadata);
}

TEST(SymbolTableTest, FindsNothingElse) {
  std::set<std::string> known = schema_fields();
  known.merge(well_known());
  for (const auto text :
       {""sv, "\0"sv, "metadat"sv, "metadata\0"sv, "Metadata"sv, "f:metadata"sv, "xmetadata"sv}) {
    EXPECT_FALSE(Symbol::find(text)) << text;
  }
  // Strings similar to each symbol, and random ones.
  std::mt19937 random(1);
  const auto expect_unknown = [&](const std::string& text) {
    EXPECT_TRUE(known.contains(text) || !Symbol::find(text)) << text;
  };
  for (const auto& text : std::set(known)) {
    expect_unknown(text + "x");
    expect_unknown("x" + text);
    expect_unknown(text.substr(1));
    expect_unknown(text.substr(0, text.size() - 1));
    for (int i = 0; i < 5; ++i) {
      std::string changed = text;
      changed[random() % text.size()] ^= static_cast<char>(1 << random() % 7);
      expect_unknown(changed);
    }
  }
  for (int i = 0; i < 100000; ++i) {
    std::string text(random() % 60, '\0');
    for (char& c : text) c = static_cast<char>('!' + random() % 94);
    expect_unknown(text);
  }
  expect_unknown(std::string(100000, 'm'));
}

TEST(SymbolTableTest, KeyCodesRoundTrip) {
  for (const auto& field : schema_fields()) {
    const std::uint16_t id = detail::find_symbol(field);
    if (const std::uint8_t code = detail::symbol_short_code(id); code != detail::kNoShortCode) {
      EXPECT_LT(code, detail::kKeySymbol);
      EXPECT_EQ(detail::short_code_symbol(code), id);
    }
    const std::string encoded = detail::encode_whole_key(field);
    EXPECT_LE(encoded.size(), 2u);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(encoded.data());
    EXPECT_EQ(detail::read_key(bytes).text(), field);
    EXPECT_EQ(detail::skip_key(bytes), bytes + encoded.size());
  }
}

TEST(SymbolTableTest, StringCodesRoundTrip) {
  const auto common = well_known_lists()["[common-strings]"];
  ASSERT_EQ(common.size(), 48u);
  for (const auto& text : well_known()) {
    const std::string encoded = detail::encode_whole_string(text);
    EXPECT_EQ(encoded.size(), common.contains(text) ? 1u : 2u) << text;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(encoded.data());
    EXPECT_EQ(Value(bytes).kind(), Value::Kind::kString);
    EXPECT_EQ(Value(bytes).as_string(), text);
    EXPECT_EQ(detail::skip_value(bytes), bytes + encoded.size());
  }
}

TEST(SymbolTableTest, NamesInFieldSetsRoundTrip) {
  std::set<std::string> names = well_known();
  for (const auto& field : schema_fields()) names.insert("f:" + field);
  for (const auto& text : well_known()) names.insert("f:" + text);
  const auto common = well_known_lists()["[field-set-names]"];
  ASSERT_EQ(common.size(), 96u);
  for (const auto& name : names) {
    if (!detail::is_field_set_name(name)) continue;
    std::uint8_t bytes[100];
    const std::size_t size = detail::write_field_set_name(std::begin(bytes), name);
    EXPECT_EQ(size, common.contains(name) ? 1u : 2u) << name;
    const auto entry = detail::read_field_set_entry(std::begin(bytes));
    EXPECT_EQ(entry.name, name);
    EXPECT_EQ(entry.end, std::begin(bytes) + size);
    EXPECT_TRUE(Value(entry.value).is_object());
  }
  for (const auto& name : common) EXPECT_TRUE(detail::is_field_set_name(name)) << name;
}

// Otherwise each object would be sorted during decoding.
TEST(SymbolTableTest, MembersOfCommonObjectsHaveTheServersOrder) {
  const auto orders = well_known_lists()["[member-orders]"];
  ASSERT_GT(orders.size(), 30u);
  for (const auto& order : orders) {
    int last = -1;
    std::istringstream names(order);
    for (std::string name; names >> name;) {
      const int rank = detail::symbol_rank(detail::find_symbol(name));
      EXPECT_LT(last, rank) << name << " in: " << order;
      last = rank;
    }
  }
}

// A member search ends at the first greater short code.
TEST(SymbolTableTest, ShortCodesFollowTheOrderOfMembers) {
  std::map<std::uint8_t, std::uint16_t> ranks;
  for (const auto& field : schema_fields()) {
    const std::uint16_t id = detail::find_symbol(field);
    if (const std::uint8_t code = detail::symbol_short_code(id); code != detail::kNoShortCode)
      ranks.emplace(code, detail::symbol_rank(id));
  }
  ASSERT_GT(ranks.size(), 150u);
  for (auto at = ranks.begin(); std::next(at) != ranks.end(); ++at)
    EXPECT_LT(at->second, std::next(at)->second) << int{at->first};
}

TEST(SymbolTableTest, EncodedKeysAndStringsEqualTheWriters) {
  for (const std::string& text :
       {std::string(), std::string("metadata"), std::string("f:metadata"), std::string("f:"),
        std::string("own"), std::string("kubernetes.io/hostname"), std::string("Running"),
        std::string(30, 'k'), std::string(31, 'k'), std::string(63, 'k'), std::string(64, 'k'),
        std::string(200, 'k'), std::string(20000, 'k')}) {
    const Object object = Object::parse("{\"" + text + "\":\"" + text + "\"}");
    const std::string key = detail::encode_whole_key(text);
    const std::uint8_t* value = detail::find_member(object.body().data(), key);
    ASSERT_NE(value, nullptr) << text;
    EXPECT_EQ(Value(value).as_string(), text);
    const std::string encoded(reinterpret_cast<const char*>(value),
                              static_cast<std::size_t>(detail::skip_value(value) - value));
    EXPECT_EQ(encoded, detail::encode_whole_string(text));
    EXPECT_EQ(detail::find_member(object.body().data(), detail::encode_whole_key("absent")),
              nullptr);
  }
}

}  // namespace
}  // namespace lookout::api
