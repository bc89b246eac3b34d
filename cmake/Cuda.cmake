# The CUDA language and CUDA::cudart_static, with the system's toolkit where it is new enough, else
# with the one that came as a Python package. The linked runtime opens the driver when it is first
# used, so one build serves machines with and without GPUs.

set(waywiser_scope "")
if(WAYWISER_LOCAL_GPUS)
    set(waywiser_scope --local)
endif()
execute_process(
    COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/build_backend/cuda_toolkit.py"
        "${PROJECT_BINARY_DIR}" ${waywiser_scope}
    RESULT_VARIABLE waywiser_status
    OUTPUT_VARIABLE waywiser_toolkit
    ERROR_VARIABLE waywiser_why
    ERROR_STRIP_TRAILING_WHITESPACE)
if(NOT waywiser_status EQUAL 0)
    message(FATAL_ERROR "${waywiser_why}")
endif()
string(JSON waywiser_compiler GET "${waywiser_toolkit}" compiler)
string(JSON waywiser_root GET "${waywiser_toolkit}" root)
string(JSON waywiser_version GET "${waywiser_toolkit}" version)
string(JSON waywiser_architectures GET "${waywiser_toolkit}" architectures)
string(JSON waywiser_flags GET "${waywiser_toolkit}" flags)
string(JSON waywiser_is_release GET "${waywiser_toolkit}" release)

set(CMAKE_CUDA_COMPILER "${waywiser_compiler}" CACHE FILEPATH "nvcc")
set(CMAKE_CUDA_ARCHITECTURES "${waywiser_architectures}" CACHE STRING
    "Generations of GPUs to build machine code for")
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
string(APPEND CMAKE_CUDA_FLAGS_INIT " ${waywiser_flags}")
if(CMAKE_CROSSCOMPILING)
    string(APPEND CMAKE_CUDA_FLAGS_INIT
        " -L${waywiser_root}/targets/sbsa-linux/lib -Xcompiler=--sysroot=${CMAKE_SYSROOT}")
endif()
set(CUDAToolkit_ROOT "${waywiser_root}")
message(STATUS "CUDA ${waywiser_version}: ${CMAKE_CUDA_COMPILER}, for ${CMAKE_CUDA_ARCHITECTURES}")

set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
# Not before: the test of a compiler that is not known yet would fail for want of its flag.
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
list(LENGTH CMAKE_CUDA_ARCHITECTURES waywiser_number)
if(waywiser_number GREATER 2)
    string(APPEND CMAKE_CUDA_FLAGS " --threads=2")
endif()
find_package(CUDAToolkit REQUIRED)

# waywiser_check_machine_code(TARGET): fails the build of a target of a release if a supported GPU
# would have to translate PTX, which an older driver cannot.
function(waywiser_check_machine_code target)
    if(waywiser_is_release)
        add_custom_command(TARGET ${target} POST_BUILD VERBATIM COMMAND "${Python_EXECUTABLE}"
            "${PROJECT_SOURCE_DIR}/build_backend/binary_checks.py"
            "${CUDAToolkit_BIN_DIR}/cuobjdump" "$<TARGET_FILE:${target}>")
    endif()
endfunction()
