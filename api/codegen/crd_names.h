// C++ names for the names in CRDs, which may have almost any characters.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace lookout::codegen {

/// "fooBar" -> "FooBar", "$ref" -> "DollarRef", "x-y" -> "XY"; "Field" if nothing is left.
std::string pascal_name(std::string_view name);

/// "fooBar" -> "foo_bar", "2fa" -> "field_2fa", "class" -> "class_"; "field" if nothing is left.
std::string member_name(std::string_view json_name);

/// "Always" -> "kAlways", "5m" -> "k5m", "*" -> "kAsterisk", "" -> "kEmpty", -1 -> "kMinus1".
std::string enumerator_name(std::string_view value);
std::string enumerator_name(std::int64_t value);

/// "cert-manager" -> "cert_manager", "default" -> "default_", "time" -> "time_": a namespace that
/// does not conflict with Lookout and the C library.
std::string namespace_name(std::string_view name);

/// Whether it is a namespace such as "acme" or "acme::apis".
bool is_namespace(std::string_view name);

/// A string literal with this content.
std::string cpp_literal(std::string_view text);

/// The names used in a scope.
class NameScope {
 public:
  NameScope() = default;
  explicit NameScope(std::set<std::string> taken) : taken_(std::move(taken)) {}

  /// Returns and claims `base`, or "base_2", "base_3" ... if it is taken. `also` returns the other
  /// names that are declared with a name; they must be free, too, and are claimed as well.
  using Also = std::function<std::set<std::string>(const std::string& name)>;
  std::string claim(const std::string& base, const Also& also = nullptr);

 private:
  std::set<std::string> taken_;
};

}  // namespace lookout::codegen
