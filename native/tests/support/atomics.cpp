// The functions that atomic operations of tests call, since tests are compiled with
// -fno-inline-atomics: the thread sanitizer sees how tests order their threads, although their
// objects are compiled without it.
#include <cstdint>

// NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming): types and names of
// functions
#define WAYWISER_FETCH(name, size, type)                                                      \
    extern "C" type waywiser_##name##_##size(volatile void* at, type value,                   \
                                             int order) __asm__("__atomic_" #name "_" #size); \
    extern "C" type waywiser_##name##_##size(volatile void* at, type value, int order) {      \
        return __atomic_##name(static_cast<volatile type*>(at), value, order);                \
    }

#define WAYWISER_ATOMICS(size, type)                                                            \
    extern "C" type waywiser_load_##size(const volatile void* at,                               \
                                         int order) __asm__("__atomic_load_" #size);            \
    extern "C" type waywiser_load_##size(const volatile void* at, int order) {                  \
        return __atomic_load_n(static_cast<const volatile type*>(at), order);                   \
    }                                                                                           \
    extern "C" void waywiser_store_##size(volatile void* at, type value,                        \
                                          int order) __asm__("__atomic_store_" #size);          \
    extern "C" void waywiser_store_##size(volatile void* at, type value, int order) {           \
        __atomic_store_n(static_cast<volatile type*>(at), value, order);                        \
    }                                                                                           \
    extern "C" type waywiser_exchange_##size(volatile void* at, type value,                     \
                                             int order) __asm__("__atomic_exchange_" #size);    \
    extern "C" type waywiser_exchange_##size(volatile void* at, type value, int order) {        \
        return __atomic_exchange_n(static_cast<volatile type*>(at), value, order);              \
    }                                                                                           \
    extern "C" bool waywiser_compare_exchange_##size(                                           \
        volatile void* at, void* expected, type value, int success,                             \
        int failure) __asm__("__atomic_compare_exchange_" #size);                               \
    extern "C" bool waywiser_compare_exchange_##size(volatile void* at, void* expected,         \
                                                     type value, int success, int failure) {    \
        return __atomic_compare_exchange_n(static_cast<volatile type*>(at),                     \
                                           static_cast<type*>(expected), value, false, success, \
                                           failure);                                            \
    }                                                                                           \
    WAYWISER_FETCH(fetch_add, size, type)                                                       \
    WAYWISER_FETCH(fetch_sub, size, type)                                                       \
    WAYWISER_FETCH(fetch_and, size, type)                                                       \
    WAYWISER_FETCH(fetch_or, size, type)                                                        \
    WAYWISER_FETCH(fetch_xor, size, type)

WAYWISER_ATOMICS(1, std::uint8_t)
WAYWISER_ATOMICS(2, std::uint16_t)
WAYWISER_ATOMICS(4, std::uint32_t)
WAYWISER_ATOMICS(8, std::uint64_t)
// NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)
