// C++ names for what a CRD may call things, which is nearly anything.
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

/// "cert-manager" -> "cert_manager", "default" -> "default_", and "time" -> "time_": a namespace that
/// Lookout and the C library leave free.
std::string namespace_name(std::string_view name);

/// Whether it is "acme" or "acme::apis": names with two colons between them.
bool is_namespace(std::string_view name);

/// A literal with that content.
std::string cpp_literal(std::string_view text);

/// Names that were given out in one scope.
class NameScope {
 public:
  NameScope() = default;
  explicit NameScope(std::set<std::string> taken) : taken_(std::move(taken)) {}

  /// `base`, or "base_2", "base_3" ... if that is taken. `also` says what else is declared along
  /// with a name; all of it must be free, and is taken then.
  using Also = std::function<std::set<std::string>(const std::string& name)>;
  std::string claim(const std::string& base, const Also& also = nullptr);

 private:
  std::set<std::string> taken_;
};

}  // namespace lookout::codegen
