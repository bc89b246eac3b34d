# GTest::gmock_main, compiled here from the distribution's sources, so that the thread sanitizer sees
# into it: those of the system, else of its package in a folder of the project.

find_path(WAYWISER_GOOGLETEST googletest/CMakeLists.txt
    PATHS /usr/src/googletest "${WAYWISER_DEPENDENCIES}/usr/src/googletest" NO_DEFAULT_PATH)
if(NOT WAYWISER_GOOGLETEST)
    waywiser_fetch_packages(why googletest)
    if(NOT why STREQUAL "")
        message(FATAL_ERROR "GoogleTest is missing (${why}): install googletest")
    endif()
    find_path(WAYWISER_GOOGLETEST googletest/CMakeLists.txt REQUIRED
        PATHS "${WAYWISER_DEPENDENCIES}/usr/src/googletest" NO_DEFAULT_PATH)
endif()

# Two of its four libraries are all that is used; its own build would make and install the rest.
add_library(waywiser_googletest STATIC
    "${WAYWISER_GOOGLETEST}/googletest/src/gtest-all.cc"
    "${WAYWISER_GOOGLETEST}/googlemock/src/gmock-all.cc"
    "${WAYWISER_GOOGLETEST}/googlemock/src/gmock_main.cc")
target_include_directories(waywiser_googletest SYSTEM
    PUBLIC "${WAYWISER_GOOGLETEST}/googletest/include" "${WAYWISER_GOOGLETEST}/googlemock/include"
    PRIVATE "${WAYWISER_GOOGLETEST}/googletest" "${WAYWISER_GOOGLETEST}/googlemock")
target_link_libraries(waywiser_googletest PUBLIC Threads::Threads)
# It takes several times as long to compile optimised, and no time when tests run. Its own undefined
# behaviour and its own use of memory are not ours to find; with the address sanitizer its locals would
# be on a heap, and its death tests compare their addresses to see where the stack grows.
target_compile_options(waywiser_googletest PRIVATE -O0)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[^ ]*(address|undefined)")
    target_compile_options(waywiser_googletest PRIVATE -fno-sanitize=address,undefined)
endif()
add_library(GTest::gmock_main ALIAS waywiser_googletest)
