# GTest::gtest_main, compiled here from the distribution's sources so that sanitizers see into it:
# those of the system, else of its package in a folder of the project.

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

# One of its four libraries and its main function are used; its own build would make and install
# the rest. It is not optimised, because -O3 takes twice as long to compile.
add_library(waywiser_googletest STATIC
    "${WAYWISER_GOOGLETEST}/googletest/src/gtest-all.cc"
    "${WAYWISER_GOOGLETEST}/googletest/src/gtest_main.cc")
target_compile_options(waywiser_googletest PRIVATE -O0)
target_include_directories(waywiser_googletest SYSTEM
    PUBLIC "${WAYWISER_GOOGLETEST}/googletest/include"
    PRIVATE "${WAYWISER_GOOGLETEST}/googletest")
target_link_libraries(waywiser_googletest PUBLIC Threads::Threads)
add_library(GTest::gtest_main ALIAS waywiser_googletest)
