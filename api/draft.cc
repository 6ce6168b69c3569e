#include "lookout/api/draft.h"

#include <fmt/format.h>

#include <cmath>

#include "api/draft_tree.h"
#include "lookout/api/detail/flat_writer.h"
#include "lookout/base/base64.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::api {
namespace {

constexpr std::string_view kScalar = "v";

/// Encodes a scalar and makes it the node's content.
template <class Write>
void set_scalar(detail::DraftNode& node, Write write) {
  detail::FlatWriter& writer = detail::FlatWriter::of_this_thread();
  writer.begin_object();
  writer.key(kScalar);
  write(writer);
  writer.end_object();
  Object holder = writer.finish();
  const Value value = holder[kScalar];
  node.tree->write(node, std::move(holder), value);
}

}  // namespace

DraftPart::operator bool() const {
  return node_->exists() &&
         !(node_->kind == detail::DraftNode::Kind::kSource && node_->source.is_null());
}

DraftPart DraftPart::operator[](std::string_view name) const {
  return DraftPart(node_->tree->member(*node_, name));
}

DraftPart DraftPart::operator[](std::size_t index) const {
  detail::DraftNode* element = node_->tree->element(*node_, index);
  if (element == nullptr) {
    throw InvalidArgument(
        fmt::format("element {} of a list with {}", index, node_->tree->size(*node_)));
  }
  return DraftPart(*element);
}

DraftPart DraftPart::append() const { return DraftPart(node_->tree->append(*node_)); }

DraftPart DraftPart::new_element() const { return DraftPart(node_->tree->new_element(*node_)); }

void DraftPart::add_element(const DraftPart& element) const {
  node_->tree->append(*node_, *element.node_);
}

void DraftPart::erase(std::size_t index) const { node_->tree->erase(*node_, index); }

std::size_t DraftPart::size() const { return node_->tree->size(*node_); }

std::vector<std::string> DraftPart::names() const {
  const auto names = node_->tree->names(*node_);
  return {names.begin(), names.end()};
}

Value DraftPart::value() const { return node_->tree->value(*node_); }

Value DraftPart::read(std::string_view member) const { return node_->tree->read(*node_, member); }

void DraftPart::set(std::string_view text) const {
  if (const std::size_t at = find_invalid_utf8(text); at != std::string_view::npos)
    throw InvalidArgument(fmt::format("the text is not UTF-8, at byte {}", at));
  set_scalar(*node_, [&](detail::FlatWriter& writer) { writer.string(text); });
}

void DraftPart::zero_is_absent() const { node_->zero_is_absent = true; }

void DraftPart::set_bool(bool value) const {
  set_scalar(*node_, [&](detail::FlatWriter& writer) { writer.boolean(value); });
}

void DraftPart::set_int(std::int64_t value) const {
  set_scalar(*node_, [&](detail::FlatWriter& writer) { writer.integer(value); });
}

void DraftPart::set_uint(std::uint64_t value) const {
  set_scalar(*node_, [&](detail::FlatWriter& writer) { writer.uinteger(value); });
}

void DraftPart::set(double value) const {
  if (!std::isfinite(value)) throw InvalidArgument("the number is not finite");
  set_scalar(*node_, [&](detail::FlatWriter& writer) { writer.real(value); });
}

void DraftPart::set(Value value) const {
  if (!value.exists()) return remove();
  set_scalar(*node_, [&](detail::FlatWriter& writer) { writer.value(value); });
}

void DraftPart::set_empty_object() const {
  set_scalar(*node_, [](detail::FlatWriter& writer) { writer.empty_object(); });
}

void DraftPart::set_empty_list() const {
  set_scalar(*node_, [](detail::FlatWriter& writer) {
    writer.begin_array();
    writer.end_array();
  });
}

void DraftPart::remove() const { node_->tree->remove(*node_); }

void detail::write_bytes(const DraftPart& part, std::string_view bytes) {
  part.set(std::string_view(encode_base64(bytes)));
}

ObjectDraft::ObjectDraft(std::unique_ptr<detail::DraftTree> tree)
    : DraftPart(tree->root()), tree_(std::move(tree)) {}

ObjectDraft::ObjectDraft(Object original)
    : ObjectDraft(std::make_unique<detail::DraftTree>(std::move(original))) {}

ObjectDraft::ObjectDraft(ObjectDraft&&) noexcept = default;
ObjectDraft& ObjectDraft::operator=(ObjectDraft&&) noexcept = default;
ObjectDraft::~ObjectDraft() = default;

namespace {

detail::DraftTree& held(const std::unique_ptr<detail::DraftTree>& tree) {
  if (!tree) throw InvalidArgument("this draft has been moved: use the one that it was moved to");
  return *tree;
}

}  // namespace

const Object& ObjectDraft::original() const& { return held(tree_).base(); }
bool ObjectDraft::changed() const { return held(tree_).changed(); }
Object ObjectDraft::build() const { return held(tree_).build(); }
std::string ObjectDraft::diff() const { return held(tree_).diff(); }
std::string ObjectDraft::diff(std::string_view member) const { return held(tree_).diff(member); }

std::string ObjectDraft::diff_except(std::string_view member) const {
  return held(tree_).diff_except(member);
}

std::string ObjectDraft::key() const {
  const std::string_view ns = identity("namespace");
  const std::string_view name = identity("name");
  std::string out(ns);
  if (!ns.empty()) out += '/';
  return out += name;
}

std::string_view ObjectDraft::identity(std::string_view field) const {
  held(tree_);
  return DraftPart::operator[]("metadata")[field].value().as_string();
}

void ObjectDraft::identify(std::string_view api_version, std::string_view kind,
                           std::string_view name, std::string_view ns) const {
  (*this)["apiVersion"].set(api_version);
  (*this)["kind"].set(kind);
  const DraftPart metadata = (*this)["metadata"];
  if (!name.empty()) metadata["name"].set(name);
  if (!ns.empty()) metadata["namespace"].set(ns);
}

}  // namespace lookout::api
