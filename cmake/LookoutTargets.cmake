# How every target of this project is compiled.

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
    # Asio has fences besides its locks; GCC warns of each that the sanitizer does not follow them.
    add_compile_options(-Wno-tsan)
  endif()
  if(LOOKOUT_SANITIZE MATCHES "address,undefined")
    # AddressSanitizer reports them, too, and a check of every access takes a tenth of the time to compile.
    add_compile_options(-fno-sanitize=null)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/sanitizer-ignorelist.txt)
  endif()
endif()

# RapidJSON 1.1's document.h holds a member function that Clang 17 and later reject even when nobody calls it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
  add_compile_options(-fdelayed-template-parsing -Wno-delayed-template-parsing-in-cxx20)
endif()

# Asio's own functions are compiled once, in base/asio.cc. Who uses Lookout may have them in headers, as is Asio's default.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION)

# GCC collects its garbage less often: up to a tenth less time for a quarter more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-expand=200 --param=ggc-min-heapsize=524288)
endif()

separate_arguments(other_flags UNIX_COMMAND "${LOOKOUT_OTHER_FLAGS}")
separate_arguments(test_flags UNIX_COMMAND "${LOOKOUT_TEST_FLAGS}")

# What a shared library exports is said to the linker, so that its objects are those of the static one.
include(CheckLinkerFlag)
set(LOOKOUT_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/exports.map)
if(BUILD_SHARED_LIBS)
  check_linker_flag(CXX LINKER:--version-script=${LOOKOUT_EXPORTS} LOOKOUT_HAS_VERSION_SCRIPTS)
endif()

# lookout_add_library(NAME SOURCES... ): the target lookout_NAME, known to others as lookout::NAME.
function(lookout_add_library name)
  add_library(lookout_${name} ${ARGN})
  add_library(lookout::${name} ALIAS lookout_${name})
  # Without a DEFINE_SYMBOL, the objects of static and shared libraries are the same, and the compiler's cache finds them.
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

# lookout_has_coroutines(TARGET): GCC 12 takes the frames of coroutines, which Asio allocates and frees itself, for a mistake
# where it optimises. Clang gets base/detail/asio.h before all of Asio; a precompiled header has it already.
function(lookout_has_coroutines target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-mismatched-new-delete)
  elseif(NOT LOOKOUT_PCH)
    target_compile_options(${target} PRIVATE "SHELL:-include ${lookout_SOURCE_DIR}/include/lookout/base/detail/asio.h")
  endif()
endfunction()

# lookout_unite(TARGET): LOOKOUT_UNITY of TARGET's sources are compiled as one. What is local to a source must then have a name
# that no other source of the target uses for something else (scripts/check-local-names.py).
function(lookout_unite target)
  if(LOOKOUT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${LOOKOUT_UNITY})
    # GCC takes what is local to an included source for a header's.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# lookout_precompile(TARGET [PCH]): TARGET's sources find the headers of others already parsed (LOOKOUT_PCH). A file that
# includes too little still compiles then; clang-tidy, which does without, reports it.
function(lookout_precompile target)
  if(LOOKOUT_PCH)
    if(NOT TARGET lookout_pch)
      set(empty ${PROJECT_BINARY_DIR}/pch.cc)
      file(CONFIGURE OUTPUT ${empty} CONTENT "")
      add_library(lookout_pch OBJECT ${empty})
      target_compile_features(lookout_pch PUBLIC cxx_std_20)
      target_include_directories(lookout_pch PRIVATE ${PROJECT_SOURCE_DIR}/include)
      target_link_libraries(lookout_pch PRIVATE lookout_warnings lookout_rapidjson Boost::headers Threads::Threads fmt::fmt)
      # Without times, so that ccache finds what was compiled with it in another clone.
      target_compile_options(lookout_pch PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
      target_precompile_headers(lookout_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
    endif()
    target_precompile_headers(${target} REUSE_FROM lookout_pch)
    # GCC takes the header only where it was compiled with the same definitions.
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
    # GCC forgets that a precompiled header of the standard library is a system header, and warns of std::string.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
endfunction()
