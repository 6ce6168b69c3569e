// Writing the flat form as JSON text.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "lookout/api/value.h"

namespace lookout::api::detail {

/// Appends compact JSON. An absent value gives "null".
void write_json(Value value, std::string& out);

/// Appends compact JSON of an object without the members of these names.
void write_json_without(std::initializer_list<std::string_view> names, Value object,
                        std::string& out);

/// Appends the text, quoted and escaped.
void write_json_string(std::string_view text, std::string& out);

/// Appends JSON with one member or element a line.
void write_pretty_json(Value value, unsigned indent, std::string& out);

}  // namespace lookout::api::detail
