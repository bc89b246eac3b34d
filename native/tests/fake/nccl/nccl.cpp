// NCCL for the fake GPU: a shared library with the functions that are used of it. Its operations
// run on the fake's streams, whose handles say how to enqueue work. A collective completes only
// when all ranks have started it, in the same order; else it hangs on each rank until that rank's
// communicator is aborted. So does a send without a receive of the same size. Ranks may be of one
// process or of several, which share memory that the identifier names. A communicator whose ranks
// have not all been made is not ready. The call that makes it
// blocks, or the caller polls its error.
//
// WAYWISER_FAKE_NCCL, read at first, or waywiser_fake_nccl() configure it with
// `key=value;key=value;...`:
//
// | key     | value  | what it does                                                       |
// |---------|--------|--------------------------------------------------------------------|
// | rate    | GB/s   | of every operation; 5                                              |
// | send    | GB/s   | of operations that only send, if they are slower                   |
// | receive | GB/s   | of operations that only receive, if they are slower                |
// | flip    | number | the operation with this number writes one wrong bit                |
// | spoil   | number | of those that write, the one with this number writes one wrong bit |
// | miss    | number | the operation with this number never starts, of one rank           |
// | crash   | number | the operation with this number kills the process                   |
// | error   | number | from the operation with this number on, the communicator has an    |
// |         |        | error, which its rank sees when it asks                            |
// | least   | bytes  | smaller operations have no number                                  |
// | wrong   | 1      | numbered operations that write write one wrong bit                 |
// | absent  | 1      | its ranks do not join                                              |
// | stuck   | 1      | an abort never returns                                             |
// | version | number | its version, as NCCL writes 2.27.3: 22703                          |
// | busy    | factor | so many times as long while streams of nobody's rank work          |
//
// Operations are counted from 1, in the order in which they are enqueued: those of a group by rank.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake/handles.hpp"
#include "fake/nccl/world.hpp"

using waywiser::fake::StreamHandle;
using waywiser::fake::nccl::Receive;
using waywiser::fake::nccl::Send;
using waywiser::fake::nccl::World;

struct ncclComm {
    std::shared_ptr<World> world;
    int rank;
    bool blocking = true;
    bool failed = false;
};

namespace {

using Comm = ncclComm*;
constexpr int kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5,
              kRemoteError = 6, kInProgress = 7;
constexpr unsigned kConfigMagic = 0xcafebeef;
constexpr auto kLatency = std::chrono::microseconds(5);

struct Options {
    double gb_per_s = 5;
    double send_gb_per_s = 1e9, receive_gb_per_s = 1e9;
    std::size_t flip = 0, spoil = 0, miss = 0, crash = 0, error = 0, least = 0;
    bool wrong = false, absent = false, stuck = false;
    int version = 22703;
    double busy = 1;
};

struct State {
    std::mutex mutex;
    Options options;
    bool configured = false;
    std::size_t operations = 0, writes = 0;
};

State& state() {
    static State& all = *new State();
    return all;
}

void configure_locked(const std::string& text) {
    Options options;
    std::istringstream stream(text);
    for (std::string each; std::getline(stream, each, ';');) {
        const auto equals = each.find('=');
        const std::string key = each.substr(0, equals);
        const double value = std::strtod(each.c_str() + equals + 1, nullptr);
        if (key == "busy") options.busy = value;
        if (key == "rate") options.gb_per_s = value;
        if (key == "send") options.send_gb_per_s = value;
        if (key == "receive") options.receive_gb_per_s = value;
        if (key == "flip") options.flip = static_cast<std::size_t>(value);
        if (key == "spoil") options.spoil = static_cast<std::size_t>(value);
        if (key == "miss") options.miss = static_cast<std::size_t>(value);
        if (key == "crash") options.crash = static_cast<std::size_t>(value);
        if (key == "error") options.error = static_cast<std::size_t>(value);
        if (key == "least") options.least = static_cast<std::size_t>(value);
        if (key == "wrong") options.wrong = value != 0;
        if (key == "absent") options.absent = value != 0;
        if (key == "stuck") options.stuck = value != 0;
        if (key == "version") options.version = static_cast<int>(value);
    }
    state().options = options;
    state().configured = true;
    state().operations = state().writes = 0;
}

void configure(const std::string& text) {
    const std::lock_guard lock(state().mutex);
    configure_locked(text);
}

Options& options_locked() {
    if (!state().configured) {
        const char* text = std::getenv("WAYWISER_FAKE_NCCL");
        configure_locked(text == nullptr ? "" : text);
    }
    return state().options;
}

Options current_options() {
    const std::lock_guard lock(state().mutex);
    return options_locked();
}

// The number of the next operation, and that of those that write; 0 if it has none.
struct Number {
    std::size_t operation = 0, write = 0;
};
std::pair<Number, Options> count(std::size_t bytes, bool writes) {
    const std::lock_guard lock(state().mutex);
    const Options& options = options_locked();
    if (bytes < options.least) return {{}, options};
    return {{++state().operations, writes ? ++state().writes : 0}, options};
}

struct Operation {
    Comm comm = nullptr;  // may end before the operation does
    std::shared_ptr<World> world;
    int rank = 0;
    StreamHandle* stream = nullptr;
    waywiser::fake::nccl::Kind kind{};  // of a collective; unset: sends and receives
    bool collective = false;
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::byte* last = nullptr;  // that it writes
    std::size_t bytes = 0;
};

double rate_of(const Operation& operation, const Options& options) {
    double rate = options.gb_per_s;
    if (operation.receives.empty()) rate = std::min(rate, options.send_gb_per_s);
    if (operation.sends.empty()) rate = std::min(rate, options.receive_gb_per_s);
    return rate;
}

void enqueue(Operation operation) {
    const auto [number, options] = count(operation.bytes, operation.last != nullptr);
    const auto is = [n = number.operation](std::size_t fault) { return n != 0 && n == fault; };
    if (is(options.crash)) raise(SIGKILL);
    if (is(options.error)) operation.comm->failed = true;
    if (is(options.miss)) return;
    const bool flip =
        is(options.flip) || (number.write != 0 && (options.wrong || number.write == options.spoil));
    StreamHandle& stream = *operation.stream;
    stream.enqueue(stream, [operation = std::move(operation), flip, options] {
        const auto begin = std::chrono::steady_clock::now();
        World& world = *operation.world;
        const int rank = operation.rank;
        if (operation.collective) world.start(rank, operation.kind);
        const bool others =
            operation.stream->busy() > static_cast<std::size_t>(operation.world->size());
        const double nanoseconds = static_cast<double>(operation.bytes) /
                                   rate_of(operation, options) * (others ? options.busy : 1);
        const auto end =
            begin + kLatency + std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
        world.exchange(rank, operation.sends, operation.receives);
        if (operation.collective) world.finish(rank);
        if (flip && operation.last != nullptr) *operation.last ^= std::byte{1};
        std::this_thread::sleep_until(end);
    });
}

// What a call returns that starts something.
int started(const ncclComm* comm) { return comm->blocking ? kSuccess : kInProgress; }

thread_local int depth = 0;
thread_local std::vector<Operation> waiting;

// Sends and receives of a group on one stream are one operation.
int submit(Operation operation) {
    const Comm comm = operation.comm;
    if (comm == nullptr || operation.stream == nullptr) return kInvalidArgument;
    if (!comm->world->is_whole()) return kInvalidArgument;
    operation.world = comm->world;
    operation.rank = comm->rank;
    if (depth == 0) {
        enqueue(std::move(operation));
        return started(comm);
    }
    for (Operation& other : waiting) {
        if (operation.collective || other.collective || other.comm != operation.comm ||
            other.stream != operation.stream) {
            continue;
        }
        std::ranges::move(operation.sends, std::back_inserter(other.sends));
        std::ranges::move(operation.receives, std::back_inserter(other.receives));
        if (operation.last != nullptr) other.last = operation.last;
        other.bytes += operation.bytes;
        return kSuccess;
    }
    waiting.push_back(std::move(operation));
    return kSuccess;
}

std::size_t size_of(int type) { return type < 2 ? 1 : type < 4 ? 4 : type == 7 ? 4 : 8; }

std::byte* at(void* data, std::size_t offset) { return static_cast<std::byte*>(data) + offset; }
const std::byte* at(const void* data, std::size_t offset) {
    return static_cast<const std::byte*>(data) + offset;
}

Operation collective(const char* name, std::size_t bytes, int type, int root, Comm comm,
                     void* stream, void* to, std::size_t written) {
    Operation made{.comm = comm, .stream = static_cast<StreamHandle*>(stream), .collective = true};
    std::strncpy(made.kind.name, name, sizeof made.kind.name - 1);
    made.kind.bytes = bytes;
    made.kind.type = type;
    made.kind.root = root;
    made.bytes = bytes;
    if (written > 0) made.last = at(to, written - 1);
    return made;
}

}  // namespace

extern "C" {

struct ncclUniqueId {
    char internal[128];
};

// How ncclConfig_t begins.
struct ncclConfig {
    std::size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};

// Not of NCCL: configures this library.
void waywiser_fake_nccl(const char* text) { configure(text); }
// Ends what hangs, as an abort does, but leaves the communicator.
void waywiser_fake_nccl_end(Comm comm) { comm->world->abort(comm->rank); }

int ncclGetVersion(int* version) {
    const std::lock_guard lock(state().mutex);
    *version = options_locked().version;
    return kSuccess;
}

const char* ncclGetErrorString(int result) {
    switch (result) {
        case kSuccess: return "no error";
        case kSystemError: return "unhandled system error";
        case kInvalidArgument: return "invalid argument";
        case kInvalidUsage: return "invalid usage";
        case kRemoteError: return "remote process exited or there was a network error";
        case kInProgress: return "NCCL operation in progress";
        default: return "unknown result code";
    }
}

int ncclCommInitAll(Comm* comms, int size, const int*) {
    if (size < 1 || size > waywiser::fake::nccl::kMostRanks) return kInvalidArgument;
    const auto world = World::of_process(size);
    if (world == nullptr) return kSystemError;
    for (int rank = 0; rank < size; ++rank) comms[rank] = new ncclComm{world, rank};
    return kSuccess;
}

int ncclGetUniqueId(ncclUniqueId* id) {
    const std::string name = World::create();
    if (name.empty() || name.size() >= sizeof id->internal) return kSystemError;
    std::memset(id, 0, sizeof *id);
    std::memcpy(id->internal, name.data(), name.size());
    return kSuccess;
}

int ncclCommInitRankConfig(Comm* comm, int size, ncclUniqueId id, int rank,
                           const ncclConfig* config) {
    if (rank < 0 || rank >= size || size > waywiser::fake::nccl::kMostRanks)
        return kInvalidArgument;
    if (config != nullptr && (config->magic != kConfigMagic || config->size < sizeof *config))
        return kInvalidArgument;
    const auto world =
        current_options().absent ? World::of_absent(size) : World::join(id.internal, rank, size);
    if (world == nullptr) return kSystemError;
    *comm = new ncclComm{world, rank, config == nullptr || config->blocking != 0};
    if ((*comm)->blocking) world->await_all(rank);
    return started(*comm);
}

int ncclCommInitRank(Comm* comm, int size, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}

int ncclCommGetAsyncError(Comm comm, int* error) {
    if (comm->failed) {
        *error = kSystemError;
    } else if (comm->world->has_lost(comm->rank)) {
        *error = kRemoteError;
    } else {
        *error = comm->world->is_whole() ? kSuccess : kInProgress;
    }
    return kSuccess;
}

int ncclCommAbort(Comm comm) {
    while (current_options().stuck) std::this_thread::sleep_for(std::chrono::seconds(1));
    comm->world->abort(comm->rank);
    delete comm;
    return kSuccess;
}

int ncclCommFinalize(Comm comm) { return started(comm); }

int ncclCommDestroy(Comm comm) {
    delete comm;
    return kSuccess;
}

int ncclGroupStart() {
    ++depth;
    return kSuccess;
}

int ncclGroupEnd() {
    if (depth == 0) return kInvalidUsage;
    if (--depth > 0) return kSuccess;
    int result = kSuccess;
    for (Operation& each : std::exchange(waiting, {})) {
        result = std::max(result, started(each.comm));
        enqueue(std::move(each));
    }
    return result;
}

int ncclSend(const void* data, std::size_t count, int type, int to, Comm comm, void* stream) {
    const std::size_t bytes = count * size_of(type);
    return submit({.comm = comm,
                   .stream = static_cast<StreamHandle*>(stream),
                   .sends = {{to, at(data, 0), bytes}},
                   .bytes = bytes});
}

int ncclRecv(void* data, std::size_t count, int type, int from, Comm comm, void* stream) {
    const std::size_t bytes = count * size_of(type);
    return submit({.comm = comm,
                   .stream = static_cast<StreamHandle*>(stream),
                   .receives = {{from, at(data, 0), bytes}},
                   .last = bytes > 0 ? at(data, bytes - 1) : nullptr,
                   .bytes = bytes});
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, Comm comm,
                  void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation made = collective("allreduce", bytes, type, 0, comm, stream, to, bytes);
    for (int rank = 0; rank < comm->world->size(); ++rank) {
        made.sends.push_back({rank, at(from, 0), bytes});
        made.receives.push_back({rank, at(to, 0), bytes, type});
    }
    return submit(std::move(made));
}

int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int, Comm comm,
                      void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation made = collective("reduce-scatter", bytes, type, 0, comm, stream, to, bytes);
    for (int rank = 0; rank < comm->world->size(); ++rank) {
        const auto n = static_cast<std::size_t>(rank);
        made.sends.push_back({rank, at(from, n * bytes), bytes});
        made.receives.push_back({rank, at(to, 0), bytes, type});
    }
    return submit(std::move(made));
}

int ncclAllGather(const void* from, void* to, std::size_t count, int type, Comm comm,
                  void* stream) {
    const std::size_t bytes = count * size_of(type);
    const auto size = static_cast<std::size_t>(comm->world->size());
    Operation made = collective("allgather", bytes, type, 0, comm, stream, to, bytes * size);
    for (std::size_t n = 0; n < size; ++n) {
        made.sends.push_back({static_cast<int>(n), at(from, 0), bytes});
        made.receives.push_back({static_cast<int>(n), at(to, n * bytes), bytes});
    }
    return submit(std::move(made));
}

int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, Comm comm,
                  void* stream) {
    const std::size_t bytes = count * size_of(type);
    Operation made = collective("broadcast", bytes, type, root, comm, stream, to, bytes);
    if (comm->rank == root) {
        for (int rank = 0; rank < comm->world->size(); ++rank) {
            made.sends.push_back({rank, at(from, 0), bytes});
        }
    }
    made.receives.push_back({root, at(to, 0), bytes});
    return submit(std::move(made));
}

}  // extern "C"
