# cpack -G DEB: liblookout1 (shared libraries), liblookout-dev (headers, CMake package, pkg-config), lookout (the program) and,
# if gRPC is installed, lookout-xds (the program that `lookout registry xds` starts).
# This requires shared libraries; see packaging/README.md.

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lookout)
set(CPACK_PACKAGE_VENDOR "Lookout")
# The maintainer comes from the same variables as with Debian's own tools.
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
else()
  set(CPACK_PACKAGE_CONTACT "Lookout <lookout@packages.invalid>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL development program)
if(BUILD_SHARED_LIBS)
  list(PREPEND CPACK_COMPONENTS_ALL runtime)
endif()
if(TARGET lookout-xds)
  list(APPEND CPACK_COMPONENTS_ALL xds)
endif()
set(CPACK_STRIP_FILES ON)
# cpack builds nothing: it packs the files that cmake --install would install.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Dependencies between these packages are set below; dpkg-shlibdeps only needs to find the libraries.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
foreach(library IN LISTS LOOKOUT_core_LIBRARIES LOOKOUT_controller_LIBRARIES LOOKOUT_registry_LIBRARIES LOOKOUT_apiserver_LIBRARIES LOOKOUT_testing_LIBRARIES)
  if(TARGET lookout_${library})
    list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/${library})
  endif()
endforeach()

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME liblookout${LOOKOUT_SOVERSION})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${PROJECT_DESCRIPTION} (shared libraries)")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/triggers)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liblookout-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${PROJECT_DESCRIPTION} (development files)")
# For programs that include controller/program.h.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libcli11-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libboost1.81-dev, rapidjson-dev")
if(BUILD_SHARED_LIBS)
  string(PREPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "liblookout${LOOKOUT_SOVERSION} (= ${PROJECT_VERSION}), ")
  # For the simulator, which is static.
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libssl-dev, libfmt-dev, libspdlog-dev")
else()
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libcurl4-openssl-dev, libssl-dev, libfmt-dev, libspdlog-dev, libyaml-cpp-dev")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "prometheus-cpp-dev, libnghttp2-dev, libre2-dev, zlib1g-dev")
endif()

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME lookout)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION} (the program)")
if(BUILD_SHARED_LIBS)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "liblookout${LOOKOUT_SOVERSION} (= ${PROJECT_VERSION})")
endif()
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS lookout-xds)

set(CPACK_DEBIAN_XDS_PACKAGE_NAME lookout-xds)
set(CPACK_DEBIAN_XDS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_XDS_DESCRIPTION "${PROJECT_DESCRIPTION} (services for gRPC clients and Envoy)")
set(CPACK_DEBIAN_XDS_PACKAGE_DEPENDS "lookout (= ${PROJECT_VERSION})")
if(BUILD_SHARED_LIBS)
  string(APPEND CPACK_DEBIAN_XDS_PACKAGE_DEPENDS ", liblookout${LOOKOUT_SOVERSION} (= ${PROJECT_VERSION})")
endif()

include(CPack)
