# waywiser::hwloc: the system's where its headers are (a package, a module's CPATH or pkg-config
# path, CMAKE_PREFIX_PATH), else the distribution's package in a folder of the project.

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(WAYWISER_HWLOC QUIET hwloc>=2.4)
endif()

function(waywiser_find_hwloc)
    find_path(WAYWISER_HWLOC_HEADERS hwloc.h
        HINTS ${WAYWISER_HWLOC_INCLUDE_DIRS} ENV CPATH ENV CPLUS_INCLUDE_PATH
        PATHS "${WAYWISER_DEPENDENCIES}/usr/include")
    find_library(WAYWISER_HWLOC_LIBRARY hwloc
        HINTS ${WAYWISER_HWLOC_LIBRARY_DIRS} ENV LIBRARY_PATH ENV LD_LIBRARY_PATH
        PATHS "${WAYWISER_DEPENDENCIES}/usr/lib"
              "${WAYWISER_DEPENDENCIES}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endfunction()

waywiser_find_hwloc()
if(NOT WAYWISER_HWLOC_HEADERS OR NOT WAYWISER_HWLOC_LIBRARY)
    waywiser_fetch_packages(why libhwloc-dev libhwloc15)
    if(why STREQUAL "")
        waywiser_find_hwloc()
    endif()
endif()
if(NOT WAYWISER_HWLOC_HEADERS OR NOT WAYWISER_HWLOC_LIBRARY)
    message(FATAL_ERROR
        "hwloc is missing (${why}): install libhwloc-dev (Debian, Ubuntu) or hwloc-devel (Red Hat)")
endif()
message(STATUS "hwloc: ${WAYWISER_HWLOC_LIBRARY}")

add_library(waywiser::hwloc SHARED IMPORTED)
set_target_properties(waywiser::hwloc PROPERTIES IMPORTED_LOCATION "${WAYWISER_HWLOC_LIBRARY}")
target_include_directories(waywiser::hwloc INTERFACE "${WAYWISER_HWLOC_HEADERS}")

if(TARGET waywiser_pciaccess)
    # Loaded with the module itself, since hwloc has no path to look for it.
    target_link_libraries(waywiser::hwloc INTERFACE
        LINKER:--no-as-needed waywiser_pciaccess LINKER:--as-needed)
    if(SKBUILD)
        install(TARGETS waywiser_pciaccess LIBRARY DESTINATION waywiser/lib NAMELINK_SKIP)
    endif()
endif()

# A library of our own folder is out of the system's sight: it travels with the module.
cmake_path(IS_PREFIX WAYWISER_DEPENDENCIES "${WAYWISER_HWLOC_LIBRARY}" waywiser_hwloc_is_ours)
if(waywiser_hwloc_is_ours)
    if(CMAKE_LIBRARY_ARCHITECTURE)
        target_include_directories(waywiser::hwloc INTERFACE
            "${WAYWISER_HWLOC_HEADERS}/${CMAKE_LIBRARY_ARCHITECTURE}")
    endif()
    if(SKBUILD)
        cmake_path(GET WAYWISER_HWLOC_LIBRARY PARENT_PATH waywiser_hwloc_folder)
        file(REAL_PATH "${waywiser_hwloc_folder}/libhwloc.so.15" waywiser_hwloc_file)
        install(FILES "${waywiser_hwloc_file}" DESTINATION waywiser/lib RENAME libhwloc.so.15)
        find_file(WAYWISER_HWLOC_COPYRIGHT copyright REQUIRED NO_DEFAULT_PATH
            PATHS "${WAYWISER_DEPENDENCIES}/usr/share/doc/libhwloc15" /usr/share/doc/libhwloc15)
        install(FILES "${WAYWISER_HWLOC_COPYRIGHT}"
            DESTINATION waywiser/lib RENAME libhwloc-copyright)
    endif()
endif()
