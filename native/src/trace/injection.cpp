// Where the driver starts this library: CUDA_INJECTION64_PATH names it.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "trace/tracer.hpp"

namespace waywiser::trace {
namespace {

const char* variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

// The library that the program's own environment named.
bool start_other(std::string& note) {
    const char* const path = variable("WAYWISER_TRACE_NEXT_INJECTION");
    if (path == nullptr) return false;
    // NOLINTNEXTLINE(clang-analyzer-optin.taint.GenericTaint): the user names it.
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const auto start = library == nullptr
                           ? nullptr
                           : reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
    if (start == nullptr) {
        note = std::string(path) + " cannot be started";
        return false;
    }
    start();
    note = std::string(path) + " is loaded too, and keeps what it has registered";
    return true;
}

void prepare_fork() {
    if (Tracer* const tracer = Tracer::current()) tracer->before_fork();
}

void go_on_in_parent() {
    if (Tracer* const tracer = Tracer::current()) tracer->after_fork();
}

// A forked child has no thread of the tracer, and nothing of what its parent has seen. What the
// parent has allocated is left as it is: another thread may have been using it.
void start_in_child() {
    const Tracer* const before = Tracer::current();
    if (before == nullptr) return;
    Tracer::set_current(Tracer::child_of(*before));
}

void finish_process() {
    Tracer* const tracer = Tracer::current();
    if (tracer == nullptr) return;
    tracer->finish();
    Tracer::set_current(nullptr);
}

void start() {
    const char* const folder = variable("WAYWISER_TRACE_FOLDER");
    std::string other_note;
    const bool other = start_other(other_note);
    if (folder == nullptr || Tracer::current() != nullptr) return;
    std::string why;
    auto* const tracer = new Tracer(open_cupti(driver_version(), why), folder);
    if (!other_note.empty()) tracer->note("other-injection", other_note);
    Tracer::set_current(tracer);
    if (tracer->cupti().library == nullptr) {
        tracer->note("no-cupti", why);
    } else {
        tracer->enable(other);
    }
    tracer->look_at_process();
    tracer->start_thread();
    pthread_atfork(prepare_fork, go_on_in_parent, start_in_child);
    std::atexit(finish_process);
}

}  // namespace
}  // namespace waywiser::trace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    try {
        waywiser::trace::start();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "waywiser trace: not started: %s\n", error.what());
    }
    return 1;
}
