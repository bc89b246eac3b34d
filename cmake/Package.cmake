# What find_package(waywiser) and pkg-config find: headers, the shared library and the target
# waywiser::transfer, in an installed prefix, in a wheel and in a build tree.

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

# waywiser_write_pkg_config(FILE PREFIX LIBDIR INCLUDEDIR LIBS): the description for pkg-config.
function(waywiser_write_pkg_config file prefix libdir includedir libs)
    set(WAYWISER_PC_PREFIX "${prefix}")
    set(WAYWISER_PC_LIBDIR "${libdir}")
    set(WAYWISER_PC_INCLUDEDIR "${includedir}")
    set(WAYWISER_PC_LIBS "${libs}")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/waywiser-transfer.pc.in" "${file}" @ONLY)
endfunction()

# waywiser_install_pkg_config(): in PREFIX/LIBDIR/pkgconfig, relative to which it names the folders,
# so that a prefix can be moved. The linker does not search a wheel, whose library has no link
# without a version: programs are linked to the file, and find it there when they run.
function(waywiser_install_pkg_config)
    set(file "${PROJECT_BINARY_DIR}/waywiser-transfer.pc")
    set(libs "-L\${libdir} -lwaywiser_transfer")
    if(SKBUILD)
        set(libs
            "-L\${libdir} -l:libwaywiser_transfer.so.${WAYWISER_ABI} -Wl,-rpath,\${libdir}")
    endif()
    if(IS_ABSOLUTE "${WAYWISER_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${WAYWISER_INSTALL_INCLUDEDIR}")
        waywiser_write_pkg_config("${file}" "${CMAKE_INSTALL_PREFIX}"
            "${CMAKE_INSTALL_FULL_LIBDIR}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}" "${libs}")
    else()
        file(RELATIVE_PATH up "/${WAYWISER_INSTALL_LIBDIR}/pkgconfig" "/")
        string(REGEX REPLACE "/$" "" up "${up}")
        waywiser_write_pkg_config("${file}" "\${pcfiledir}/${up}"
            "\${prefix}/${WAYWISER_INSTALL_LIBDIR}" "\${prefix}/${WAYWISER_INSTALL_INCLUDEDIR}"
            "${libs}")
    endif()
    install(FILES "${file}" DESTINATION "${WAYWISER_INSTALL_LIBDIR}/pkgconfig")
endfunction()

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
    waywiser_install_pkg_config()
    export(EXPORT waywiserTargets NAMESPACE waywiser:: FILE "${built}/waywiserTargets.cmake")
    if(WAYWISER_IN_PLACE)
        # Where 'python -m waywiser --cmake-dir' looks.
        file(WRITE "${PROJECT_SOURCE_DIR}/python/waywiser/lib/cmake/waywiser/waywiserConfig.cmake"
            "include(\"${built}/waywiserConfig.cmake\")\n")
        file(WRITE "${PROJECT_SOURCE_DIR}/python/waywiser/lib/cmake/waywiser/waywiserConfigVersion.cmake"
            "include(\"${built}/waywiserConfigVersion.cmake\")\n")
        # Where 'python -m waywiser --pkg-config-dir' looks.
        waywiser_write_pkg_config(
            "${PROJECT_SOURCE_DIR}/python/waywiser/lib/pkgconfig/waywiser-transfer.pc"
            "\${pcfiledir}/../../../.." "\${prefix}/python/waywiser/lib"
            "\${prefix}/native/include"
            "-L\${libdir} -lwaywiser_transfer -Wl,-rpath,\${libdir}")
    endif()
endfunction()
