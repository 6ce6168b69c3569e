# Lookout's dependencies; docs/dependencies.md has the reasons.

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
  find_package(ZLIB REQUIRED)
  # Debian's RE2 has no CMake package.
  find_library(LOOKOUT_RE2_LIBRARY re2 REQUIRED)
  find_path(LOOKOUT_RE2_INCLUDE_DIR re2/re2.h REQUIRED)
  # Nor does its nghttp2.
  find_library(LOOKOUT_NGHTTP2_LIBRARY nghttp2 REQUIRED)
  find_path(LOOKOUT_NGHTTP2_INCLUDE_DIR nghttp2/nghttp2.h REQUIRED)
  mark_as_advanced(LOOKOUT_RE2_LIBRARY LOOKOUT_RE2_INCLUDE_DIR LOOKOUT_NGHTTP2_LIBRARY LOOKOUT_NGHTTP2_INCLUDE_DIR)
endif()

# Debian's RapidJSON consists of headers without a CMake target.
find_path(LOOKOUT_RAPIDJSON_INCLUDE_DIR rapidjson/reader.h REQUIRED)
mark_as_advanced(LOOKOUT_RAPIDJSON_INCLUDE_DIR)
add_library(lookout_rapidjson INTERFACE)
set_target_properties(lookout_rapidjson PROPERTIES EXPORT_NAME rapidjson)
target_include_directories(lookout_rapidjson SYSTEM INTERFACE $<BUILD_INTERFACE:${LOOKOUT_RAPIDJSON_INCLUDE_DIR}>)

# Only `lookout registry xds` needs gRPC (Debian: libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc).
if(LOOKOUT_BUILD_CMD AND LOOKOUT_XDS)
  find_package(Protobuf QUIET)
  find_package(gRPC CONFIG QUIET)
  if(NOT TARGET gRPC::grpc++ OR NOT TARGET gRPC::grpc_cpp_plugin OR NOT TARGET protobuf::protoc)
    message(STATUS "gRPC was not found: `lookout registry xds` is not built")
    set(LOOKOUT_XDS OFF)
  endif()
else()
  set(LOOKOUT_XDS OFF)
endif()
