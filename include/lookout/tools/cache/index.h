// Indexes: finding objects by what is in them.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

namespace lookout::cache {

/// The type of an index value: text, or a whole number.
template <class V>
concept IndexKey = std::convertible_to<const V&, std::string_view> || std::integral<V>;

/// The value as indexes know it: text as it is, numbers in decimal.
std::string_view index_text(const std::convertible_to<std::string_view> auto& value) {
  return value;
}
std::string index_text(std::integral auto value) { return std::to_string(value); }

/// Takes the values under which an index function files an object: none, one or several. Keeps its
/// memory between objects.
class IndexValues {
 public:
  void add(std::string_view value) {
    if (size_ == values_.size()) values_.emplace_back();
    values_[size_++].assign(value);
  }
  void add(std::integral auto value) { add(std::to_string(value)); }
  void clear() { size_ = 0; }
  std::span<const std::string> values() const LOOKOUT_LIFETIME_BOUND {
    return {values_.data(), size_};
  }

 private:
  std::vector<std::string> values_;
  std::size_t size_ = 0;
};

/// Says under which values an object is found. Should be a pure function of the object: it is
/// called when a version of the object comes and again when it goes, without any lock held. If it
/// throws, the object is not found through this index, and the store counts the failure
/// (Indexer::index_failures()). One that answers differently the second time costs a search of all
/// indexes.
using IndexFunc = std::function<void(const api::Object& object, IndexValues& values)>;

/// Index functions by name.
using Indexers = std::map<std::string, IndexFunc, std::less<>>;

/// The index by namespace, which stores of informers have.
inline constexpr std::string_view kNamespaceIndex = "namespace";
void index_by_namespace(const api::Object& object, IndexValues& values);

/// An index by the values of one label, with the name that listers know: once a store has it, they
/// find what "app=web" or "app=web,tier!=db" selects without looking at anything else.
///
///     informer.add_indexers({cache::index_by_label("app")});
Indexers::value_type index_by_label(std::string_view label);
/// "label:app"
std::string label_index_name(std::string_view label);

}  // namespace lookout::cache
