# lookout_add_crd(TARGET CRD.yaml... [NAMESPACE ns] [HEADER name.h])
#
# Generates C++ types for the custom resources that the files define, and lets TARGET include them:
#
#     lookout_add_crd(controller crontabs.yaml NAMESPACE acme)     #include "crontabs.h": acme::v1::CronTab
#
# The header is generated when TARGET is built, and again whenever a file or the generator changes. It is named after the first
# file; HEADER sets another name, which may contain folders. Without NAMESPACE, the namespace is the first part of each group. If
# TARGET is a library, targets that link it may include the header, too.
#
# For cross-compiling, set LOOKOUT_CRD_GENERATOR to a lookout-crd-gen that runs on the build machine.
function(lookout_add_crd target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;HEADER" "")
  if(NOT TARGET ${target})
    message(FATAL_ERROR "lookout_add_crd: there is no target ${target}; add it first")
  endif()
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lookout_add_crd(${target}): no CRD is given; name at least one YAML file")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "lookout_add_crd(${target}): ${arg_KEYWORDS_MISSING_VALUES} needs a value")
  endif()
  set(files)
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    list(APPEND files ${file})
  endforeach()
  if(NOT arg_HEADER)
    list(GET files 0 first)
    cmake_path(GET first STEM LAST_ONLY stem)
    set(arg_HEADER ${stem}.h)
  endif()

  set(generator ${LOOKOUT_CRD_GENERATOR})
  if(NOT generator)
    set(generator $<TARGET_FILE:lookout::crd-gen>)
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/lookout-crds/${target})
  set(header ${folder}/${arg_HEADER})
  cmake_path(GET header PARENT_PATH header_folder)
  file(MAKE_DIRECTORY ${header_folder})
  add_custom_command(OUTPUT ${header}
    COMMAND ${generator} ${header} "${arg_NAMESPACE}" ${files}
    DEPENDS ${generator} ${files}
    COMMENT "Generating ${arg_HEADER} from CRDs"
    VERBATIM)

  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_sources(${target} INTERFACE $<BUILD_INTERFACE:${header}>)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${folder}>)
  elseif(type STREQUAL "EXECUTABLE")
    target_sources(${target} PRIVATE ${header})
    target_include_directories(${target} PRIVATE ${folder})
  else()
    target_sources(${target} PRIVATE ${header})
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}>)
  endif()
endfunction()
