// Who called CUDA in compiled code: return addresses of the calling thread, and what they belong
// to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace waywiser::trace::native {

enum class Owner : std::uint8_t {
    Tracer,   // this library
    Cuda,     // the driver, the runtime and libraries of CUDA
    Library,  // the transfer library
    Program,
};

struct Place {
    Owner owner = Owner::Program;
    std::string module, function;  // empty: unknown
    std::uint64_t offset = 0;
};

Place find_place(std::uintptr_t address);
Owner owner_of(const std::string& path);

// Walks outwards from the caller of this function until `visit` returns false.
using Visit = bool (*)(void* own, std::uintptr_t address);
void walk(Visit visit, void* own);

// Loads what a walk needs. A first walk in a callback of CUDA would.
void prepare();

}  // namespace waywiser::trace::native
