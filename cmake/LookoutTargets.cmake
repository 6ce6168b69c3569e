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
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/sanitizer-ignorelist.txt)
  endif()
endif()
if(LOOKOUT_BUILD_FUZZERS)
  # The libraries tell the fuzzers what they reach.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# RapidJSON 1.1's document.h holds a member function that Clang 17 and later reject even when nobody calls it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
  add_compile_options(-fdelayed-template-parsing -Wno-delayed-template-parsing-in-cxx20)
endif()

# lookout_add_library(NAME SOURCES... ): the target lookout_NAME, known to others as lookout::NAME.
function(lookout_add_library name)
  add_library(lookout_${name} ${ARGN})
  add_library(lookout::${name} ALIAS lookout_${name})
  set_target_properties(lookout_${name} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(lookout_${name} PUBLIC cxx_std_20)
  target_include_directories(lookout_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(lookout_${name} PRIVATE $<BUILD_INTERFACE:lookout_warnings>)
  install(TARGETS lookout_${name} EXPORT lookout
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
