# What wheels are linked with, so that they run on every distribution with glibc 2.28 or later: the
# static libstdc++, functions of glibc in old versions, and an hwloc that needs no library but these.

set(waywiser_glibc "${PROJECT_BINARY_DIR}/glibc")
set(waywiser_sysroot "")
if(CMAKE_SYSROOT)
    set(waywiser_sysroot "--sysroot=${CMAKE_SYSROOT}")
endif()
execute_process(
    COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/build_backend/old_glibc.py"
        "${waywiser_glibc}" "${CMAKE_CXX_COMPILER}" ${waywiser_sysroot}
    RESULT_VARIABLE waywiser_status ERROR_VARIABLE waywiser_why)
if(NOT waywiser_status EQUAL 0)
    message(FATAL_ERROR "WAYWISER_PORTABLE needs g++, nm and ar for x86-64 or aarch64: ${waywiser_why}")
endif()
add_link_options(-L${waywiser_glibc} -static-libstdc++
    LINKER:--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,-l:librt.so.1,--as-needed
    LINKER:--allow-shlib-undefined)  # what the libraries of this system need of its own glibc

set(waywiser_hwloc_folder "${WAYWISER_DEPENDENCIES}/release/hwloc/${CMAKE_SYSTEM_PROCESSOR}")
if(NOT EXISTS "${waywiser_hwloc_folder}/libhwloc.so.15")
    message(FATAL_ERROR "${waywiser_hwloc_folder} has no libhwloc.so.15: scripts/set-up --release")
endif()
set(WAYWISER_HWLOC_LIBRARY "${waywiser_hwloc_folder}/libhwloc.so.15" CACHE FILEPATH "hwloc")

# That of aarch64 needs no libpciaccess.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    enable_language(C)
    add_library(waywiser_pciaccess SHARED "${PROJECT_SOURCE_DIR}/build_backend/no_pciaccess.c")
    set_target_properties(waywiser_pciaccess PROPERTIES
        OUTPUT_NAME pciaccess SOVERSION 0 C_VISIBILITY_PRESET default)
endif()
