# What find_package(waywiser) finds: headers, the shared library and the target waywiser::transfer, in
# an installed prefix, in a wheel and in a build tree.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The interface has a version of its own, told in its header.
file(STRINGS "${PROJECT_SOURCE_DIR}/native/include/waywiser/transfer.h" WAYWISER_ABI
    REGEX "^#define WAYWISER_TRANSFER_ABI ")
string(REGEX REPLACE "[^0-9]" "" WAYWISER_ABI "${WAYWISER_ABI}")

# In a wheel the package's own folder is what a prefix is elsewhere.
if(SKBUILD)
    set(WAYWISER_INSTALL_LIBDIR waywiser/lib)
    set(WAYWISER_INSTALL_INCLUDEDIR waywiser/include)
else()
    set(WAYWISER_INSTALL_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
    set(WAYWISER_INSTALL_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# waywiser_install_package(LIBRARY): installs the shared library for programs that link it.
function(waywiser_install_package library)
    set(config "${WAYWISER_INSTALL_LIBDIR}/cmake/waywiser")
    set(built "${PROJECT_BINARY_DIR}/cmake")
    set(links "")
    if(SKBUILD)
        set(links NAMELINK_SKIP)  # a wheel would hold a copy instead of a link
    endif()
    set_target_properties(${library} PROPERTIES EXPORT_NAME transfer)
    install(TARGETS ${library} EXPORT waywiserTargets
        LIBRARY DESTINATION "${WAYWISER_INSTALL_LIBDIR}" ${links})
    install(FILES
        "${PROJECT_SOURCE_DIR}/native/include/waywiser/transfer.h"
        "${PROJECT_SOURCE_DIR}/native/include/waywiser/transfer.hpp"
        DESTINATION "${WAYWISER_INSTALL_INCLUDEDIR}/waywiser")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/waywiserConfig.cmake.in"
        "${built}/waywiserConfig.cmake" @ONLY)
    write_basic_package_version_file("${built}/waywiserConfigVersion.cmake"
        COMPATIBILITY SameMinorVersion)
    install(FILES "${built}/waywiserConfig.cmake" "${built}/waywiserConfigVersion.cmake"
        DESTINATION "${config}")
    install(EXPORT waywiserTargets NAMESPACE waywiser:: DESTINATION "${config}")
    export(EXPORT waywiserTargets NAMESPACE waywiser:: FILE "${built}/waywiserTargets.cmake")
    if(WAYWISER_IN_PLACE)
        # Where 'python -m waywiser --cmake-dir' looks.
        file(WRITE "${PROJECT_SOURCE_DIR}/python/waywiser/lib/cmake/waywiser/waywiserConfig.cmake"
            "include(\"${built}/waywiserConfig.cmake\")\n")
        file(WRITE "${PROJECT_SOURCE_DIR}/python/waywiser/lib/cmake/waywiser/waywiserConfigVersion.cmake"
            "include(\"${built}/waywiserConfigVersion.cmake\")\n")
    endif()
endfunction()
