# cmake --install: headers, libraries, the program, the CMake package and a pkg-config file.

include(CMakePackageConfigHelpers)

install(TARGETS lookout_rapidjson EXPORT lookout)
install(DIRECTORY include/lookout DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/include/lookout DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT lookout NAMESPACE lookout:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lookout FILE lookout-targets.cmake)

configure_package_config_file(cmake/lookout-config.cmake.in ${PROJECT_BINARY_DIR}/lookout-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lookout)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lookout-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lookout-config.cmake ${PROJECT_BINARY_DIR}/lookout-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lookout)

# Static libraries bring what they need with them, shared ones have it inside.
set(LOOKOUT_PC_REQUIRES "libcurl openssl fmt spdlog yaml-cpp")
if(BUILD_SHARED_LIBS)
  set(LOOKOUT_PC_REQUIRES_KEY "Requires.private")
else()
  set(LOOKOUT_PC_REQUIRES_KEY "Requires")
endif()
file(RELATIVE_PATH LOOKOUT_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/lookout.pc.in ${PROJECT_BINARY_DIR}/lookout.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lookout.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
