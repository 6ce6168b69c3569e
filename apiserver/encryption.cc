#include "lookout/apiserver/encryption.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/resources/storage_place.h"
#include "lookout/api/resource.h"
#include "lookout/base/base64.h"
#include "lookout/base/file_reader.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::apiserver {
namespace {

using storage::PrefixedTransformer;
using storage::TransformerPtr;

struct GroupResource {
  std::string group;
  std::string resource;
};

/// An entry of a configuration. The first one that matches a resource applies.
struct Entry {
  std::vector<std::string> resources;
  TransformerPtr transformer;

  bool covers(const GroupResource& wanted) const {
    return std::any_of(resources.begin(), resources.end(), [&](const std::string& pattern) {
      const std::size_t dot = pattern.find('.');
      const std::string name = pattern.substr(0, dot);
      const std::string group = dot == std::string::npos ? std::string() : pattern.substr(dot + 1);
      if (group != "*" && group != wanted.group) return false;
      return name == "*" || name == wanted.resource;
    });
  }
};

GroupResource resource_at(std::string_view place) {
  for (const api::ResourceInfo& info : api::builtin_resources()) {
    if (resources::place_of(info) == place)
      return {std::string(info.group), std::string(info.plural)};
  }
  const std::size_t slash = place.find('/');
  if (slash == std::string_view::npos) return {"", std::string(place)};
  return {std::string(place.substr(0, slash)), std::string(place.substr(slash + 1))};
}

[[noreturn]] void fail(const YamlNode& where, std::string_view what) {
  throw Error(fmt::format("the encryption configuration, line {}: {}", where.line, what));
}

const YamlNode& member(const YamlNode& node, std::string_view name, YamlNode::Kind kind) {
  const YamlNode* found = node.find(name);
  if (found == nullptr) fail(node, fmt::format("{} is missing", name));
  if (found->kind != kind) fail(*found, fmt::format("{} is of the wrong kind", name));
  return *found;
}

void add_keys(const YamlNode& provider, std::vector<PrefixedTransformer>& out) {
  const YamlNode& keys = member(provider, "keys", YamlNode::Kind::kSequence);
  if (keys.items.empty()) fail(keys, "aesgcm has no keys");
  for (const YamlNode* key : keys.items) {
    if (key->kind != YamlNode::Kind::kMap) fail(*key, "a key is of the wrong kind");
    const std::string& name = member(*key, "name", YamlNode::Kind::kScalar).text;
    const YamlNode& secret = member(*key, "secret", YamlNode::Kind::kScalar);
    if (name.empty() || name.find(':') != std::string::npos)
      fail(*key, "the name of a key must not be empty or contain a colon");
    const auto bytes = decode_base64(secret.text);
    if (!bytes) fail(secret, "a secret is not base64");
    if (bytes->size() != 16 && bytes->size() != 24 && bytes->size() != 32)
      fail(secret, "a secret for aesgcm must have 16, 24 or 32 bytes");
    out.push_back(
        {fmt::format("k8s:enc:aesgcm:v1:{}:", name), storage::aes_gcm_transformer(*bytes)});
  }
}

TransformerPtr transformer_of(const YamlNode& providers) {
  std::vector<PrefixedTransformer> all;
  for (const YamlNode* provider : providers.items) {
    if (provider->kind != YamlNode::Kind::kMap || provider->fields.size() != 1)
      fail(*provider, "a provider must have exactly one member, its name");
    const auto& [name, settings] = provider->fields.front();
    if (name == "identity") {
      all.push_back({"", storage::identity_transformer()});
    } else if (name == "aesgcm") {
      if (settings->kind != YamlNode::Kind::kMap) fail(*settings, "aesgcm has no keys");
      add_keys(*settings, all);
    } else {
      fail(*provider, "only the providers aesgcm and identity are supported");
    }
  }
  if (all.empty()) fail(providers, "no provider is given");
  return storage::prefix_transformer(std::move(all));
}

}  // namespace

Encryption read_encryption_config(std::string_view text) {
  std::vector<Entry> entries;
  try {
    const YamlTree tree(text);
    const YamlNode& root = tree.root();
    if (root.kind != YamlNode::Kind::kMap ||
        member(root, "kind", YamlNode::Kind::kScalar).text != "EncryptionConfiguration")
      fail(root, "it is not an EncryptionConfiguration");
    for (const YamlNode* one : member(root, "resources", YamlNode::Kind::kSequence).items) {
      if (one->kind != YamlNode::Kind::kMap) fail(*one, "an entry is of the wrong kind");
      Entry& entry = entries.emplace_back();
      for (const YamlNode* name : member(*one, "resources", YamlNode::Kind::kSequence).items)
        entry.resources.push_back(name->text);
      entry.transformer = transformer_of(member(*one, "providers", YamlNode::Kind::kSequence));
    }
  } catch (const YamlError& e) {
    throw Error(fmt::format("the encryption configuration, line {}: {}", e.line(), e.what()));
  }
  return [entries = std::move(entries)](std::string_view place) -> TransformerPtr {
    const GroupResource resource = resource_at(place);
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& e) { return e.covers(resource); });
    return entry == entries.end() ? nullptr : entry->transformer;
  };
}

Encryption load_encryption_config(const std::string& file) {
  const auto content = read_small_file(file, FileKind::kOrPipe);
  if (!content) throw Error(fmt::format("cannot read {}: {}", file, content.error));
  return read_encryption_config(content.text);
}

}  // namespace lookout::apiserver
