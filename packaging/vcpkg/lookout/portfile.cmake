# An overlay port: it builds the clone that LOOKOUT_SOURCE names.
if(NOT DEFINED ENV{LOOKOUT_SOURCE})
  message(FATAL_ERROR "Set LOOKOUT_SOURCE to a clone of Lookout, and keep it with VCPKG_KEEP_ENV_VARS=LOOKOUT_SOURCE")
endif()
set(SOURCE_PATH "$ENV{LOOKOUT_SOURCE}")

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES apiserver LOOKOUT_BUILD_APISERVER)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options}
  -DLOOKOUT_WERROR=OFF -DLOOKOUT_BUILD_CMD=OFF -DLOOKOUT_BUILD_TESTS=OFF -DLOOKOUT_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/lookout)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
