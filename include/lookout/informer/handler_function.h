// HandlerFunction: a std::function with readable compile errors.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "lookout/base/empty_function.h"

namespace lookout::informer {

/// The function of an EventHandler that an error message names.
enum class HandlerPart { kFilter, kAdd, kUpdate, kDelete, kSynced };

namespace detail {

template <HandlerPart part, class Function, class Signature>
struct FitsHandler;

template <HandlerPart part, class Function, class Result, class Object, class... More>
struct FitsHandler<part, Function, Result(Object, More...)> {
  static constexpr bool kWhole = std::is_invocable_r_v<Result, Function&, Object, More...>;
  /// True if the function takes the object only.
  static constexpr bool kObjectOnly = !kWhole &&
                                      (part == HandlerPart::kAdd || part == HandlerPart::kDelete) &&
                                      std::is_invocable_r_v<Result, Function&, Object>;
  static constexpr bool value = kWhole || kObjectOnly;
  static_assert(value || part != HandlerPart::kFilter,
                "lookout: `filter` is called with (const T& object) and returns bool");
  static_assert(value || part != HandlerPart::kAdd,
                "lookout: `on_add` is called with (const T& object, informer::Origin origin), "
                "or with (const T& object)");
  static_assert(value || part != HandlerPart::kUpdate,
                "lookout: `on_update` is called with (const T& before, const T& after)");
  static_assert(value || part != HandlerPart::kDelete,
                "lookout: `on_delete` is called with (const T& last, informer::FinalState "
                "final_state), or with (const T& last)");

  /// Wraps the function so that it ignores the other arguments.
  static auto whole_function(Function function) {
    return [f = std::move(function)](Object object, More...) mutable {
      return f(std::forward<Object>(object));
    };
  }
};

template <HandlerPart part, class Function, class Result>
struct FitsHandler<part, Function, Result()> {
  static constexpr bool kObjectOnly = false;
  static constexpr bool value = std::is_invocable_r_v<Result, Function&>;
  static_assert(value || part != HandlerPart::kSynced,
                "lookout: `on_synced` is called without arguments");
};

}  // namespace detail

/// A std::function that reports a wrong signature in a readable compile error.
template <HandlerPart part, class Signature>
class HandlerFunction : public std::function<Signature> {
 public:
  HandlerFunction() = default;
  // Implicit, like the constructors of std::function.
  // NOLINTNEXTLINE(google-explicit-constructor)
  HandlerFunction(std::nullptr_t) {}

  template <class Callable>
    requires(!std::is_base_of_v<HandlerFunction, std::remove_cvref_t<Callable>> &&
             !std::is_same_v<std::nullptr_t, std::remove_cvref_t<Callable>>)
  // NOLINTNEXTLINE(google-explicit-constructor, bugprone-forwarding-reference-overload)
  HandlerFunction(Callable&& callable)
      : std::function<Signature>(checked(std::forward<Callable>(callable))) {}

 private:
  template <class Callable>
  static std::function<Signature> checked(Callable&& callable) {
    // (Without a second, lengthy error for the same problem.)
    using Fits = detail::FitsHandler<part, std::remove_cvref_t<Callable>, Signature>;
    if constexpr (Fits::kObjectOnly) {
      // (The wrapper itself is never empty.)
      if (base::is_empty_function(callable)) return {};
      return Fits::whole_function(std::forward<Callable>(callable));
    } else if constexpr (Fits::value) {
      return std::function<Signature>(std::forward<Callable>(callable));
    } else {
      return {};
    }
  }
};

}  // namespace lookout::informer
