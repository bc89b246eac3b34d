// Memory that the program owns, page-locked for all GPUs: process wide, independent of any engine.
#pragma once

#include <cstddef>
#include <stdexcept>

namespace waywiser::transfer {

// More memory than can be page-locked now. The message has the limits.
class TooMuchToPin : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// It is unknown whether a GPU still uses memory, which stays registered.
class PossiblyInUse : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Page-locks memory, which stays the caller's. Throws InvalidCopy if a part of it is registered,
// page-locked otherwise, of a GPU, or not mapped; NotSupported without a GPU; TooMuchToPin;
// gpu::Error.
void register_memory(void* data, std::size_t bytes);

// Waits for all GPUs that the process uses, then unlocks the memory that was registered at this
// address. Throws InvalidCopy if there is none, and PossiblyInUse. In a forked child it does
// nothing for the registrations of the parent.
void unregister_memory(void* data);

}  // namespace waywiser::transfer
