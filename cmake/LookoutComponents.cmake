# The components of the package: their libraries and dependencies. docs/dependencies.md has a table of them.

# Increased when the ABI changes.
set(LOOKOUT_SOVERSION 1)

set(LOOKOUT_COMPONENTS core controller registry registry_curl registry_beast registry_grpc apiserver testing)

set(LOOKOUT_core_LIBRARIES base api rest tools lister informer)
set(LOOKOUT_controller_LIBRARIES controller)
set(LOOKOUT_registry_LIBRARIES registry)
# Only headers.
set(LOOKOUT_registry_curl_LIBRARIES "")
set(LOOKOUT_registry_beast_LIBRARIES "")
set(LOOKOUT_registry_grpc_LIBRARIES "")
set(LOOKOUT_apiserver_LIBRARIES apiserver)
set(LOOKOUT_testing_LIBRARIES testing sim)
# Static even if the others are shared.
set(LOOKOUT_STATIC_LIBRARIES sim)

set(LOOKOUT_core_COMPONENTS "")
set(LOOKOUT_controller_COMPONENTS core)
set(LOOKOUT_registry_COMPONENTS core)
foreach(component IN ITEMS registry_curl registry_beast registry_grpc)
  set(LOOKOUT_${component}_COMPONENTS core registry)
endforeach()
set(LOOKOUT_apiserver_COMPONENTS core)
set(LOOKOUT_testing_COMPONENTS core controller apiserver)

# The additional packages for programs that link static libraries. Shared libraries are linked with them already.
set(LOOKOUT_core_PACKAGES fmt spdlog CURL OpenSSL yaml-cpp)
set(LOOKOUT_controller_PACKAGES "")
set(LOOKOUT_registry_PACKAGES "")
set(LOOKOUT_apiserver_PACKAGES prometheus-cpp ZLIB)
set(LOOKOUT_testing_PACKAGES "")
# The same for libraries that are always static, and for components that consist of headers.
set(LOOKOUT_testing_STATIC_PACKAGES fmt OpenSSL spdlog)
set(LOOKOUT_registry_curl_STATIC_PACKAGES CURL)
set(LOOKOUT_registry_grpc_STATIC_PACKAGES Protobuf gRPC)

set(LOOKOUT_core_PC_REQUIRES libcurl openssl fmt spdlog yaml-cpp)
set(LOOKOUT_controller_PC_REQUIRES "")
set(LOOKOUT_registry_PC_REQUIRES "")
set(LOOKOUT_apiserver_PC_REQUIRES prometheus-cpp-core re2 libnghttp2 zlib)
set(LOOKOUT_testing_PC_REQUIRES "")
set(LOOKOUT_testing_STATIC_PC_REQUIRES openssl fmt spdlog)
set(LOOKOUT_registry_curl_STATIC_PC_REQUIRES libcurl)
set(LOOKOUT_registry_grpc_STATIC_PC_REQUIRES grpc++)

# lookout_component_of(LIBRARY OUT): the component that LIBRARY belongs to.
function(lookout_component_of library out)
  foreach(component IN LISTS LOOKOUT_COMPONENTS)
    if(library IN_LIST LOOKOUT_${component}_LIBRARIES)
      set(${out} ${component} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "lookout_${library} belongs to no component; see cmake/LookoutComponents.cmake")
endfunction()

# lookout_install_library(LIBRARY): adds the library to `cmake --install`. A library that was not built is not installed;
# find_package() then reports that its component is missing.
function(lookout_install_library library)
  if(LOOKOUT_INSTALL)
    lookout_component_of(${library} component)
    install(TARGETS lookout_${library} EXPORT lookout-${component}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development OPTIONAL
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development OPTIONAL)
  endif()
endfunction()

# lookout_add_headers(COMPONENT LIBS...): adds lookout::COMPONENT, a component without its own library. Targets that link it also
# link LIBS.
function(lookout_add_headers component)
  add_library(lookout_${component} INTERFACE)
  add_library(lookout::${component} ALIAS lookout_${component})
  set_target_properties(lookout_${component} PROPERTIES EXPORT_NAME ${component})
  target_link_libraries(lookout_${component} INTERFACE ${ARGN})
  if(LOOKOUT_INSTALL)
    install(TARGETS lookout_${component} EXPORT lookout-${component} COMPONENT development)
  endif()
endfunction()

function(lookout_install_program target)
  if(LOOKOUT_INSTALL)
    install(TARGETS ${target} EXPORT lookout-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program OPTIONAL)
  endif()
endfunction()

# lookout_add_umbrella(COMPONENT): adds lookout::COMPONENT, which links all libraries of the component.
function(lookout_add_umbrella component)
  set(libraries "")
  foreach(library IN LISTS LOOKOUT_${component}_LIBRARIES)
    if(TARGET lookout_${library})
      list(APPEND libraries lookout_${library})
    endif()
  endforeach()
  lookout_add_headers(${component} ${libraries})
endfunction()
