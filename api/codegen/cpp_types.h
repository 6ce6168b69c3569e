// The C++ types of the schema's types, for views and drafts.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/codegen/facts.h"
#include "api/codegen/generate.h"
#include "api/codegen/naming.h"

namespace lookout::codegen {

/// The type with this full name. Throws std::runtime_error if the schema does not have it.
const Type& find_type(const Facts& facts, const std::string& name);

/// The return type of a scalar's accessor, such as std::string_view for "string". Throws
/// std::runtime_error for an unknown scalar.
std::string scalar_type(const std::string& scalar, bool optional);

/// Whether a C++ type that an accessor returns refers to the object.
bool refers(const std::string& type);
/// The overload of such an accessor for temporaries: text is copied, other types are deleted.
std::string of_a_temporary(const std::string& type, const std::string& name);

bool is_arithmetic(std::string_view type);

/// The type as the result of an accessor: const, so that `pod.spec().node_name() = "x"`, which would
/// change nothing, does not compile. (Arithmetic results cannot be assigned to anyway.)
std::string not_assignable(const std::string& type);

/// "PodSpec" for a structure; "PodView" for an object type that is nested in another type.
std::string view_name(const Type& type);

bool is_quantity(const Type& type);

/// Whether the type has a draft; lists are read-only.
bool has_draft(const Type& type);

/// Whether objects of the type are cluster-scoped; false if the schema does not say.
bool is_cluster_scoped(const Facts& facts, const Type& type);

/// Writes one header for each group and version of the schema: of views or of drafts.
class HeaderWriter {
 public:
  /// The headers, and the header `umbrella` that includes all of them. `what` completes the umbrella's
  /// comment.
  Files write(const std::string& umbrella, std::string_view what);

 protected:
  /// `header` returns the header of a structure: TypeName::header or TypeName::draft_header.
  HeaderWriter(const Facts& facts, std::string (TypeName::*header)() const);
  ~HeaderWriter() = default;

  /// The current header, which declares these structures.
  virtual std::string write_header(const std::vector<const Type*>& types) = 0;
  /// The end of the current header: the includes, and the namespace with its content.
  std::string end_of_header(const TypeName& name, const std::string& content) const;

  const Facts& facts_;
  /// An object type that is also nested in others has a part or view beside its own class.
  const std::set<std::string> nested_;
  std::string current_header_;
  std::set<std::string> includes_;  // of the current header

 private:
  const std::map<std::string, std::vector<const Type*>> headers_;
};

}  // namespace lookout::codegen
