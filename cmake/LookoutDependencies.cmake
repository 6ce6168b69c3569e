# What Lookout is built from; docs/dependencies.md says why each.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(Boost 1.81 REQUIRED)

# Only the server and the program need these.
if(LOOKOUT_BUILD_APISERVER)
  find_package(prometheus-cpp REQUIRED CONFIG)
  # Debian's RE2 has no CMake package.
  find_library(LOOKOUT_RE2_LIBRARY re2 REQUIRED)
  find_path(LOOKOUT_RE2_INCLUDE_DIR re2/re2.h REQUIRED)
  mark_as_advanced(LOOKOUT_RE2_LIBRARY LOOKOUT_RE2_INCLUDE_DIR)
endif()

# Debian's RapidJSON is headers without a CMake target of its own.
find_path(LOOKOUT_RAPIDJSON_INCLUDE_DIR rapidjson/reader.h REQUIRED)
mark_as_advanced(LOOKOUT_RAPIDJSON_INCLUDE_DIR)
add_library(lookout_rapidjson INTERFACE)
set_target_properties(lookout_rapidjson PROPERTIES EXPORT_NAME rapidjson)
target_include_directories(lookout_rapidjson SYSTEM INTERFACE $<BUILD_INTERFACE:${LOOKOUT_RAPIDJSON_INCLUDE_DIR}>)
