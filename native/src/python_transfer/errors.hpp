// Raises failures as exceptions of waywiser.transfer.errors.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>

#include "waywiser/transfer.h"

namespace waywiser::python {

// The classes of waywiser/transfer/errors.py.
enum class Failure {
    invalid_transfer,
    invalid_operand,
    unsupported,
    out_of_memory,
    gpu,
    gpu_lost,
    file,
    timeout,
    cancelled,
    forked,
    in_use,
    internal,
};

// One line: what happened, where, and the remedy. An empty `where` is the call under way.
struct Message {
    std::string what;
    std::string where;
    std::string remedy;
};

// The call that this thread is in, for messages that do not name it. `name` lives as long. All
// messages name the operation, if the call is for one of several.
class CallScope {
public:
    explicit CallScope(const char* name, std::optional<std::size_t> operation = std::nullopt);
    ~CallScope();
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

private:
    const char* name_;
    std::optional<std::size_t> operation_;
    const CallScope* before_;
    friend std::string where_of(const Message& message);
};

// "operation 3", for messages.
std::string operation_text(std::size_t operation);

// The name of its type, without the module.
std::string name_of_type(nanobind::handle object);
// "of type list", or "None": what was given for an argument.
std::string given(nanobind::handle object);
// As str. Bytes that are not UTF-8, from names in other encodings, are written as \xNN.
nanobind::object text_of(const std::string& bytes);

// Where a failure is, in the call under way.
std::string where_of(const Message& message);

// Needs the GIL, like all functions below. `error` is an errno value.
// `status`: the name of the status in C, if the library returned one.
[[noreturn]] void raise(Failure kind, const Message& message, std::size_t moved = 0, int error = 0,
                        const char* status = nullptr);
// The failure that a call of the library returned. Call it in the thread that made the call.
[[noreturn]] void raise_status(waywiser_status status, std::size_t moved = 0);
// `file_call`: the file and what was done with it, for calls on files.
[[noreturn]] void raise_status(waywiser_status status, const std::string& message,
                               std::size_t moved, int error, const std::string& file_call = {});
// The remedy for an errno value of a file; empty if there is none.
const char* file_remedy(int error);
[[noreturn]] void raise_forked();

inline void check(waywiser_status status, std::size_t moved = 0) {
    if (status != WAYWISER_OK) raise_status(status, moved);
}

}  // namespace waywiser::python
