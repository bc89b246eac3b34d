#include "ranks/bridge_messenger.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "mpi/bridge.h"

namespace waywiser::ranks {
namespace {

using Functions = waywiser_mpi_bridge_functions;
using Group = waywiser_mpi_ranks;

// A call that returns not 0 after an error.
void check(const Functions& mpi, int code) {
    if (code != 0) throw MessengerError(mpi.error());
}

template <class T>
T* check(const Functions& mpi, T* made) {
    if (made == nullptr) throw MessengerError(mpi.error());
    return made;
}

class BridgeStarted : public Completion {
public:
    BridgeStarted(Stage& stage, const Functions& mpi, Group* ranks, std::size_t most)
        : Completion(stage),
          mpi_(mpi),
          started_(check(mpi, mpi.prepare(ranks, static_cast<int>(most))), mpi.discard) {}

private:
    void do_send(const void* data, std::size_t bytes, int to, int tag) override {
        check(mpi_, mpi_.start_send(started_.get(), data, bytes, to, tag));
    }
    void do_receive(void* data, std::size_t bytes, int from, int tag) override {
        check(mpi_, mpi_.start_receive(started_.get(), data, bytes, from, tag));
    }
    void do_wait() override { check(mpi_, mpi_.wait(started_.get())); }
    bool do_done() override {
        int done = 0;
        check(mpi_, mpi_.test(started_.get(), &done));
        return done != 0;
    }

    const Functions& mpi_;
    std::unique_ptr<waywiser_mpi_started, void (*)(waywiser_mpi_started*)> started_;
};

class BridgeMessenger : public Messenger {
public:
    // `leave` ends a group; the world has none.
    BridgeMessenger(Stage& stage, const Functions& mpi, Group* ranks, void (*leave)(Group*))
        : Messenger(stage), mpi_(mpi), ranks_(ranks, leave) {}
    [[nodiscard]] int rank() const override { return mpi_.rank(ranks_.get()); }
    [[nodiscard]] int size() const override { return mpi_.size(ranks_.get()); }
    [[nodiscard]] std::unique_ptr<Completion> prepare(std::size_t most) override {
        return std::make_unique<BridgeStarted>(own_stage(), mpi_, ranks_.get(), most);
    }

private:
    void do_send(const void* data, std::size_t bytes, int to, int tag) override {
        check(mpi_, mpi_.send(ranks_.get(), data, bytes, to, tag));
    }
    void do_receive(void* data, std::size_t bytes, int from, int tag) override {
        check(mpi_, mpi_.receive(ranks_.get(), data, bytes, from, tag));
    }
    void do_barrier() override { check(mpi_, mpi_.barrier(ranks_.get())); }
    void do_broadcast(void* data, std::size_t bytes, int root) override {
        check(mpi_, mpi_.broadcast(ranks_.get(), data, bytes, root));
    }
    void do_maximum(std::span<double> values) override {
        check(mpi_, mpi_.maximum(ranks_.get(), values.data(), static_cast<int>(values.size())));
    }
    void do_alltoall(const void* source, void* destination, std::size_t bytes_each) override {
        check(mpi_, mpi_.alltoall(ranks_.get(), source, destination, bytes_each));
    }
    void do_alltoallv(const void* source, const Parts& parts, void* destination,
                      const Parts& destination_parts) override {
        check(mpi_, mpi_.alltoallv(ranks_.get(), source, parts.bytes.data(), parts.offsets.data(),
                                   destination, destination_parts.bytes.data(),
                                   destination_parts.offsets.data()));
    }
    void do_scatterv(const void* source, const Parts& parts, void* destination, std::size_t bytes,
                     int root) override {
        check(mpi_, mpi_.scatterv(ranks_.get(), source, parts.bytes.data(), parts.offsets.data(),
                                  destination, bytes, root));
    }
    void do_gatherv(const void* source, std::size_t bytes, void* destination, const Parts& parts,
                    int root) override {
        check(mpi_, mpi_.gatherv(ranks_.get(), source, bytes, destination, parts.bytes.data(),
                                 parts.offsets.data(), root));
    }
    std::unique_ptr<Messenger> do_group(std::span<const int> chosen) override {
        Group* made =
            check(mpi_, mpi_.group(ranks_.get(), chosen.data(), static_cast<int>(chosen.size())));
        return std::make_unique<BridgeMessenger>(own_stage(), mpi_, made, mpi_.leave);
    }

    const Functions& mpi_;
    std::unique_ptr<Group, void (*)(Group*)> ranks_;
};

const Functions& load(const std::filesystem::path& file) {
    // Local: the library's names must not be taken for those of another MPI in the process.
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw MessengerError(dlerror());
    void* symbol = dlsym(handle, WAYWISER_MPI_BRIDGE_SYMBOL);
    if (symbol == nullptr) throw MessengerError(file.string() + ": is no bridge to MPI");
    const Functions& functions = *reinterpret_cast<decltype(&waywiser_mpi_bridge)>(symbol)();
    if (functions.version != WAYWISER_MPI_BRIDGE_VERSION) {
        throw MessengerError(file.string() + ": is a bridge of version " +
                             std::to_string(functions.version) + ", this needs version " +
                             std::to_string(WAYWISER_MPI_BRIDGE_VERSION));
    }
    return functions;
}

}  // namespace

struct Bridge::State {
    explicit State(const Functions& loaded) : mpi(loaded) {}

    const Functions& mpi;
    Stage stage;
    waywiser_mpi_threads threads = WAYWISER_MPI_SINGLE;
    bool joined = false;
};

Bridge::Bridge(const std::filesystem::path& file) : state_(std::make_unique<State>(load(file))) {}

Bridge::~Bridge() = default;

std::string Bridge::library() const {
    std::array<char, WAYWISER_MPI_LINE_BYTES> line{};
    check(state_->mpi, state_->mpi.library(line.data()));
    return line.data();
}

const Stage& Bridge::stage() const { return state_->stage; }

std::unique_ptr<Messenger> Bridge::join() {
    if (std::exchange(state_->joined, true)) {
        throw MessengerError("MPI starts once in a process, and it has started");
    }
    const Stage::Entered in(state_->stage, "start of MPI");
    const Functions& mpi = state_->mpi;
    check(mpi, mpi.init(WAYWISER_MPI_SERIALIZED, &state_->threads));
    return std::make_unique<BridgeMessenger>(state_->stage, mpi, mpi.world(), [](Group*) {});
}

int Bridge::cuda_stated() const { return state_->mpi.cuda_stated(); }

std::string Bridge::threads() const {
    switch (state_->threads) {
        case WAYWISER_MPI_SINGLE: return "single";
        case WAYWISER_MPI_FUNNELED: return "funneled";
        case WAYWISER_MPI_SERIALIZED: return "serialized";
        case WAYWISER_MPI_MULTIPLE: break;
    }
    return "multiple";
}

void Bridge::leave() {
    const Stage::Entered in(state_->stage, "end of MPI");
    check(state_->mpi, state_->mpi.finalize());
}

}  // namespace waywiser::ranks
