# waywiser_fetch_packages(RESULT PACKAGE...)
#
# Unpacks packages of this machine's distribution into WAYWISER_DEPENDENCIES, without root and
# without touching the system. RESULT is empty, or one line that says why it could not.
function(waywiser_fetch_packages result)
    find_package(Python 3.11 QUIET REQUIRED COMPONENTS Interpreter)
    list(JOIN ARGN " " names)
    message(STATUS "Fetching ${names} into ${WAYWISER_DEPENDENCIES}")
    execute_process(
        COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/build_backend/debian.py"
            "${WAYWISER_DEPENDENCIES}" ${ARGN}
        RESULT_VARIABLE status
        ERROR_VARIABLE why
        ERROR_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
        set(why "")
    endif()
    set(${result} "${why}" PARENT_SCOPE)
endfunction()
