#include "nccl/fake_nccl.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>

#include "nccl/library.hpp"

namespace waywiser::test {
namespace {

// Before the tests ask which paths there are.
const bool named = [] {
    nccl::use_file(fake_nccl_file());
    return true;
}();

template <class Signature>
Signature* function(const char* name) {
    void* library = dlopen(fake_nccl_file(), RTLD_NOW | RTLD_LOCAL);
    void* found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<Signature*>(found);
}

}  // namespace

void configure_fake_nccl(const char* text) {
    function<void(const char*)>("waywiser_fake_nccl")(text);
}

void end_fake_nccl(const nccl::Communicators& communicators) {
    for (std::size_t n = 0; n < communicators.gpus().size(); ++n) {
        function<void(nccl::Communicator)>("waywiser_fake_nccl_end")(communicators.of(n));
    }
}

}  // namespace waywiser::test
