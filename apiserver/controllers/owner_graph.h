// OwnerGraph: the objects' owner references.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::controllers {

/// The location of an object.
struct Reference {
  resources::ServedResourcePtr resource;
  std::string ns;
  std::string name;
  std::string uid;
};

/// The objects that have owners, and their owners' identities. Used by one thread.
class OwnerGraph {
 public:
  /// An object was added or changed.
  void set(const Reference& reference, const api::Object& object);
  void erase(std::string_view uid);

  /// The objects that name this one as their owner.
  std::vector<Reference> dependents(std::string_view owner_uid) const;
  /// The dependents that block its deletion (blockOwnerDeletion).
  bool has_blocking_dependents(std::string_view owner_uid) const;
  bool has_dependents(std::string_view owner_uid) const;
  /// The owners that an object names, by their uids.
  std::vector<std::string> owners(std::string_view uid) const;
  /// Every object that has an owner.
  std::vector<Reference> all() const;

 private:
  struct Node {
    Reference reference;
    /// By uid: whether the object blocks the owner's deletion.
    std::map<std::string, bool, std::less<>> owners;
  };

  std::map<std::string, Node, std::less<>> nodes_;
  std::map<std::string, std::set<std::string>, std::less<>> dependents_;
};

}  // namespace lookout::apiserver::controllers
