// Attributes of declarations, for compilers that know them.
#pragma once

/// Marks a function whose result refers to its object or, on a parameter, to that argument. Clang
/// then warns (-Wdangling, on by default) if the program keeps the result and the object was a
/// temporary or a local variable. Other compilers ignore it.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define LOOKOUT_LIFETIME_BOUND [[clang::lifetimebound]]
#endif
#endif
#if !defined(LOOKOUT_LIFETIME_BOUND)
#define LOOKOUT_LIFETIME_BOUND
#endif

/// Marks the members of option structs that own memory. GCC 12 moves the members of an aggregate
/// that is initialised in braces within a co_await expression by copying their bytes, and then
/// destroys both copies; it calls the constructor of a potentially overlapping member. Without the
/// mark, `co_await pods.async_list({.limit = 5})` would end in a double free. The layout is the
/// same with every compiler. Members that own nothing (numbers, string_views) need no mark.
#define LOOKOUT_OPTION [[no_unique_address]]
