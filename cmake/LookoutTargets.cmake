# The compiler flags and properties of all targets.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(lookout_warnings INTERFACE)
target_compile_options(lookout_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast
  # GCC 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${LOOKOUT_WERROR}>:-Werror>)

if(LOOKOUT_SANITIZE)
  add_compile_options(-fsanitize=${LOOKOUT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOOKOUT_SANITIZE})
  if(LOOKOUT_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio uses fences in addition to locks; GCC warns that the sanitizer does not support them.
    add_compile_options(-Wno-tsan)
  endif()
  if(LOOKOUT_SANITIZE MATCHES "address,undefined")
    # AddressSanitizer reports null accesses, too, and these checks take a tenth of the compile time.
    add_compile_options(-fno-sanitize=null)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/sanitizer-ignorelist.txt)
  endif()
endif()

# RapidJSON 1.1's document.h contains a member function that Clang 17 and later reject even if it is not called.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
  add_compile_options(-fdelayed-template-parsing -Wno-delayed-template-parsing-in-cxx20)
endif()

# Asio's own functions are compiled once, in base/asio.cc. Programs that use Lookout may use Asio header-only, its default.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION)

# Makes GCC's garbage collection less frequent: up to a tenth less time for a quarter more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-expand=200 --param=ggc-min-heapsize=524288)
endif()

separate_arguments(other_flags UNIX_COMMAND "${LOOKOUT_OTHER_FLAGS}")
separate_arguments(test_flags UNIX_COMMAND "${LOOKOUT_TEST_FLAGS}")

# The linker gets the exports of shared libraries, so shared and static libraries consist of the same objects.
include(CheckLinkerFlag)
set(LOOKOUT_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/exports.map)
if(BUILD_SHARED_LIBS)
  check_linker_flag(CXX LINKER:--version-script=${LOOKOUT_EXPORTS} LOOKOUT_HAS_VERSION_SCRIPTS)
endif()

# lookout_add_library(NAME SOURCES... ): adds the target lookout_NAME, with the alias lookout::NAME.
function(lookout_add_library name)
  add_library(lookout_${name} ${ARGN})
  add_library(lookout::${name} ALIAS lookout_${name})
  # Without a DEFINE_SYMBOL, static and shared libraries have the same objects, so ccache finds them.
  set_target_properties(lookout_${name} PROPERTIES EXPORT_NAME ${name} VERSION ${LOOKOUT_SOVERSION}.${PROJECT_VERSION}
    SOVERSION ${LOOKOUT_SOVERSION} DEFINE_SYMBOL "")
  target_compile_features(lookout_${name} PUBLIC cxx_std_20)
  target_include_directories(lookout_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(lookout_${name} PRIVATE $<BUILD_INTERFACE:lookout_warnings>)
  if(BUILD_SHARED_LIBS AND LOOKOUT_HAS_VERSION_SCRIPTS)
    target_link_options(lookout_${name} PRIVATE LINKER:--version-script=${LOOKOUT_EXPORTS})
    set_property(TARGET lookout_${name} APPEND PROPERTY LINK_DEPENDS ${LOOKOUT_EXPORTS})
  endif()
  lookout_precompile(lookout_${name})
  lookout_unite(lookout_${name})
  if(NOT name IN_LIST LOOKOUT_core_LIBRARIES)
    target_compile_options(lookout_${name} PRIVATE ${other_flags})
  endif()
  lookout_install_library(${name})
endfunction()

# lookout_has_coroutines(TARGET): sets the flags of sources with coroutines. GCC 12 warns wrongly about coroutine frames, which
# Asio allocates and frees itself. With Clang, base/detail/asio.h must come before Asio; the precompiled header contains it.
function(lookout_has_coroutines target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-mismatched-new-delete)
  elseif(NOT LOOKOUT_PCH)
    target_compile_options(${target} PRIVATE "SHELL:-include ${lookout_SOURCE_DIR}/include/lookout/base/detail/asio.h")
  endif()
endfunction()

# lookout_unite(TARGET): compiles LOOKOUT_UNITY of TARGET's sources as one. Then local names must be unique among the target's
# sources (scripts/check-local-names.py).
function(lookout_unite target)
  if(LOOKOUT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${LOOKOUT_UNITY})
    # GCC mistakes an included source for a header, and warns about its local types.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# lookout_precompile(TARGET): TARGET's sources use a precompiled header (LOOKOUT_PCH). A source with missing includes still
# compiles then; clang-tidy, which does not use it, reports them.
function(lookout_precompile target)
  if(LOOKOUT_PCH)
    if(NOT TARGET lookout_pch)
      set(empty ${PROJECT_BINARY_DIR}/pch.cc)
      file(CONFIGURE OUTPUT ${empty} CONTENT "")
      add_library(lookout_pch OBJECT ${empty})
      target_compile_features(lookout_pch PUBLIC cxx_std_20)
      target_include_directories(lookout_pch PRIVATE ${PROJECT_SOURCE_DIR}/include)
      target_link_libraries(lookout_pch PRIVATE lookout_warnings lookout_rapidjson Boost::headers Threads::Threads fmt::fmt)
      # Without times, so that ccache finds objects that were compiled with it in another clone.
      target_compile_options(lookout_pch PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
      target_precompile_headers(lookout_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
    endif()
    target_precompile_headers(${target} REUSE_FROM lookout_pch)
    # GCC uses the header only if it was compiled with the same definitions.
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
    # GCC does not treat precompiled headers of the standard library as system headers, and warns about std::string.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
endfunction()
