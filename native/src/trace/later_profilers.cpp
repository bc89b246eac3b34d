#include "trace/later_profilers.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "trace/native_frames.hpp"
#include "trace/tracer.hpp"

namespace waywiser::trace {
namespace {

// The functions of CUPTI that these stand before; written before the first library calls them.
std::atomic<decltype(Cupti::subscribe)> true_subscribe{nullptr};
std::atomic<decltype(Cupti::register_buffers)> true_register{nullptr};
std::atomic<unsigned long long> libraries_seen{0};

int subscribe_other(cupti::Subscriber* subscriber, cupti::CallFunction function, void* own) {
    if (Tracer* const tracer = Tracer::current()) tracer->leave_callbacks();
    return true_subscribe.load()(subscriber, function, own);
}

int register_other(cupti::BufferNeeded needed, cupti::BufferFilled filled) {
    if (Tracer* const tracer = Tracer::current()) tracer->leave_buffers();
    return true_register.load()(needed, filled);
}

// What a library has of its own symbols and of the places that they are entered at.
struct Dynamic {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    std::array<std::pair<const ElfW(Rela)*, std::size_t>, 2> relocations{};
};

template <typename Pointer>
Pointer* at(const dl_phdr_info& info, ElfW(Addr) address) {
    // The loader has added the base to most of these.
    return reinterpret_cast<Pointer*>(address < info.dlpi_addr ? info.dlpi_addr + address
                                                               : address);
}

Dynamic read_dynamic(const dl_phdr_info& info, const ElfW(Dyn) * entry) {
    Dynamic found;
    for (; entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
            case DT_SYMTAB: found.symbols = at<const ElfW(Sym)>(info, entry->d_un.d_ptr); break;
            case DT_STRTAB: found.names = at<const char>(info, entry->d_un.d_ptr); break;
            case DT_JMPREL:
                found.relocations[0].first = at<const ElfW(Rela)>(info, entry->d_un.d_ptr);
                break;
            case DT_PLTRELSZ:
                found.relocations[0].second = entry->d_un.d_val / sizeof(ElfW(Rela));
                break;
            case DT_RELA:
                found.relocations[1].first = at<const ElfW(Rela)>(info, entry->d_un.d_ptr);
                break;
            case DT_RELASZ:
                found.relocations[1].second = entry->d_un.d_val / sizeof(ElfW(Rela));
                break;
            default: break;
        }
    }
    return found;
}

bool is_address_of_function(std::size_t type) {
#if defined(__aarch64__)
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#endif
}

// Whether pages of the library were made read-only when it was loaded.
bool is_read_only(const dl_phdr_info& info, std::uintptr_t address) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const auto& part = info.dlpi_phdr[i];
        const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_GNU_RELRO && address >= begin && address < begin + part.p_memsz)
            return true;
    }
    return false;
}

void enter(const dl_phdr_info& info, std::uintptr_t place, void* function) {
    const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* const page = reinterpret_cast<void*>(place / size * size);
    const bool read_only = is_read_only(info, place);
    if (read_only && mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return;
    std::atomic_ref<void*>(*reinterpret_cast<void**>(place)).store(function);
    if (read_only) mprotect(page, size, PROT_READ);
}

// Where a call of a function of CUPTI goes. One that another CUPTI has is left as it is; one that
// was never called may not be known yet.
void redirect(const dl_phdr_info& info, std::uintptr_t place, void* from, void* to) {
    void* const now = *reinterpret_cast<void**>(place);
    Dl_info target{};
    const bool known = dladdr(now, &target) != 0 && target.dli_fname != nullptr &&
                       std::strcmp(target.dli_fname, info.dlpi_name) != 0;
    if (now == from || !known) enter(info, place, to);
}

int look_at_library(dl_phdr_info* info, std::size_t, void* cupti_data) {
    const auto& cupti = *static_cast<const Cupti*>(cupti_data);
    const std::string path = info->dlpi_name;
    if (path == cupti.path || native::owner_of(path) == native::Owner::Tracer) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type != PT_DYNAMIC) continue;
        const Dynamic found =
            read_dynamic(*info, at<const ElfW(Dyn)>(*info, info->dlpi_addr + part.p_vaddr));
        if (found.symbols == nullptr || found.names == nullptr) return 0;
        for (const auto& [first, count] : found.relocations) {
            for (std::size_t each = 0; first != nullptr && each < count; ++each) {
                const ElfW(Rela) & entry = first[each];
                if (!is_address_of_function(ELF64_R_TYPE(entry.r_info))) continue;
                const char* const name =
                    found.names + found.symbols[ELF64_R_SYM(entry.r_info)].st_name;
                if (std::strncmp(name, "cupti", 5) != 0) continue;
                const std::uintptr_t place = info->dlpi_addr + entry.r_offset;
                if (std::strcmp(name, "cuptiSubscribe") == 0)
                    redirect(*info, place, reinterpret_cast<void*>(cupti.subscribe),
                             reinterpret_cast<void*>(subscribe_other));
                if (std::strcmp(name, "cuptiActivityRegisterCallbacks") == 0)
                    redirect(*info, place, reinterpret_cast<void*>(cupti.register_buffers),
                             reinterpret_cast<void*>(register_other));
            }
        }
    }
    return 0;
}

int count_libraries(dl_phdr_info* info, std::size_t, void* count) {
    *static_cast<unsigned long long*>(count) = info->dlpi_adds;
    return 1;
}

}  // namespace

void make_way_for_profilers(const Cupti& cupti) {
    if (cupti.subscribe == nullptr || cupti.unsubscribe == nullptr) return;
    unsigned long long loaded = 0;
    dl_iterate_phdr(count_libraries, &loaded);
    if (libraries_seen.exchange(loaded) == loaded) return;
    true_subscribe = cupti.subscribe;
    true_register = cupti.register_buffers;
    Cupti own = cupti;
    dl_iterate_phdr(look_at_library, &own);
}

}  // namespace waywiser::trace
