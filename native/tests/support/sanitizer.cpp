#include "support/sanitizer.hpp"

namespace waywiser::test {

Sanitizer sanitizer() {
#if defined(__SANITIZE_THREAD__)
    return Sanitizer::thread;
#elif defined(__SANITIZE_ADDRESS__)
    return Sanitizer::address;
#else
    return Sanitizer::none;
#endif
}

bool is_emulated() { return WAYWISER_EMULATED; }

}  // namespace waywiser::test
