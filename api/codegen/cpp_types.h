// The C++ types that stand for the schema's, for views and drafts alike.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/codegen/facts.h"
#include "api/codegen/generate.h"
#include "api/codegen/naming.h"

namespace lookout::codegen {

/// The type of that full name. Throws std::runtime_error if the schema does not have it.
const Type& find_type(const Facts& facts, const std::string& name);

/// The return type of a scalar's accessor, such as std::string_view for "string". Throws
/// std::runtime_error for an unknown scalar.
std::string scalar_type(const std::string& scalar, bool optional);

/// Whether a value of a C++ type that an accessor gives refers to what it was read from.
bool refers(const std::string& type);
/// The twin for a temporary object of such an accessor: text is copied, the others are deleted.
std::string of_a_temporary(const std::string& type, const std::string& name);

/// "PodSpec" for a structure; "PodView" for a type that is an object of its own but is nested
/// inside another one here.
std::string view_name(const Type& type);

bool is_quantity(const Type& type);

/// Whether somebody can write such an object; lists are only read.
bool has_draft(const Type& type);

/// Whether objects of the type live in no namespace; false if the schema does not say.
bool is_cluster_scoped(const Facts& facts, const Type& type);

/// The structures by the header that declares them: TypeName::header or TypeName::draft_header.
using TypesByHeader = std::map<std::string, std::vector<const Type*>>;
TypesByHeader types_by_header(const Facts& facts, std::string (TypeName::*header)() const);

/// The full names of the types that fields of other types refer to.
std::set<std::string> nested_types(const Facts& facts);

/// The headers that `write` makes, and the header `umbrella` that includes all of them. `what`
/// completes the umbrella's comment.
using WriteHeader =
    std::function<std::string(const std::string& header, const std::vector<const Type*>& types)>;
Files header_files(const TypesByHeader& headers, const WriteHeader& write,
                   const std::string& umbrella, std::string_view what);

}  // namespace lookout::codegen
