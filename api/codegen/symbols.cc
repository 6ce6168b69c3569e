// Lays out the symbol table: which strings are symbols, in what order the fields of an object are
// kept, which fields get the one-byte key codes, and the perfect hash that finds a string.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/codegen/generate.h"
#include "api/codegen/naming.h"
#include "api/symbol_hash.h"

namespace lookout::codegen {
namespace {

constexpr std::size_t kMaxSymbols = 3072;      // the limit of names in field sets
constexpr std::size_t kMaxCommonFields = 192;  // one-byte key codes 0x00-0xBF
constexpr std::size_t kMaxCommonStrings = 48;  // one-byte values 0x90-0xBF
constexpr std::size_t kMaxFieldSetNames = 96;  // one-byte names in field sets, each twice
constexpr int kNoRank = 0xFFFF;
constexpr int kNoCode = 0xFF;
constexpr std::string_view kFieldPrefix = "f:";

constexpr std::uint16_t kNoSymbolId = 0xFFFF;

struct PerfectHash {
  std::vector<std::uint32_t> displacements;
  std::vector<std::uint16_t> slots;
};

PerfectHash build_hash(const std::vector<std::string>& strings) {
  constexpr std::size_t kBuckets = 512;
  // Small enough for the L1 cache.
  const std::size_t slots = std::bit_ceil(strings.size() * 3 / 2);
  std::vector<std::vector<std::uint16_t>> buckets(kBuckets);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    buckets[api::detail::symbol_bucket(api::detail::symbol_hash(strings[i]), kBuckets)].push_back(
        static_cast<std::uint16_t>(i));
  }
  std::vector<std::size_t> order(kBuckets);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return buckets[a].size() > buckets[b].size(); });

  PerfectHash out{std::vector<std::uint32_t>(kBuckets, 0),
                  std::vector<std::uint16_t>(slots, kNoSymbolId)};
  for (const std::size_t bucket : order) {
    for (std::uint32_t d = 0;; ++d) {
      if (d > 65535)
        throw std::runtime_error(
            "no perfect hash found: change the constants in api/symbol_hash.h");
      std::set<std::size_t> used;
      const bool fits =
          std::all_of(buckets[bucket].begin(), buckets[bucket].end(), [&](std::uint16_t i) {
            const std::size_t slot =
                api::detail::symbol_slot(api::detail::symbol_hash(strings[i]), d, slots);
            return out.slots[slot] == kNoSymbolId && used.insert(slot).second;
          });
      if (!fits) continue;
      out.displacements[bucket] = d;
      for (const std::uint16_t i : buckets[bucket]) {
        out.slots[api::detail::symbol_slot(api::detail::symbol_hash(strings[i]), d, slots)] = i;
      }
      break;
    }
  }
  return out;
}

template <class Range>
std::string array_text(std::string_view declaration, const Range& values) {
  std::string out = fmt::format("{} = {{", declaration);
  std::size_t column = 0;
  for (const auto& value : values) {
    const std::string text = fmt::format("{},", value);
    if (column % 24 == 0) out += "\n   ";
    out += ' ' + text;
    ++column;
  }
  return out + "};\n\n";
}

}  // namespace

/// Orders field names so that, as far as possible, the fields of every type are in the order in which
/// the API server writes them: the order of the Go struct, which is that of the protobuf numbers.
/// Uses the greedy heuristic of Eades, Lin and Smyth for the minimum feedback arc set.
///
/// Always satisfies the member orders of `well_known`.
std::vector<std::string> field_order(const Facts& facts, const WellKnown& well_known) {
  std::map<std::string, std::size_t> index;
  for (const auto& [_, type] : facts.types) {
    for (const auto& field : type.fields) index.emplace(field.name, index.size());
  }
  std::vector<std::string> names(index.size());
  for (const auto& [name, i] : index) names[i] = name;

  const std::size_t n = names.size();
  std::vector<std::map<std::size_t, int>> before(n);  // before[a][b]: the weight for a before b
  std::vector<std::map<std::size_t, int>> after(n);
  const auto weight_of = [](const std::string& type) {
    const std::string last = type.substr(type.rfind('.') + 1);
    if (last == "ObjectMeta" || last == "ManagedFieldsEntry") return 100;
    if (type.starts_with("io.k8s.api.core.v1."))
      return last.starts_with("Pod") || last.starts_with("Container") ? 20 : 4;
    return 2;
  };
  for (const auto& [type_name, type] : facts.types) {
    std::vector<std::pair<int, std::size_t>> ordered;
    for (const auto& field : type.fields) {
      int number = field.number.value_or(1000);
      if (type.gvk && field.name == "kind") number = -2;
      if (type.gvk && field.name == "apiVersion") number = -1;
      ordered.emplace_back(number, index.at(field.name));
    }
    std::sort(ordered.begin(), ordered.end());
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      for (std::size_t j = i + 1; j < ordered.size(); ++j) {
        if (ordered[i].first == ordered[j].first) continue;
        before[ordered[i].second][ordered[j].second] += weight_of(type_name);
        after[ordered[j].second][ordered[i].second] += weight_of(type_name);
      }
    }
  }
  // Keep only the difference of the two directions.
  for (std::size_t a = 0; a < n; ++a) {
    for (auto& [b, w] : before[a]) {
      if (auto it = before[b].find(a); it != before[b].end()) {
        const int common = std::min(w, it->second);
        w -= common;
        it->second -= common;
        after[b][a] -= common;
        after[a][b] -= common;
      }
    }
  }
  // For each name, the names that must precede it, and those that must follow it.
  std::vector<std::set<std::size_t>> predecessors(n);
  std::vector<std::set<std::size_t>> successors(n);
  for (const std::string& line : well_known.member_orders) {
    std::istringstream in(line);
    std::optional<std::size_t> last;
    for (std::string name; in >> name;) {
      const auto found = index.find(name);
      if (found == index.end())
        throw std::runtime_error(
            fmt::format("well_known.txt: {}: no field of the schema has this name", name));
      if (last) {
        predecessors[found->second].insert(*last);
        successors[*last].insert(found->second);
      }
      last = found->second;
    }
  }
  std::vector<bool> placed(n, false);
  const auto all_placed = [&](const std::set<std::size_t>& some) {
    return std::ranges::all_of(some, [&](std::size_t i) { return placed[i]; });
  };
  std::vector<std::string> head;
  std::vector<std::string> tail;
  const auto sum = [&](const std::map<std::size_t, int>& edges) {
    int total = 0;
    for (const auto& [to, w] : edges) total += placed[to] ? 0 : w;
    return total;
  };
  for (std::size_t left = n; left > 0; --left) {
    // Append a sink to the end, a source to the start, else the name with the best balance to the
    // start.
    std::size_t best = n;
    int best_score = 0;
    bool to_tail = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (placed[i]) continue;
      const int out = sum(before[i]);
      const int in = sum(after[i]);
      const bool may_be_next = all_placed(predecessors[i]);
      if (in == 0 && may_be_next) {
        best = i;
        to_tail = false;
        break;
      }
      if (out == 0 && !to_tail && all_placed(successors[i])) {
        best = i;
        to_tail = true;
        continue;
      }
      if (!to_tail && may_be_next && (best == n || out - in > best_score)) {
        best = i;
        best_score = out - in;
      }
    }
    if (best == n) throw std::runtime_error("well_known.txt: member orders contradict each other");
    placed[best] = true;
    (to_tail ? tail : head).push_back(names[best]);
  }
  head.insert(head.end(), tail.rbegin(), tail.rend());
  return head;
}

std::vector<std::string> symbol_strings(const Facts& facts, const WellKnown& well_known) {
  std::set<std::string> all(well_known.strings.begin(), well_known.strings.end());
  all.insert(well_known.common_strings.begin(), well_known.common_strings.end());
  for (const auto& name : well_known.field_set_names)
    if (!name.starts_with(kFieldPrefix)) all.insert(name);
  for (const auto& [_, type] : facts.types) {
    for (const auto& field : type.fields) all.insert(field.name);
  }
  for (const auto& resource : facts.resources) {
    const auto& [group, version, kind] = resource.gvk;
    all.insert(kind);
    all.insert(group.empty() ? version : group + "/" + version);
  }
  all.erase("");
  return {all.begin(), all.end()};
}

Files generate_symbols(const Facts& facts, const WellKnown& well_known) {
  const std::vector<std::string> ordered_fields = field_order(facts, well_known);
  const std::set<std::string> fields(ordered_fields.begin(), ordered_fields.end());
  const std::vector<std::string> strings = symbol_strings(facts, well_known);
  if (strings.size() > kMaxSymbols)
    throw std::runtime_error(fmt::format("{} symbols, at most {}", strings.size(), kMaxSymbols));
  if (well_known.common_fields.size() > kMaxCommonFields)
    throw std::runtime_error("too many common fields");
  if (well_known.common_strings.size() > kMaxCommonStrings)
    throw std::runtime_error("too many common strings");
  if (well_known.field_set_names.size() > kMaxFieldSetNames)
    throw std::runtime_error("too many names of field sets");
  if (well_known.field_set_names.empty() || well_known.field_set_names.front() != ".")
    throw std::runtime_error("the first name of field sets must be \".\"");

  const auto id_of = [&](const std::string& s) {
    return static_cast<std::size_t>(std::lower_bound(strings.begin(), strings.end(), s) -
                                    strings.begin());
  };
  std::vector<int> rank(strings.size(), kNoRank);
  for (std::size_t i = 0; i < ordered_fields.size(); ++i)
    rank[id_of(ordered_fields[i])] = static_cast<int>(i);
  std::vector<int> short_code(strings.size(), kNoCode);
  std::vector<std::size_t> short_codes;
  for (const auto& name : well_known.common_fields) {
    if (!fields.contains(name))
      throw std::runtime_error(
          fmt::format("well_known.txt: {}: no field of the schema has this name", name));
  }
  // Codes are in member order, so a search can stop after a higher code.
  const std::set<std::string> common(well_known.common_fields.begin(),
                                     well_known.common_fields.end());
  for (const auto& name : ordered_fields) {
    if (!common.contains(name)) continue;
    short_code[id_of(name)] = static_cast<int>(short_codes.size());
    short_codes.push_back(id_of(name));
  }

  std::vector<int> string_code(strings.size(), kNoCode);
  std::vector<std::size_t> common_strings;
  for (const auto& text : well_known.common_strings) {
    string_code[id_of(text)] = static_cast<int>(common_strings.size());
    common_strings.push_back(id_of(text));
  }
  std::vector<int> set_code(2 * strings.size(), kNoCode);
  std::vector<std::size_t> set_names;
  for (const auto& name : well_known.field_set_names) {
    const bool is_field = name.starts_with(kFieldPrefix);
    const std::string text = is_field ? name.substr(kFieldPrefix.size()) : name;
    const std::size_t id = id_of(text);
    if (id == strings.size() || strings[id] != text)
      throw std::runtime_error(fmt::format("well_known.txt: {}: no symbol", name));
    const std::size_t number = 2 * id + (is_field ? 1 : 0);
    set_code[number] = static_cast<int>(set_names.size());
    set_names.push_back(number);
  }

  std::string header =
      "// Generated by lookout-gen from the schema facts. Do not edit.\n"
      "#pragma once\n\n#include \"lookout/api/symbol.h\"\n\n"
      "/// One constant for each field name that the Kubernetes schema knows.\n"
      "namespace lookout::api::sym {\n\n";
  for (const auto& name : fields) {
    header += fmt::format("inline constexpr FieldSymbol {}{{{{{}}}, {}}};  // {}\n",
                          constant_name(name), id_of(name), short_code[id_of(name)], name);
  }
  header += "\n}  // namespace lookout::api::sym\n";

  std::string text = "";
  std::vector<std::size_t> offsets;
  std::size_t offset = 0;
  for (const auto& s : strings) {
    text += fmt::format("    R\"(f:{})\"\n", s);
    offsets.push_back(offset);
    offset += s.size() + 2;
  }
  offsets.push_back(offset);
  std::size_t longest = 0;
  for (const auto& s : strings) longest = std::max(longest, s.size());
  const PerfectHash hash = build_hash(strings);

  std::string table = "// Generated by lookout-gen from the schema facts. Do not edit.\n\n";
  table += fmt::format("constexpr std::size_t kSymbolCount = {};\n", strings.size());
  table += fmt::format("constexpr std::size_t kMaxSymbolLength = {};\n", longest);
  table += fmt::format("constexpr std::size_t kSymbolBuckets = {};\n", hash.displacements.size());
  table += fmt::format("constexpr std::size_t kSymbolSlots = {};\n\n", hash.slots.size());
  table +=
      "// Every symbol behind \"f:\", so that the name of a managed field is a piece of the same "
      "text.\n";
  table += "constexpr char kSymbolText[] =\n" + text + "    ;\n\n";
  table += array_text("constexpr std::uint32_t kSymbolOffsets[kSymbolCount + 1]", offsets);
  table +=
      "// Where a field stands among the fields of its object; 0xFFFF for names that are not "
      "fields of the "
      "schema.\n";
  table += array_text("constexpr std::uint16_t kSymbolRanks[kSymbolCount]", rank);
  table += "// One-byte key code; 0xFF for none.\n";
  table += array_text("constexpr std::uint8_t kSymbolShortCodes[kSymbolCount]", short_code);
  table += array_text("constexpr std::uint16_t kShortCodeSymbols[]", short_codes);
  table += "// One-byte code as the value of a string; 0xFF for none.\n";
  table += array_text("constexpr std::uint8_t kSymbolStringCodes[kSymbolCount]", string_code);
  table += array_text("constexpr std::uint16_t kStringCodeSymbols[]", common_strings);
  table += "// Names in field sets: a symbol twice, plus 1 if \"f:\" stands before it.\n";
  table += array_text("constexpr std::uint8_t kFieldSetCodes[2 * kSymbolCount]", set_code);
  table += array_text("constexpr std::uint16_t kFieldSetNames[]", set_names);
  table += array_text("constexpr std::uint16_t kSymbolDisplacements[kSymbolBuckets]",
                      hash.displacements);
  // All data of a lookup is in one place.
  std::vector<std::string> slots;
  slots.reserve(hash.slots.size());
  for (const std::uint16_t id : hash.slots) {
    slots.push_back(id == kNoSymbolId ? fmt::format("{{{},0,0,0}}", id)
                                      : fmt::format("{{{},{},{},{}}}", id, strings[id].size(),
                                                    api::detail::symbol_tag(
                                                        api::detail::symbol_hash(strings[id])),
                                                    offsets[id] + 2));
  }
  table += array_text("constexpr SymbolSlot kSymbolSlotTable[kSymbolSlots]", slots);
  return {{"include/lookout/api/symbols.h", header}, {"api/symbol_table.inc", table}};
}

}  // namespace lookout::codegen
