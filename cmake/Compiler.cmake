# The language, the warnings and the visibility that every target of this project has.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # there are none
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Waywiser needs g++ 12 or "
        "later; name one with CXX=g++-12")
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "What to optimise for" FORCE)
endif()

# nvcc writes line directives that -Wpedantic objects to. Designated initialisers leave the other
# members at their defaults on purpose.
add_library(waywiser_warnings INTERFACE)
target_compile_options(waywiser_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wno-missing-field-initializers>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
# g++ 12 warns of overlapping strings in std::string's own operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(waywiser_warnings INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-restrict>)
endif()
# g++ takes a file that a unity build includes for a header, whose classes would differ from file to
# file.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(waywiser_warnings INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# With a sanitizer's checks between, g++ takes initialised members for uninitialised ones; the build
# without a sanitizer warns of real ones.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(waywiser_warnings INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(WAYWISER_WARNINGS_AS_ERRORS)
    target_compile_options(waywiser_warnings INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Werror>
        $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>)
endif()

# ccache does not cache files that use a precompiled header, unless its option sloppiness allows it.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND NOT DEFINED CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
