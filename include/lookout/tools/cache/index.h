// Indexes: finding objects by their content.
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

/// The text of a value in an index: text as it is, numbers in decimal.
std::string_view index_text(const std::convertible_to<std::string_view> auto& value) {
  return value;
}
std::string index_text(std::integral auto value) { return std::to_string(value); }

/// Receives the index values of an object: none, one or several. Keeps its memory between objects.
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

/// Computes the index values of an object. It must be a pure function: it is called when a version
/// of the object arrives and again when it is replaced, without any lock held. If it throws, the
/// object is not found through this index, and the store counts the failure
/// (Indexer::index_failures()) and logs the first ones. If the second call returns different values,
/// the store must search all indexes.
using IndexFunc = std::function<void(const api::Object& object, IndexValues& values)>;

/// Index functions by name.
using Indexers = std::map<std::string, IndexFunc, std::less<>>;

/// The index by namespace, which an informer's store always has.
inline constexpr std::string_view kNamespaceIndex = "namespace";
void index_by_namespace(const api::Object& object, IndexValues& values);

/// An index by the values of one label, under a name that listers know: they then find the objects
/// for "app=web" or "app=web,tier!=db" without checking others.
///
///     informer.add_indexers({cache::index_by_label("app")});
Indexers::value_type index_by_label(std::string_view label);
/// "label:app"
std::string label_index_name(std::string_view label);

}  // namespace lookout::cache
