// What all files of the C interface share: the status and message of a failure, checks of
// arguments, and structs that later versions of the header extend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "transfer/completion.hpp"
#include "transfer/engine.hpp"
#include "transfer/side.hpp"
#include "waywiser/transfer.h"

struct waywiser_context {
    std::shared_ptr<waywiser::transfer::Engine> engine;
};

struct waywiser_transfer {
    std::shared_ptr<waywiser::transfer::Engine> engine;
    waywiser::transfer::Completion started;
};

namespace waywiser::capi {

// What a failure is to a caller of the C interface.
struct FailureReport {
    waywiser_status status = WAYWISER_OK;
    std::string message;  // one line
    int error = 0;        // errno, if the status is WAYWISER_IO
};
// Of the exception that is being handled. Never throws; without memory the message is empty.
FailureReport failure_report() noexcept;

// The last failure of the calling thread.
const FailureReport& last_failure();
// Keeps the failure as the last one of the calling thread, and returns its status.
waywiser_status failed(FailureReport failure) noexcept;
waywiser_status failed(waywiser_status status, const std::string& message);

// The status of a call that may throw.
template <class Call>
waywiser_status guarded(const Call& call) {
    try {
        call();
        return WAYWISER_OK;
    } catch (...) {
        return failed(failure_report());
    }
}

void need(bool holds, const char* message);

// `argument` is its name in the header, `pass` what to pass instead.
template <class Pointer>
void need_argument(Pointer given, const char* argument, const char* pass) {
    if (given != nullptr) return;
    throw transfer::InvalidCopy(std::string("the argument ") + argument +
                                " is a null pointer: pass " + pass);
}
// The same for an array of `count` entries; `counted` is the name of that argument. A count with
// which the array would go past the memory of the program is a mistake, and nothing of it is read.
void need_entries(const void* given, std::size_t count, std::size_t entry_bytes,
                  const char* argument, const char* counted);
template <class Entry>
void need_array(const Entry* given, std::size_t count, const char* argument, const char* counted,
                const char* pass) {
    if (count == 0) return;
    need_argument(given, argument, pass);
    need_entries(static_cast<const void*>(given), count, sizeof(Entry), argument, counted);
}
void need_context(const waywiser_context* context);
void need_number(double timeout);

constexpr const char* kTransferPlace = "the address of a waywiser_transfer*";

// The sizes of structs in the first version of the header that had them. They never change.
std::size_t first_size(const waywiser_options&);
std::size_t first_size(const waywiser_usage&);
std::size_t first_size(const waywiser_description&);
std::size_t first_size(const waywiser_operation&);
std::size_t first_size(const waywiser_transfer_info&);
std::size_t first_size(const waywiser_tracer&);
std::size_t first_size(const waywiser_stats&);
std::size_t first_size(const waywiser_method_stats&);

// Throws InvalidCopy if a struct cannot have that many bytes. `name` is its name in messages.
void check_size(std::size_t given, std::size_t first, const char* name);
// Checks a caller's struct, which may be compiled with another version of the header: later ones
// only append fields.
template <class Struct>
void check_size(const Struct& given, const char* name) {
    check_size(given.size, first_size(given), name);
}

// The caller's struct; fields that its version of the header does not have are 0. Throws
// NotSupported if it sets a field that this version does not know.
void take(const void* given, std::size_t given_bytes, void* known, std::size_t known_bytes,
          const char* name);
template <class Struct>
Struct take(const Struct& given, const char* name) {
    check_size(given, name);
    Struct known{};
    take(&given, given.size, &known, sizeof known, name);
    return known;
}

// Fills the fields that both versions of the header have, sets others of the caller to 0, and
// `size` to the bytes that are filled.
template <class Struct>
void give(Struct* to, Struct from, const char* name) {
    check_size(*to, name);
    const std::size_t whole = to->size;
    from.size = std::min(whole, sizeof from);
    std::memset(to, 0, whole);
    std::memcpy(to, &from, from.size);
}

// Whether an enumeration of the interface has this value: a program may pass any. A value that it
// does not have must not be read as one.
template <class Enum>
bool is_known(const Enum& given, Enum last) {
    static_assert(sizeof(Enum) == sizeof(unsigned));
    unsigned value = 0;
    std::memcpy(&value, &given, sizeof value);
    return value <= static_cast<unsigned>(last);
}

// Writes what fits, and returns what all of it needs with its final NUL.
std::size_t write_text(const std::string& whole, char* text, std::size_t capacity);

}  // namespace waywiser::capi
