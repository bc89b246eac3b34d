#include "trace/native_frames.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <cstring>
#include <string_view>

namespace waywiser::trace::native {
namespace {

constexpr std::array<std::string_view, 13> kCudaNames{
    "libcuda",     "libcudart",   "libcupti",   "libcublas",    "libcudnn", "libcufft", "libcurand",
    "libcusolver", "libcusparse", "libnvidia-", "libnvjitlink", "libnccl",  "libnpp"};

struct Walk {
    Visit visit;
    void* own;
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* data) {
    const auto* const walk = static_cast<const Walk*>(data);
    const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
    if (address == 0 || !walk->visit(walk->own, address)) return _URC_END_OF_STACK;
    return _URC_NO_REASON;
}

// The program itself is named as its command was.
std::string full_path(const char* name) {
    if (name[0] == '/') return name;
    std::array<char, 4096> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : name;
}

std::string own_path() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_path), &info) == 0 || info.dli_fname == nullptr)
        return {};
    return info.dli_fname;
}

}  // namespace

Owner owner_of(const std::string& path) {
    static const auto& own = *new std::string(own_path());  // is used until the process has ended
    if (path == own) return Owner::Tracer;
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    if (name.starts_with("libwaywiser_transfer")) return Owner::Library;
    for (const std::string_view begins : kCudaNames) {
        if (name.starts_with(begins)) return Owner::Cuda;
    }
    return Owner::Program;
}

Place find_place(std::uintptr_t address) {
    Dl_info info{};
    Place place;
    place.offset = address;
    // A return address may be that of the next function.
    if (dladdr(reinterpret_cast<const void*>(address - 1), &info) == 0) return place;
    if (info.dli_fname != nullptr) place.module = full_path(info.dli_fname);
    if (info.dli_sname != nullptr) place.function = info.dli_sname;
    place.offset = address - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    place.owner = owner_of(place.module);
    return place;
}

void walk(Visit visit, void* own) {
    Walk data{visit, own};
    _Unwind_Backtrace(step, &data);
}

void prepare() {
    walk([](void*, std::uintptr_t) { return true; }, nullptr);
    find_place(reinterpret_cast<std::uintptr_t>(&prepare) + 1);
}

}  // namespace waywiser::trace::native
