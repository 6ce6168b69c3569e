#include "apiserver/auth/service_account_tokens.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <array>
#include <cstdio>
#include <utility>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "lookout/api/error.h"
#include "lookout/base/base64.h"
#include "lookout/base/detail/free_with.h"

namespace lookout::apiserver::auth {
namespace {

using json::Value;

/// The size in bytes of each of the two numbers of a P-256 signature.
constexpr int kHalf = 32;
/// The tolerated clock difference in seconds between servers with the same key, as in go-jose.
constexpr std::int64_t kLeeway = 60;
/// The number of verified tokens that are cached.
constexpr std::size_t kKnown = 1024;

using lookout::detail::FreeWith;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, FreeWith<ECDSA_SIG_free>>;

std::string encode(std::string_view bytes) {
  std::string out = encode_base64(bytes);
  while (out.ends_with('=')) out.pop_back();
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return out;
}

std::optional<std::string> decode(std::string_view text) {
  std::string padded(text);
  for (char& c : padded) {
    if (c == '+' || c == '/' || c == '\n' || c == '\r') return std::nullopt;
    c = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  while (padded.size() % 4 != 0) padded += '=';
  return decode_base64(padded);
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string digest_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes_of(text), text.size(), digest.data());
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Error cannot(std::string_view what) { return Error(fmt::format("OpenSSL cannot {}", what)); }

/// Converts a signature from OpenSSL's encoding (DER) to that of JSON Web Signatures: r and s, 32
/// bytes each.
std::string flat(std::string_view der) {
  const unsigned char* begin = bytes_of(der);
  const EcSignature signature(d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(der.size())));
  if (signature == nullptr) throw cannot("read its own signature");
  std::array<unsigned char, 2 * kHalf> out{};
  if (BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out.data(), kHalf) != kHalf ||
      BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out.data() + kHalf, kHalf) != kHalf)
    throw cannot("write a signature");
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

/// The reverse; empty if `flat` does not have 64 bytes.
std::string der(std::string_view flat) {
  if (flat.size() != 2 * kHalf) return {};
  const EcSignature signature(ECDSA_SIG_new());
  BIGNUM* r = BN_bin2bn(bytes_of(flat), kHalf, nullptr);
  BIGNUM* s = BN_bin2bn(bytes_of(flat) + kHalf, kHalf, nullptr);
  if (signature == nullptr || ECDSA_SIG_set0(signature.get(), r, s) != 1) return {};
  unsigned char* out = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &out);
  if (size <= 0) return {};
  std::string text(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
  OPENSSL_free(out);
  return text;
}

EVP_PKEY* read_key(const std::string& file) {
  // Otherwise OpenSSL prompts for the password of an encrypted key on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const std::unique_ptr<std::FILE, FreeWith<std::fclose>> in(std::fopen(file.c_str(), "re"));
  if (in == nullptr) throw Error(fmt::format("cannot read the service account key {}", file));
  EVP_PKEY* key = PEM_read_PrivateKey(in.get(), nullptr, no_password, nullptr);
  if (key == nullptr)
    throw Error(fmt::format("{}: expected a private key in PEM, without a password", file));
  return key;
}

std::string identify(EVP_PKEY* key) {
  unsigned char* out = nullptr;
  const int size = i2d_PUBKEY(key, &out);
  if (size <= 0) throw cannot("write a public key");
  const std::string text(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
  OPENSSL_free(out);
  return encode(digest_of(text));
}

/// A number of a public key in base64url, with `size` bytes; 0: the minimum.
std::string number_of(const EVP_PKEY* key, const char* name, int size) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) throw cannot("read a public key");
  const std::unique_ptr<BIGNUM, FreeWith<BN_free>> owned(number);
  std::string bytes(static_cast<std::size_t>(size == 0 ? BN_num_bytes(number) : size), '\0');
  if (BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
                   static_cast<int>(bytes.size())) < 0)
    throw cannot("read a public key");
  return encode(bytes);
}

void set_reference(Value& parent, std::string_view member, const BoundObject& object,
                   Allocator& allocator) {
  if (object.name.empty()) return;
  Value& reference = json::child(parent, member, allocator);
  json::set(reference, "name", object.name, allocator);
  json::set(reference, "uid", object.uid, allocator);
}

const char* member_of(const std::string& kind) {
  return kind == "Pod" ? "pod" : kind == "Secret" ? "secret" : "node";
}

std::string body_of(const TokenClaims& claims, const std::string& issuer) {
  Document document(rapidjson::kObjectType);
  auto& allocator = document.GetAllocator();
  Value audiences(rapidjson::kArrayType);
  for (const std::string& audience : claims.audiences)
    audiences.PushBack(json::copy_text(audience, allocator), allocator);
  json::set(document, "aud", std::move(audiences), allocator);
  json::set(document, "exp", Value(claims.expires), allocator);
  json::set(document, "iat", Value(claims.issued), allocator);
  json::set(document, "iss", issuer, allocator);
  json::set(document, "jti", claims.id, allocator);
  Value& kubernetes = json::child(document, "kubernetes.io", allocator);
  json::set(kubernetes, "namespace", claims.ns, allocator);
  set_reference(kubernetes, "node", claims.node, allocator);
  set_reference(kubernetes, member_of(claims.bound.kind), claims.bound, allocator);
  set_reference(kubernetes, "serviceaccount", {{}, claims.account, claims.account_uid}, allocator);
  if (claims.warn_after != 0)
    json::set(kubernetes, "warnafter", Value(claims.warn_after), allocator);
  json::set(document, "nbf", Value(claims.issued), allocator);
  json::set(document, "sub", name_of_account(claims.ns, claims.account), allocator);
  return json::to_json(document);
}

BoundObject reference(const Value& parent, const char* member, std::string kind) {
  const Value* found = json::find(parent, member);
  if (found == nullptr) return {};
  return {std::move(kind), std::string(json::text(*found, "name")),
          std::string(json::text(*found, "uid"))};
}

std::optional<TokenClaims> claims_of(const std::string& body, const std::string& issuer) {
  Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  if (document.HasParseError() || json::text(document, "iss") != issuer) return std::nullopt;
  const Value* kubernetes = json::find(document, "kubernetes.io");
  if (kubernetes == nullptr) return std::nullopt;
  TokenClaims claims;
  claims.ns = json::text(*kubernetes, "namespace");
  BoundObject account = reference(*kubernetes, "serviceaccount", {});
  claims.account = std::move(account.name);
  claims.account_uid = std::move(account.uid);
  claims.node = reference(*kubernetes, "node", "Node");
  claims.bound = reference(*kubernetes, "pod", "Pod");
  if (claims.bound.name.empty()) claims.bound = reference(*kubernetes, "secret", "Secret");
  if (claims.bound.name.empty()) claims.bound = std::exchange(claims.node, {});
  if (const Value* audiences = json::find(document, "aud"); audiences && audiences->IsArray()) {
    for (const Value& audience : audiences->GetArray()) {
      if (audience.IsString()) claims.audiences.emplace_back(json::text_of(audience));
    }
  }
  claims.id = json::text(document, "jti");
  claims.issued = json::integer(document, "nbf", 0);
  claims.expires = json::integer(document, "exp", 0);
  if (json::text(document, "sub") != name_of_account(claims.ns, claims.account))
    return std::nullopt;
  return claims;
}

}  // namespace

std::vector<std::string> groups_of_account(const std::string& ns) {
  return {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns)};
}

std::string name_of_account(const std::string& ns, const std::string& name) {
  return fmt::format("system:serviceaccount:{}:{}", ns, name);
}

User TokenClaims::user() const {
  User out{name_of_account(ns, account), account_uid, groups_of_account(ns)};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) out.extra[std::string("authentication.kubernetes.io/") + key] = {value};
  };
  if (!id.empty()) add("credential-id", "JTI=" + id);
  const BoundObject& host = bound.kind == "Node" ? bound : node;
  add("node-name", host.name);
  add("node-uid", host.uid);
  if (bound.kind == "Pod") {
    add("pod-name", bound.name);
    add("pod-uid", bound.uid);
  }
  return out;
}

void TokenSigner::FreeKey::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

TokenSigner::TokenSigner(const std::string& key_file, std::string issuer)
    : issuer_(std::move(issuer)) {
  if (key_file.empty()) return;
  std::call_once(has_key_, [&] { use(read_key(key_file), key_file); });
}

void TokenSigner::use(EVP_PKEY* pair, const std::string& source) const {
  key_.pair.reset(pair);
  if (pair == nullptr) throw cannot("generate a key");
  key_.is_rsa = EVP_PKEY_is_a(pair, "RSA") == 1;
  constexpr int kBits = 256;
  const bool is_ec = EVP_PKEY_is_a(pair, "EC") == 1 && EVP_PKEY_bits(pair) == kBits;
  if (!key_.is_rsa && !is_ec)
    throw Error(fmt::format("{}: expected a key for RSA, or for EC on P-256", source));
  key_.id = identify(pair);
}

const TokenSigner::Key& TokenSigner::key() const {
  std::call_once(has_key_, [this] { use(EVP_EC_gen("P-256"), "a new key"); });
  return key_;
}

TokenSigner::~TokenSigner() = default;

std::string TokenSigner::public_key() const {
  const EVP_PKEY* pair = key().pair.get();
  if (key().is_rsa) {
    return fmt::format(R"({{"use":"sig","kty":"RSA","kid":"{}","alg":"{}","n":"{}","e":"{}"}})",
                       key().id, algorithm(), number_of(pair, OSSL_PKEY_PARAM_RSA_N, 0),
                       number_of(pair, OSSL_PKEY_PARAM_RSA_E, 0));
  }
  return fmt::format(
      R"({{"use":"sig","kty":"EC","kid":"{}","crv":"P-256","alg":"{}","x":"{}","y":"{}"}})",
      key().id, algorithm(), number_of(pair, OSSL_PKEY_PARAM_EC_PUB_X, kHalf),
      number_of(pair, OSSL_PKEY_PARAM_EC_PUB_Y, kHalf));
}

std::string TokenSigner::signature_of(std::string_view text) const {
  const DigestContext context(EVP_MD_CTX_new());
  std::size_t size = 0;
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key().pair.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, bytes_of(text), text.size()) != 1)
    throw cannot("sign");
  std::string out(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                     bytes_of(text), text.size()) != 1)
    throw cannot("sign");
  out.resize(size);
  return key().is_rsa ? out : flat(out);
}

bool TokenSigner::is_signature(std::string_view signature, std::string_view text) const {
  const std::string bytes = key().is_rsa ? std::string(signature) : der(signature);
  const DigestContext context(EVP_MD_CTX_new());
  return context != nullptr && !bytes.empty() &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key().pair.get()) ==
             1 &&
         EVP_DigestVerify(context.get(), bytes_of(bytes), bytes.size(), bytes_of(text),
                          text.size()) == 1;
}

std::string TokenSigner::sign(const TokenClaims& claims) const {
  const std::string header = fmt::format(R"({{"alg":"{}","kid":"{}"}})", algorithm(), key().id);
  std::string text = encode(header) + "." + encode(body_of(claims, issuer_));
  return text + "." + encode(signature_of(text));
}

std::optional<TokenClaims> TokenSigner::verify(std::string_view token, std::int64_t now) const {
  const std::string digest = digest_of(token);
  std::optional<TokenClaims> claims;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(digest); known != known_.end()) claims = known->second;
  }
  if (!claims) {
    claims = read(token);
    if (!claims) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kKnown) known_.clear();
    known_.emplace(digest, *claims);
  }
  if (now + kLeeway < claims->issued || now - kLeeway > claims->expires) return std::nullopt;
  return claims;
}

std::optional<TokenClaims> TokenSigner::read(std::string_view token) const {
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const auto header = decode(token.substr(0, first));
  const auto body = decode(token.substr(first + 1, last - first - 1));
  const auto signature = decode(token.substr(last + 1));
  if (!header || !body || !signature) return std::nullopt;
  Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(header->data(), header->size());
  if (document.HasParseError() || json::text(document, "kid") != key().id ||
      json::text(document, "alg") != (key().is_rsa ? "RS256" : "ES256"))
    return std::nullopt;
  if (!is_signature(*signature, token.substr(0, last))) return std::nullopt;
  return claims_of(*body, issuer_);
}

}  // namespace lookout::apiserver::auth
