"""Conan 2: conan create packaging/conan, in a clone."""

import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Lookout(ConanFile):
    name = "lookout"
    version = "0.1.0"
    description = "The Kubernetes informer framework for C++"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "with_apiserver": [True, False]}
    default_options = {"shared": False, "with_apiserver": True, "boost/*:header_only": True, "libcurl/*:with_nghttp2": True}
    package_type = "library"

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        copy(self, "*", root, self.export_sources_folder, excludes=("build/*", ".git/*"))

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        # Public headers include these two.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("rapidjson/[>=1.1.0]", transitive_headers=True)
        self.requires("libcurl/[>=7.88 <9]")
        self.requires("openssl/[>=3 <4]")
        self.requires("fmt/[>=9 <12]")
        self.requires("spdlog/[>=1.10 <2]")
        self.requires("yaml-cpp/[>=0.7 <1]")
        if self.options.with_apiserver:
            self.requires("prometheus-cpp/[>=1.0 <2]")
            self.requires("re2/[>=20220601]")
            self.requires("libnghttp2/[>=1.52 <2]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(
            {
                "LOOKOUT_WERROR": False,
                "LOOKOUT_BUILD_APISERVER": bool(self.options.with_apiserver),
                "LOOKOUT_BUILD_CMD": False,
                "LOOKOUT_BUILD_TESTS": False,
                "LOOKOUT_BUILD_EXAMPLES": False,
            }
        )
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # Lookout's own CMake package knows its components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "lookout")]
