# The headers of the Python that runs the build. Distributions split them off into a package: where
# it is not installed, it is unpacked into a folder of the project.

execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
        "import sys, sysconfig; print(sysconfig.get_path('include'), '%d.%d' % sys.version_info[:2], sep=';')"
    OUTPUT_VARIABLE waywiser_python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET waywiser_python 0 waywiser_python_headers)
list(GET waywiser_python 1 waywiser_python_version)

if(NOT EXISTS "${waywiser_python_headers}/Python.h")
    set(waywiser_python_headers
        "${WAYWISER_DEPENDENCIES}/usr/include/python${waywiser_python_version}")
    set(waywiser_why "")
    if(NOT EXISTS "${waywiser_python_headers}/Python.h")
        waywiser_fetch_packages(waywiser_why libpython${waywiser_python_version}-dev)
    endif()
    if(NOT EXISTS "${waywiser_python_headers}/Python.h")
        message(FATAL_ERROR "Python's headers are missing (${waywiser_why}): install python3-dev "
            "(Debian, Ubuntu) or python3-devel (Red Hat)")
    endif()
    set(Python_INCLUDE_DIR "${waywiser_python_headers}")
    # Debian's pyconfig.h includes the one of the architecture by a path from here.
    include_directories(SYSTEM "${WAYWISER_DEPENDENCIES}/usr/include")
endif()
