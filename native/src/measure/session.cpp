#include "waywiser/session.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "gpu/gpu.hpp"
#include "host/affinity.hpp"
#include "host/cache.hpp"
#include "host/clock.hpp"
#include "measure/bounded_engine.hpp"
#include "measure/buffer_plan.hpp"
#include "measure/buffers.hpp"
#include "measure/clocks.hpp"
#include "measure/evidence.hpp"
#include "measure/executor_of.hpp"
#include "measure/locality.hpp"
#include "measure/prepared_workload.hpp"
#include "measure/rank_workload.hpp"
#include "measure/sampling.hpp"
#include "measure/timer.hpp"
#include "measure/watchdog.hpp"
#include "measure/who_copies.hpp"

namespace waywiser {
namespace {

// The stop reason of ranks that take no samples: only the leader knows the reason.
constexpr const char* kStopOfFollowers = "converged";

bool between_ranks(const Request& request) {
    if (request.operation) return request.operation->place.kind == Place::Kind::rank;
    return std::ranges::any_of(request.transfers, [](const Transfer& transfer) {
        return transfer.path.source.at_rank() || transfer.path.destination.at_rank();
    });
}

// The transfers of a sustained workload that is being measured.
struct Running {
    explicit Running(const Request& request) : underway(request.transfers.size()) {
        for (const Transfer& transfer : request.transfers) texts.push_back(transfer.text());
    }
    std::vector<std::string> texts;
    std::vector<measure::Underway> underway;
};

}  // namespace

bool Request::sustained() const {
    return transfers.size() > 1 && std::ranges::any_of(transfers, [](const Transfer& transfer) {
               return transfer.path.source.place.several() && !transfer.path.source.at_rank();
           });
}

struct Session::State {
    Machine machine;
    SessionOptions options;
    measure::BufferPool pool{machine, options.memory_bytes};
    // Its threads and staging memory last from series to series.
    measure::BoundedEngine engine{machine, options.memory_bytes, options.peer_access};
    measure::Streams streams;
    measure::ClockRaiser clocks;
    measure::BufferSides sides{machine, streams};
    std::set<std::pair<int, int>> peers;        // with peer access enabled
    std::optional<gpu::Gate> gate;              // made at the first device-timed workload,
    std::optional<measure::Watchdog> watchdog;  // since both need a GPU
    std::shared_ptr<Running> running;           // any thread reads it
    std::mutex running_guard;

    void make_gate() {
        if (gate) return;
        gate.emplace(machine.gpus.front().index);
        watchdog.emplace(*gate, options.watchdog_seconds);
    }

    void admit(const Request& request) const;
    void enable_peers(const Transfer& transfer);
    void enable_peers(int one, int other);
    [[nodiscard]] TimingMode timing(const Request& request) const;
    transfer::Engine& engine_for(const Request& request);
    std::unique_ptr<measure::Timer> timer_for(const measure::PreparedWorkload& prepared,
                                              const Request& request, Outcome& outcome);
    void run(std::shared_ptr<Running> next);
    void report_sides(const measure::PreparedWorkload& prepared, const Request& request,
                      Outcome& outcome);
    Outcome measure_transfers(const Request& request,
                              const std::function<void(const Progress&)>& progress,
                              const Evidence& evidence);
    Outcome measure_between_ranks(const Request& request,
                                  const std::function<void(const Progress&)>& progress);
    Outcome measure_operation(const Request& request,
                              const std::function<void(const Progress&)>& progress);
    WhoCopiesOutcome who_copies(const WhoCopiesRequest& request);
    Observation who_copies(measure::Occupier& occupier, const Transfer& transfer);
    class Tools;
};

void Session::State::admit(const Request& request) const {
    if (request.operation) {
        if (auto reason = unsupported_reason(*request.operation, machine))
            throw NotSupported(*reason);
        return;
    }
    if (request.transfers.empty()) throw NotSupported("a workload needs at least one transfer");
    for (const Transfer& transfer : request.transfers) {
        if (transfer.bytes == 0) throw NotSupported("a transfer of 0 bytes is nothing to measure");
        if (auto reason = unsupported_reason(transfer, machine)) throw NotSupported(*reason);
        const Executor& executor = measure::executor_of(transfer);
        const auto peer = executor.peer_access(transfer, machine);
        if (peer && *peer != options.peer_access) {
            throw NotSupported("this process was started with peer access " +
                               std::string(options.peer_access ? "on" : "off"));
        }
    }
    if (auto reason = measure::sharing_unsupported_reason(request, machine))
        throw NotSupported(*reason);
    if (request.sustained() && measure::plan_buffers(request, machine).own_slices) {
        throw NotSupported(
            "beside a collective transfers are repeated: none can change the place of its bytes, "
            "use up its source, or start with another state of caches");
    }
    if (request.cache == Cache::flushed && host::flush_instruction().empty()) {
        throw NotSupported("no instruction is known that flushes this CPU's caches");
    }
}

void Session::State::enable_peers(const Transfer& transfer) {
    const Executor& executor = measure::executor_of(transfer);
    for (const auto& [one, other] : executor.requirements(transfer, machine).peers) {
        enable_peers(one, other);
    }
}

void Session::State::enable_peers(int one, int other) {
    for (const auto& [from, to] : {std::pair{one, other}, std::pair{other, one}}) {
        if (peers.contains({from, to})) continue;
        gpu::enable_peer_access(from, to);
        peers.insert({from, to});
    }
}

TimingMode Session::State::timing(const Request& request) const {
    if (request.sustained()) return TimingMode::host;
    const auto by_device = [&](const Transfer& transfer) {
        const Executor& executor = measure::executor_of(transfer);
        const auto same_curve = [&](const Transfer& other) {
            return other.path == transfer.path && other.parameters == transfer.parameters &&
                   other.layout == transfer.layout;
        };
        return executor.timing(transfer, machine) == TimingMode::device &&
               std::ranges::none_of(options.host_timed, same_curve);
    };
    return std::ranges::all_of(request.transfers, by_device) ? TimingMode::device
                                                             : TimingMode::host;
}

void Session::State::report_sides(const measure::PreparedWorkload& prepared, const Request& request,
                                  Outcome& outcome) {
    if (!options.sides) return;
    for (std::size_t i = 0; i < outcome.buffers.size(); ++i) {
        const Path& path = request.transfers[i / 2].path;
        const Memory& memory = i % 2 == 0 ? path.source : path.destination;
        outcome.buffers[i].gpu_seconds = sides.of(prepared.buffer(i), memory);
    }
}

void Session::State::run(std::shared_ptr<Running> next) {
    const std::lock_guard lock(running_guard);
    running = std::move(next);
}

std::unique_ptr<measure::Timer> Session::State::timer_for(const measure::PreparedWorkload& prepared,
                                                          const Request& request,
                                                          Outcome& outcome) {
    if (request.sustained()) {
        const auto next = std::make_shared<Running>(request);
        run(next);
        return measure::sustained_timer(prepared.parts(), next->underway);
    }
    if (outcome.mode != TimingMode::device) return measure::host_timer(prepared.parts());
    make_gate();
    outcome.gate = gate->kind();
    return measure::device_timer(prepared.parts(), *gate, *watchdog);
}

// The engine, within what the buffers of the request leave of the memory.
transfer::Engine& Session::State::engine_for(const Request& request) {
    std::size_t buffers = 0;
    for (const auto& spec : measure::plan_buffers(request, machine).specs) buffers += spec.bytes;
    transfer::Engine& own = engine.prepare(request, buffers);
    pool.reserve(engine.staging_bytes());
    return own;
}

namespace {

// Copies once more, to destinations that are filled anew. Throws what PreparedWorkload::check()
// throws.
void verify(measure::PreparedWorkload& prepared, measure::Timer& timer, std::size_t repetitions) {
    prepared.refill();
    prepared.condition(repetitions);
    timer.take(repetitions);  // like all samples: behind the gate, slice after slice
    prepared.check(repetitions);
}

void require_rank(const Request& request, const SessionOptions& options) {
    if (options.messenger == nullptr) throw NotSupported("this process is no rank of a launch");
    if (request.cache != Cache::warm || request.shared) {
        throw NotSupported("caches and shared buffers are not prepared in several processes");
    }
}

}  // namespace

Outcome Session::State::measure_transfers(const Request& request,
                                          const std::function<void(const Progress&)>& progress,
                                          const Evidence& evidence) {
    admit(request);
    const double start = host::now();
    Outcome outcome;
    outcome.mode = timing(request);
    for (const Transfer& transfer : request.transfers) enable_peers(transfer);
    measure::PreparedWorkload prepared(request, machine, pool, streams, engine_for(request));
    for (const int gpu : prepared.gpus()) clocks.raise(gpu);
    prepared.fill();

    const host::RunOn submitting(prepared.submit_cpus());
    const std::unique_ptr<measure::Timer> timer = timer_for(prepared, request, outcome);
    const auto condition = [&prepared](std::size_t count) { prepared.condition(count); };
    condition(1);
    timer->once();  // the first execution is never gated: it may load, map or allocate
    prepared.check(1);
    const std::size_t most = std::min(prepared.most_repetitions(), timer->most_repetitions());
    const std::size_t repetitions = measure::repetitions_for(*timer, most, condition);
    outcome.buffers = prepared.placements();
    outcome.buffer_bytes = prepared.buffer_bytes();
    outcome.setup_seconds = host::now() - start;

    const bool once_apart =
        outcome.mode == TimingMode::device || (repetitions > 1 && !request.sustained());
    measure::take_samples({*timer, request.rule, repetitions, once_apart, condition, progress},
                          outcome);
    report_sides(prepared, request, outcome);
    if (evidence && !request.sustained()) {
        measure::run_for_evidence(*timer, condition, request, outcome.samples.back().host,
                                  evidence);
    }

    verify(prepared, *timer, repetitions);
    outcome.pool_peak_bytes = pool.peak_bytes();
    return outcome;
}

Outcome Session::State::measure_between_ranks(
    const Request& request, const std::function<void(const Progress&)>& progress) {
    admit(request);
    require_rank(request, options);
    const double start = host::now();
    const std::vector<int> ranks = measure::RankWorkload::ranks_of(request, machine);
    if (std::ranges::find(ranks, options.messenger->rank()) == ranks.end()) {
        return {.mode = TimingMode::host, .stop = kStopOfFollowers};
    }
    const RankPlace* own = machine.rank(options.messenger->rank());
    const host::RunOn submitting(own == nullptr ? std::vector<int>{} : own->cpus);
    measure::RankWorkload workload(request, machine, pool, streams, *options.messenger);
    Outcome outcome;
    outcome.mode = TimingMode::host;
    outcome.buffers = workload.placements();
    outcome.buffer_bytes = workload.buffer_bytes();
    if (!workload.leads()) {
        workload.follow();
        outcome.stop = kStopOfFollowers;
        return outcome;
    }
    workload.fill();
    measure::Timer& timer = workload.timer();
    timer.once();  // connections are made by the first message
    workload.check();
    const auto nothing = [](std::size_t) {};
    const std::size_t repetitions =
        measure::repetitions_for(timer, timer.most_repetitions(), nothing);
    outcome.setup_seconds = host::now() - start;
    measure::take_samples({timer, request.rule, repetitions, repetitions > 1, nothing, progress},
                          outcome);
    workload.fill();
    timer.take(repetitions);
    workload.check();
    workload.end();
    outcome.pool_peak_bytes = pool.peak_bytes();
    return outcome;
}

WhoCopiesOutcome Session::State::who_copies(const WhoCopiesRequest& request) {
    const double start = host::now();
    measure::Occupier occupier(streams);
    WhoCopiesOutcome outcome;
    outcome.kernel = occupier.kernel(request.gpu);
    outcome.copies.resize(request.transfers.size());
    if (outcome.kernel.found == WhileOccupied::waited) {
        outcome.fill = occupier.fill(request.gpu);
        for (std::size_t i = 0; i < request.transfers.size(); ++i) {
            outcome.copies[i] = who_copies(occupier, request.transfers[i]);
        }
    }
    measure::withdraw_unproven(outcome);
    outcome.seconds = host::now() - start;
    return outcome;
}

Observation Session::State::who_copies(measure::Occupier& occupier, const Transfer& transfer) {
    try {
        const Request request{.transfers = {transfer}, .operation = {}, .rule = {}};
        admit(request);
        enable_peers(transfer);
        measure::PreparedWorkload prepared(request, machine, pool, streams, engine_for(request));
        const host::RunOn submitting(prepared.submit_cpus());
        prepared.fill();
        Observation found = measure::observe(occupier, prepared);
        prepared.check(1);
        return found;
    } catch (const NotSupported& error) {
        return {.found = WhileOccupied::undecided, .reason = error.what()};
    } catch (const WrongBytes& error) {
        return {.found = WhileOccupied::undecided, .reason = error.what()};
    }
}

// Gives operations access to the session's streams and gate.
class Session::State::Tools final : public OperationTools {
public:
    explicit Tools(State& state) : state_(state) {}
    gpu::Stream& stream(int device, std::size_t n) override {
        return state_.streams.get(device, n);
    }
    void behind_gate(const std::vector<gpu::Stream*>& streams,
                     const std::function<void()>& enqueue) override {
        state_.make_gate();
        measure::behind_gate({streams.begin(), streams.end()}, *state_.gate, *state_.watchdog,
                             enqueue);
    }
    double empty_interval(gpu::Stream& stream) override {
        state_.make_gate();
        return measure::empty_interval(stream, *state_.gate, *state_.watchdog);
    }
    void let_reach(int device, int other) override {
        if (!state_.options.peer_access) {
            throw NotSupported("this process was started with peer access off");
        }
        state_.enable_peers(device, other);
    }

private:
    State& state_;
};

Outcome Session::State::measure_operation(const Request& request,
                                          const std::function<void(const Progress&)>& progress) {
    admit(request);
    const OperationCall& call = *request.operation;
    const Operation& operation = *Operations::instance().find(call.name);
    const double start = host::now();
    pool.clear();  // free memory for the operation's own allocations
    if (call.place.kind == Place::Kind::gpu) clocks.raise(call.place.index);
    const host::RunOn there(machine.cpus(call.place));
    Tools tools(*this);
    const auto trial = operation.prepare(call, machine, tools);
    const auto timer = measure::operation_timer(*trial);

    Outcome outcome;
    outcome.mode = operation.timing(call.place.kind);
    const auto nothing = [](std::size_t) {};
    timer->once();
    const std::size_t repetitions =
        measure::repetitions_for(*timer, timer->most_repetitions(), nothing);
    outcome.setup_seconds = host::now() - start;
    measure::take_samples({*timer, request.rule, repetitions, true, nothing, progress}, outcome);
    if (gate && outcome.mode == TimingMode::device) outcome.gate = gate->kind();
    outcome.pool_peak_bytes = pool.peak_bytes();
    return outcome;
}

Session::Session(Machine machine, SessionOptions options)
    : state_(std::make_unique<State>(std::move(machine), std::move(options))) {}

Session::~Session() = default;

void Session::open(const std::vector<int>& gpus) {
    for (const int gpu : gpus) state_->streams.get(gpu, 0);
}

Outcome Session::measure(const Request& request,
                         const std::function<void(const Progress&)>& progress,
                         const Evidence& evidence) {
    state_->run(nullptr);
    if (between_ranks(request)) return state_->measure_between_ranks(request, progress);
    if (request.operation) return state_->measure_operation(request, progress);
    return state_->measure_transfers(request, progress, evidence);
}

LocalityOutcome Session::locality(const LocalityRequest& request) {
    return measure::locality(request, state_->machine, state_->streams);
}

WhoCopiesOutcome Session::who_copies(const WhoCopiesRequest& request) {
    return state_->who_copies(request);
}

std::string Session::underway() const {
    std::shared_ptr<Running> running;
    {
        const std::lock_guard lock(state_->running_guard);
        running = state_->running;
    }
    if (!running) return "";
    double first = 0;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < running->underway.size(); ++i) {
        const double since = running->underway[i].since.load();
        if (since != 0 && (first == 0 || since < first)) {
            first = since;
            longest = i;
        }
    }
    if (first == 0) return "";
    const auto tenths = static_cast<long>(10 * (host::now() - first));
    return running->texts[longest] + " has been under way for " + std::to_string(tenths / 10) +
           "." + std::to_string(tenths % 10) + " s";
}

}  // namespace waywiser
