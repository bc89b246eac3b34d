// The Python module of the transfer library; _transfer.pyi declares it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "contexts.hpp"
#include "copies.hpp"
#include "errors.hpp"
#include "gil_release.hpp"
#include "host_memory.hpp"
#include "host_registration.hpp"
#include "operations.hpp"
#include "pending_transfers.hpp"
#include "plans.hpp"
#include "streams.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser::python {
namespace {

// The content of a Python object TransferHandle.
struct PyHandle {
    Handle pending;

    explicit PyHandle(Handle started) : pending(std::move(started)) {}
    PyHandle(PyHandle&&) = default;
    PyHandle& operator=(PyHandle&&) = default;
    PyHandle(const PyHandle&) = delete;
    PyHandle& operator=(const PyHandle&) = delete;
    ~PyHandle() {
        if (!pending) return;
        pending.reset();
        prune();
    }
};

// The content of a Python object TransferPlan.
struct PyPlan {
    Plan plan;  // null: it is closed
};

// The content of a Python object Context.
struct PyContext {
    Context state;

    explicit PyContext(const Options& options) {
        waywiser_status status = WAYWISER_OK;
        {
            const GilRelease unlocked;
            status = ContextState::create(options, state);
        }
        if (status == WAYWISER_INVALID) {
            const bool has_cpus = !options.cpus.empty() || !options.numa_nodes.empty();
            raise(Failure::invalid_transfer,
                  {.what = waywiser_last_error(),
                   .where = "Context",
                   .remedy = has_cpus ? ""  // the message has one
                                      : "pass relays=[...] with numbers of machine()[\"gpus\"]"});
        }
        check(status);
    }
    ~PyContext() { close(); }
    PyContext(const PyContext&) = delete;
    PyContext& operator=(const PyContext&) = delete;
    void close() {
        {
            const GilRelease unlocked;
            if (state) state->close();
        }
        prune_all();
    }
    // Reports what has come up since the last call.
    void report(Py_ssize_t level = 1) { report_warnings(*state, level, nb::find(this)); }
};

using Object = nb::handle;

template <class Define>
void define_copies(const Define& define) {
    define("copy", &copy, "dst"_a.none(), "src"_a.none(), nb::kw_only(), "stream"_a = nb::none(),
           "Copies src to dst, ordered in the stream.\n"
           "\n"
           "Returns with a host destination filled and a host source reusable. Between GPUs it "
           "returns\n"
           "at once. Raises TransferError.");
    define("copy_async", &copy_async, "dst"_a.none(), "src"_a.none(), nb::kw_only(),
           "stream"_a = nb::none(),
           "Starts a copy after what is in the stream, and returns at once. Raises TransferError.");
    define(
        "copy_batch", &copy_batch, nb::kw_only(), "dsts"_a.none(), "srcs"_a.none(),
        "stream"_a = nb::none(),
        "Copies each of srcs to the same one of dsts, as copy does, in one transfer. All sources "
        "are in\n"
        "one place, and so are all destinations. Both are named: copy_batch(dsts=..., srcs=...).");
    define("copy_batch_async", &copy_batch_async, nb::kw_only(), "dsts"_a.none(), "srcs"_a.none(),
           "stream"_a = nb::none(), "Starts what copy_batch does, and returns at once.");
    define("snapshot_batch", &snapshot_batch, nb::kw_only(), "dsts"_a.none(), "srcs"_a.none(),
           "stream"_a = nb::none(),
           "Copies arrays on a GPU to host arrays beside the stream, and returns at once.\n"
           "\n"
           "Later work in the stream does not wait for the copies. Call wait_source_read() of the "
           "handle before\n"
           "a source is changed.");
    define(
        "copy_blocks", &copy_blocks, "dst"_a.none(), "src"_a.none(), "dst_index"_a.none(),
        "src_index"_a.none(), nb::kw_only(), "stream"_a = nb::none(),
        "Copies src[src_index[i]] to dst[dst_index[i]] for all i, as copy does.\n"
        "\n"
        "Each block, an entry of the first dimension, is contiguous. An index is a sequence of "
        "integers\n"
        "or a one-dimensional array of them on the host. If one is wrong, nothing is copied, or of "
        "more\n"
        "than 32,768 blocks some.");
    define("copy_blocks_async", &copy_blocks_async, "dst"_a.none(), "src"_a.none(),
           "dst_index"_a.none(), "src_index"_a.none(), nb::kw_only(), "stream"_a = nb::none(),
           "Starts what copy_blocks does, and returns at once.");
}

template <class Define>
void define_files(const Define& define) {
    define("read", &read_file, "path_or_fd"_a.none(), "dst"_a.none(), nb::kw_only(), "offset"_a = 0,
           "nbytes"_a = nb::none(), "stream"_a = nb::none(),
           "Reads nbytes of a file at offset into a contiguous array, by default all of it.\n"
           "\n"
           "Returns the bytes that were read: fewer only at the end of the file. Raises "
           "TransferError.");
    define("read_async", &read_file_async, "path_or_fd"_a.none(), "dst"_a.none(), nb::kw_only(),
           "offset"_a = 0, "nbytes"_a = nb::none(), "stream"_a = nb::none(),
           "Starts a read and returns at once; result() gives the bytes.");
    define(
        "write", &write_file, "path_or_fd"_a.none(), "src"_a.none(), nb::kw_only(), "offset"_a = 0,
        "nbytes"_a = nb::none(), "truncate"_a.none() = false, "sync"_a.none() = false,
        "stream"_a = nb::none(),
        "Writes a contiguous array, or its first nbytes, to a file at offset.\n"
        "\n"
        "A path is created if it does not exist. With truncate, the file ends with the last byte "
        "written.\n"
        "With sync, the bytes have reached the disk. Returns the bytes that were written. Raises\n"
        "TransferError.");
    define("write_async", &write_file_async, "path_or_fd"_a.none(), "src"_a.none(), nb::kw_only(),
           "offset"_a = 0, "nbytes"_a = nb::none(), "truncate"_a.none() = false,
           "sync"_a.none() = false, "stream"_a = nb::none(),
           "Starts a write and returns at once; result() gives the bytes.");
}

template <class Define>
void define_operations(const Define& define) {
    define("submit", &submit_operations, "operations"_a.none(), nb::kw_only(),
           "stream"_a = nb::none(),
           "Starts Copy, CopyBlocks, Read and Write operations as one transfer, and returns at "
           "once.\n"
           "\n"
           "They are made in any order among themselves: none may read or write what another one "
           "writes.\n"
           "All arrays on GPUs are used in the same stream, unless stream is given. Errors name "
           "the\n"
           "operation. Raises TransferError.");
    define("plan", &plan_operations, "operations"_a.none(),
           "Prepares operations that are submitted again and again: returns a TransferPlan.\n"
           "\n"
           "They are checked and their files are opened once. The memory of the arrays stays as it "
           "is\n"
           "until the plan is closed. Raises TransferError.");
}

template <class Define>
void define_questions(const Define& define) {
    define("explain", &explain, "dst"_a = nb::none(), "src"_a = nb::none(),
           "dst_index"_a = nb::none(), "src_index"_a = nb::none(), nb::kw_only(),
           "dsts"_a = nb::none(), "srcs"_a = nb::none(),
           "Returns how copy(dst, src), copy_blocks(dst, src, dst_index, src_index) or\n"
           "copy_batch(dsts=..., srcs=...) would be done, and copies nothing.\n"
           "\n"
           "One line, or for a list one line for each method that moves some of its pieces. Raises "
           "what the\n"
           "copy would raise.");
    define("copy_method", &copy_method, "dst"_a.none(), "src"_a.none(),
           "Returns how copy(dst, src) would be done, and copies nothing: \"plain\" by calls of "
           "the GPU\n"
           "runtime or by the calling thread, \"chunked\" by threads of the library, \"list\" for "
           "arrays\n"
           "that are not contiguous, \"none\" without bytes. Raises what the copy would raise.");
    define("usage", &usage,
           "Returns what the context uses now and may use at most: threads, most_threads, "
           "pinned_bytes,\n"
           "most_pinned_bytes, transfers, gpu_bytes (staging memory on the GPU that has most),\n"
           "most_gpu_bytes (on each) and streams.");
    define(
        "stats", &stats,
        "Returns what the context has moved since it was made: transfers, bytes, failures and\n"
        "cancellations, and in methods the same of each method, with seconds; staging_waits and\n"
        "staging_wait_seconds, for which threads waited for staging memory, wake_ups of threads,"
        "\n"
        "and peak_pinned_bytes.");
    define("warnings", &warnings,
           "Returns the warnings of the context so far: a policy that is not used, memory that "
           "could\n"
           "not be pinned. Each is also a UserWarning, once per process.");
}

// Binds the same calls as methods of Context and as functions of the module. `Scope` is nb::class_
// or nb::module_; `context_of` returns the context of the first argument, or the default one.
template <class Define>
void define_calls(const Define& define) {
    define_copies(define);
    define_files(define);
    define_operations(define);
    define_questions(define);
}

// Converts the result of a call to Python.
inline PyHandle returned(Handle handle) { return PyHandle(std::move(handle)); }
inline PyPlan returned(Plan plan) { return PyPlan{std::move(plan)}; }
template <class Result>
Result returned(Result result) {
    return result;
}

// Makes a call, and reports the warnings that have come up since the last one.
template <class Report, class Call, class... Arguments>
auto reporting(const Context& context, const Report& report, Call call, Arguments... arguments) {
    if constexpr (std::is_void_v<decltype(call(context, arguments...))>) {
        call(context, arguments...);
        report();
    } else {
        auto result = returned(call(context, arguments...));
        report();
        return result;
    }
}

// The call that its asynchronous form is a form of: messages name that one.
std::string call_of(const std::string& name) {
    const std::size_t end = name.rfind("_async");
    return end == std::string::npos ? name : name.substr(0, end);
}

// Binds a method after `call` has been bound to its name: for arguments that do not fit.
template <class Class, class... Extra>
void reject_other_arguments(Class& scope, const char* name, const char* owner,
                            const Extra&... extra) {
    Signature signature = signature_of(name, extra...);
    signature.owner = owner;
    // The same as of the call, and its signature: the overload is no call of its own.
    const char* const doc = signature.doc;
    const std::string written = "def " + text(signature);
    scope.def(
        name,
        [signature = std::move(signature)](nb::handle self, const nb::args& by_position,
                                           const nb::kwargs& by_name) {
            if (!nb::isinstance<typename Class::Type>(self)) {
                raise(Failure::invalid_operand,
                      {.what = "it is called on an object " + given(self) +
                               ", which does not have this method",
                       .where = signature.owner + signature.call,
                       .remedy = "call it on a Context or a handle of waywiser.transfer"});
            }
            reject_arguments(signature, by_position, by_name);
        },
        nb::sig(written.c_str()), doc);
}

// The same for a function of the module.
template <class... Extra>
void reject_other_arguments_of(nb::module_& scope, const char* name, const Extra&... extra) {
    Signature signature = signature_of(name, extra...);
    const char* const doc = signature.doc;
    const std::string written = "def " + text(signature);
    scope.def(
        name,
        [signature = std::move(signature)](const nb::args& by_position, const nb::kwargs& by_name) {
            reject_arguments(signature, by_position, by_name);
        },
        nb::sig(written.c_str()), doc);
}

struct DefineMethods {
    nb::class_<PyContext>& scope;
    template <class Result, class... Arguments, class... Extra>
    void operator()(const char* name, Result (*call)(const Context&, Arguments...),
                    const Extra&... extra) const {
        scope.def(
            name,
            [call, where = call_of(name)](PyContext& self, Arguments... arguments) {
                const CallScope here(where.c_str());
                return reporting(self.state, [&] { self.report(); }, call, arguments...);
            },
            extra...);
        reject_other_arguments(scope, name, "", extra...);
    }
};

struct DefineFunctions {
    nb::module_& scope;
    template <class Result, class... Arguments, class... Extra>
    void operator()(const char* name, Result (*call)(const Context&, Arguments...),
                    const Extra&... extra) const {
        scope.def(
            name,
            [call, where = call_of(name)](Arguments... arguments) {
                const CallScope here(where.c_str());
                const Context& context = default_context();
                return reporting(context, [&] { report_warnings(*context); }, call, arguments...);
            },
            extra...);
        reject_other_arguments_of(scope, name, extra...);
    }
};

// None, or seconds from the caller. `call` is the name of the call in messages.
std::optional<double> seconds_of(nb::handle timeout, const char* call) {
    if (timeout.is_none()) return std::nullopt;
    const double seconds = PyFloat_AsDouble(timeout.ptr());
    if (seconds == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        raise(Failure::invalid_operand,
              {.what = "the timeout is " + given(timeout) + ", not a number of seconds",
               .where = call,
               .remedy = "pass seconds from 0 on, or None to wait without limit"});
    }
    return seconds;
}

nb::object info_of(const TransferState& state) {
    return nb::module_::import_("waywiser.transfer.transfer_info")
        .attr("TransferInfo")("ended"_a = state.ended, "moved"_a = state.moved,
                              "bytes"_a = state.bytes, "error"_a = state.error);
}

std::size_t wait_any(Object handles, Object timeout) {
    constexpr const char* kCall = "wait_any";
    PyObject* const tuple = PySequence_Tuple(handles.ptr());
    if (tuple == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
        PyErr_Clear();
        raise(Failure::invalid_operand,
              {.what = "handles is " + given(handles) + ", not a sequence of handles",
               .where = kCall,
               .remedy = "pass a list of what the asynchronous calls return"});
    }
    const auto all = nb::steal<nb::tuple>(tuple);
    std::vector<Handle> pending;
    pending.reserve(all.size());
    for (const Object one : all) {
        const PyHandle* handle = nullptr;
        if (!nb::try_cast(one, handle) || handle == nullptr) {
            raise(Failure::invalid_operand,
                  {.what = "handles[" + std::to_string(pending.size()) + "] is " + given(one) +
                           ", not a TransferHandle",
                   .where = kCall,
                   .remedy = "pass what the asynchronous calls return"});
        }
        pending.push_back(handle->pending);
    }
    return PendingTransfer::wait_any(pending, seconds_of(timeout, kCall));
}

template <class Define>
void define_ends(const Define& define) {
    define(
        "done", [](PyHandle& self) { return self.pending->done(); },
        "Returns whether the transfer has ended, in success or failure. Does not wait.");
    define(
        "result",
        [](PyHandle& self, Object timeout) {
            const Handle pending = self.pending;  // another thread may drop the handle
            return pending->wait(seconds_of(timeout, "TransferHandle.result"));
        },
        "timeout"_a = nb::none(),
        "Waits for the end, at most timeout seconds, and returns the bytes that arrived.\n\n"
        "Raises what the transfer failed with, and TransferTimeout if it has not ended; then "
        "it goes on.");
    define(
        "query",
        [](PyHandle& self) {
            const Handle pending = self.pending;
            return info_of(pending->query());
        },
        "Returns a TransferInfo: what is known of the transfer now. Does not wait.");
    define(
        "cancel",
        [](PyHandle& self) {
            const Handle pending = self.pending;
            pending->cancel();
        },
        "Ends the transfer early, and returns at once; result() raises TransferCancelled then.\n\n"
        "What no thread has begun is not moved. The arrays are in use until the transfer has "
        "ended.\n"
        "Copies that are in a stream of the GPU runtime are made all the same; if nothing else is "
        "left,\n"
        "the transfer ends as without this call.");
}

template <class Define>
void define_orders(const Define& define) {
    define(
        "wait",
        [](PyHandle& self, Object stream) {
            const CallScope here("TransferHandle.wait");
            const Handle pending = self.pending;
            pending->order(stream_of(stream));
        },
        "stream"_a = nb::none(),
        "Blocks until the last device operation is submitted, then makes the stream wait for "
        "it.\n\nWith a pageable destination it blocks until that is filled. None means the streams "
        "that the\ncall was ordered in.");
    define(
        "wait_source_read",
        [](PyHandle& self, Object stream) {
            const CallScope here("TransferHandle.wait_source_read");
            const Handle pending = self.pending;
            pending->order_change(stream_of(stream));
        },
        "stream"_a = nb::none(),
        "Makes the stream wait until the sources are read, so that later work in it may change "
        "them.\n\nBlocks the host first while source_read_pending is true. None means the streams "
        "that the "
        "call was\nordered in.");
}

void bind_handle(nb::module_& m) {
    nb::class_<PyHandle> handle(m, "TransferHandle", nb::is_weak_referenceable());
    const auto define = [&](const char* name, const auto& call, const auto&... extra) {
        handle.def(name, call, extra...);
        reject_other_arguments(handle, name, "TransferHandle.", extra...);
    };
    define_ends(define);
    define_orders(define);
    handle.def_prop_ro(
        "source_read_pending", [](PyHandle& self) { return self.pending->source_read_pending(); },
        "Whether wait_source_read would block the host now: not all reads are submitted yet.");
    handle.def("_descriptor", [](PyHandle& self) { return self.pending->descriptor(); });
    handle.def("__await__", [](nb::handle_t<PyHandle> self) {
        return nb::module_::import_("waywiser.transfer.awaiting").attr("await_transfer")(self);
    });
}

void bind_plan(nb::module_& m) {
    nb::class_<PyPlan> plan(m, "TransferPlan", nb::is_weak_referenceable());
    const auto define = [&](const char* name, const auto& call, const auto&... extra) {
        plan.def(name, call, extra...);
        reject_other_arguments(plan, name, "TransferPlan.", extra...);
    };
    define(
        "submit",
        [](PyPlan& self, Object stream) {
            const CallScope here("TransferPlan.submit");
            const Plan used = self.plan;  // another thread may close it
            if (!used) {
                raise(Failure::invalid_transfer,
                      {.what = "the plan is closed", .remedy = "make another one"});
            }
            return PyHandle(used->submit(stream_of(stream)));
        },
        nb::kw_only(), "stream"_a = nb::none(),
        "Starts the operations as one transfer, and returns at once.\n\n"
        "Without stream, it is ordered in the streams that the libraries of the arrays use now. "
        "Raises\n"
        "TransferError.");
    plan.def("close", [](PyPlan& self) { const Plan closed = std::move(self.plan); });
    plan.def("__enter__", [](Object self) { return self; });
    plan.def(
        "__exit__",
        [](PyPlan& self, Object, Object, Object) { const Plan closed = std::move(self.plan); },
        "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

void bind_wait_any(nb::module_& m) {
    const auto define = [&](const char* name, const auto& call, const auto&... extra) {
        m.def(name, call, extra...);
        reject_other_arguments_of(m, name, extra...);
    };
    define("wait_any", &wait_any, "handles"_a.none(), "timeout"_a = nb::none(),
           "Waits until one of the transfers has ended, at most timeout seconds.\n\n"
           "Returns the index of the first handle whose transfer has ended, in success or "
           "failure.\n"
           "Raises TransferTimeout if none has; then they go on.");
}

void close_context(PyContext& self) {
    self.close();
    self.report();
}

void bind_context(nb::module_& m) {
    nb::class_<PyContext> context(m, "Context", nb::is_weak_referenceable());
    context.def(
        "__init__",
        [](PyContext* self, std::optional<std::size_t> threads,
           std::optional<std::size_t> pinned_bytes, std::vector<int> relays,
           std::optional<std::size_t> relay_bytes, std::optional<std::size_t> max_queued_bytes,
           bool plain, bool peer_access, std::optional<std::size_t> list_multiprocessors,
           std::optional<double> spin_seconds, const nb::bytes& policy, std::vector<int> cpus,
           std::vector<int> numa_nodes) {
            new (self) PyContext({.threads = threads.value_or(0),
                                  .pinned_bytes = pinned_bytes.value_or(0),
                                  .relays = std::move(relays),
                                  .relay_bytes = relay_bytes.value_or(0),
                                  .max_queued_bytes = max_queued_bytes.value_or(0),
                                  .plain = plain,
                                  .peer_access = peer_access,
                                  .list_multiprocessors = list_multiprocessors.value_or(0),
                                  .spin_seconds = spin_seconds.value_or(0),
                                  .policy = policy.c_str(),
                                  .cpus = std::move(cpus),
                                  .numa_nodes = std::move(numa_nodes)});
        },
        nb::kw_only(), "threads"_a = nb::none(), "pinned_bytes"_a = nb::none(),
        "relays"_a = std::vector<int>(), "relay_bytes"_a = nb::none(),
        "max_queued_bytes"_a = nb::none(), "plain"_a = false, "peer_access"_a = true,
        "list_multiprocessors"_a = nb::none(), "spin_seconds"_a = nb::none(),
        "policy"_a = nb::bytes(""), "cpus"_a = std::vector<int>(),
        "numa_nodes"_a = std::vector<int>());
    context.def("_report_warnings", [](PyContext& self) { self.report(2); });
    context.def("close", &close_context);
    context.def("__enter__", [](Object self) { return self; });
    context.def(
        "__exit__", [](PyContext& self, Object, Object, Object) { close_context(self); },
        "type"_a.none(), "value"_a.none(), "traceback"_a.none());
    define_calls(DefineMethods{context});
}

std::string machine_json() {
    std::size_t needed = 0;
    std::string text;
    waywiser_status status = WAYWISER_OK;
    {
        const GilRelease unlocked;
        status = waywiser_machine(nullptr, 0, &needed);
        if (status == WAYWISER_OK) {
            text.resize(needed);
            status = waywiser_machine(text.data(), text.size(), &needed);
        }
    }
    check(status);
    text.resize(text.find('\0'));
    return text;
}

}  // namespace
}  // namespace waywiser::python

NB_MODULE(_transfer, m) {
    using namespace waywiser::python;
    nb::set_leak_warnings(false);  // a transfer that never ends is kept, with its objects
    count_forks();
    m.attr("version") = waywiser_version();
    bind_handle(m);
    bind_plan(m);
    bind_wait_any(m);
    bind_context(m);
    bind_host_memory(m);
    bind_host_registration(m);
    define_calls(DefineFunctions{m});
    m.def("machine_json", &machine_json);
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        close_all();
        prune_all();
        begin_exit();
    }));
}
