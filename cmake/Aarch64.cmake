# A toolchain file: builds for aarch64 on x86-64, with the compiler that scripts/set-up --guest
# unpacks. The headers of hwloc and Python are those of Debian for aarch64. Wheels for Python 3.12 and
# later use those of the Python that runs the build, since the stable ABI is the same on both.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH waywiser_root)
set(waywiser_guest "${waywiser_root}/.deps/guest")

set(CMAKE_SYSROOT "${waywiser_guest}/arm-compiler")
foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_TARGET aarch64-linux-gnu)
endforeach()
set(CMAKE_C_COMPILER "${CMAKE_SYSROOT}/usr/bin/aarch64-linux-gnu-gcc-12")
set(CMAKE_CXX_COMPILER "${CMAKE_SYSROOT}/usr/bin/aarch64-linux-gnu-g++-12")

set(waywiser_arm_headers "${waywiser_guest}/arm-headers/usr/include")
# Debian's own headers include those of the architecture by paths from these two.
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES
    "${waywiser_arm_headers}" "${waywiser_arm_headers}/aarch64-linux-gnu")
set(WAYWISER_HWLOC_HEADERS "${waywiser_arm_headers}" CACHE PATH "hwloc.h")
if(NOT WAYWISER_PORTABLE)
    set(WAYWISER_HWLOC_LIBRARY "${waywiser_guest}/arm-system/usr/lib/aarch64-linux-gnu/libhwloc.so.15"
        CACHE FILEPATH "hwloc")
endif()
# The interpreter that runs the build is of this machine; modules are named for the other one.
set(CMAKE_CROSSCOMPILING_EMULATOR env)
if(NOT SKBUILD_SABI_COMPONENT)
    set(Python_INCLUDE_DIR "${waywiser_arm_headers}/python3.11" CACHE PATH "Python.h")
    set(SKBUILD_SOABI "cpython-311-aarch64-linux-gnu")
endif()
# What these libraries need is beside them, for the linker alone. CMake names the sysroot for C++ only.
foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "--sysroot=${CMAKE_SYSROOT} -Wl,--allow-shlib-undefined")
endforeach()
