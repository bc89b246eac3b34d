#include "fake/nccl/world.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace waywiser::fake::nccl {
namespace {

constexpr std::size_t kRanks = kMostRanks;
constexpr std::size_t kMostName = 64;

// Whether the process has ended whose file a name is of: one that waits to be reaped has no
// program.
bool is_of_ended_process(const std::string& name) {
    const std::string process = name.substr(0, name.find("/fd/"));
    char program[1];
    return readlink((process + "/exe").c_str(), program, sizeof program) < 0;
}

struct Mail {
    bool full = false;
    std::size_t bytes = 0;
};

constexpr int kFloat = 7;

template <class Number>
void add(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t i = 0; i + sizeof(Number) <= bytes; i += sizeof(Number)) {
        Number sum{}, other{};
        std::memcpy(&sum, to + i, sizeof sum);
        std::memcpy(&other, from + i, sizeof other);
        sum += other;
        std::memcpy(to + i, &sum, sizeof sum);
    }
}

// The files of this process, each open until a rank of it ends that knows its name.
class Files {
public:
    void keep(const std::string& name, int file) {
        const std::lock_guard lock(mutex_);
        files_[name] = file;
    }
    void close(const std::string& name) {
        const std::lock_guard lock(mutex_);
        if (const auto node = files_.extract(name)) ::close(node.mapped());
    }

private:
    std::mutex mutex_;
    std::map<std::string, int> files_;
};

Files& files() {
    static Files& all = *new Files();
    return all;
}

void take(const Receive& receive, const std::byte* from, std::size_t bytes) {
    if (receive.sum == kNoSum) {
        std::memcpy(receive.data, from, bytes);
    } else if (receive.sum == kFloat) {
        add<float>(receive.data, from, bytes);
    } else {
        add<std::uint32_t>(receive.data, from, bytes);
    }
}

}  // namespace

bool Kind::operator==(const Kind& other) const {
    return std::strcmp(name, other.name) == 0 &&
           std::tie(bytes, type, root) == std::tie(other.bytes, other.type, other.root);
}

// A process may be killed in any line: the mutex passes to the next, and nobody waits for a waiter,
// as a condition variable could.
struct World::Shared {
    pthread_mutex_t mutex{};
    std::atomic<std::uint32_t> changes = 0;
    std::array<char, kMostName> name{};
    bool ended = false;  // before all ranks had joined
    std::array<bool, kRanks> joined{};
    std::array<bool, kRanks> aborted{};
    std::array<std::uint64_t, kRanks> started{};  // collectives, of each rank
    std::array<std::uint64_t, kRanks> finished{};
    std::array<Kind, kRanks> kinds{};                      // that each has started
    std::array<std::array<Mail, kRanks>, kRanks> mails{};  // from, to
    std::array<std::array<std::array<std::byte, kChunk>, kRanks>, kRanks> chunks{};

    // Called on memory of zeros; pages that are not written occupy no memory.
    void prepare() {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&mutex, &attributes);
    }
    static Shared* map(int file) {
        const int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
        void* data = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, flags, file, 0);
        return data == MAP_FAILED ? nullptr : static_cast<Shared*>(data);
    }
    void unmap() { munmap(this, sizeof(Shared)); }
    [[nodiscard]] bool is_whole(int size) const {
        return std::all_of(joined.begin(), joined.begin() + size, std::identity());
    }
};

class World::Lock {
public:
    explicit Lock(Shared& shared) : shared_(shared) { acquire(); }
    ~Lock() { pthread_mutex_unlock(&shared_.mutex); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    void wait() {
        const std::uint32_t seen = shared_.changes;
        pthread_mutex_unlock(&shared_.mutex);
        syscall(SYS_futex, &shared_.changes, FUTEX_WAIT, seen, nullptr, nullptr, 0);
        acquire();
    }
    void wake() {
        ++shared_.changes;
        syscall(SYS_futex, &shared_.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
    template <class Ready>
    void hold(int rank, Ready ready) {
        while (!shared_.aborted[static_cast<std::size_t>(rank)] && !ready()) wait();
    }

private:
    void acquire() {
        if (pthread_mutex_lock(&shared_.mutex) == EOWNERDEAD) {
            pthread_mutex_consistent(&shared_.mutex);
        }
    }

    Shared& shared_;
};

std::shared_ptr<World> World::of_process(int size) {
    Shared* shared = Shared::map(-1);
    if (shared == nullptr) return nullptr;
    shared->prepare();
    std::fill_n(shared->joined.begin(), size, true);
    return std::shared_ptr<World>(new World(shared, size, ""));
}

std::shared_ptr<World> World::of_absent(int size) {
    Shared* shared = Shared::map(-1);
    if (shared == nullptr) return nullptr;
    shared->prepare();
    return std::shared_ptr<World>(new World(shared, size, ""));
}

std::string World::create() {
    static std::atomic<int> number{0};
    const int file = memfd_create("waywiser-fake-nccl", MFD_CLOEXEC);
    if (file < 0) return {};
    Shared* shared = ftruncate(file, sizeof(Shared)) == 0 ? Shared::map(file) : nullptr;
    if (shared == nullptr) {
        close(file);
        return {};
    }
    const std::string name = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file) +
                             "#" + std::to_string(++number);
    files().keep(name, file);
    name.copy(shared->name.data(), kMostName - 1);
    shared->prepare();
    shared->unmap();
    return name;
}

std::shared_ptr<World> World::join(const std::string& name, int rank, int size) {
    const std::string path = name.substr(0, name.find('#'));
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return is_of_ended_process(name) ? of_absent(size) : nullptr;
    struct stat found{};
    const bool fits = fstat(file, &found) == 0 && found.st_size == sizeof(Shared);
    Shared* shared = fits ? Shared::map(file) : nullptr;
    close(file);
    if (shared == nullptr) return nullptr;
    if (name != shared->name.data()) {  // another one has the descriptor by now
        shared->unmap();
        return nullptr;
    }
    std::shared_ptr<World> world(new World(shared, size, name));
    bool is_new = false;
    {
        Lock lock(*shared);
        is_new =
            !shared->ended && !std::exchange(shared->joined[static_cast<std::size_t>(rank)], true);
        lock.wake();
    }
    if (!is_new) {
        world->name_.clear();  // of the rank that has joined
        return nullptr;
    }
    return world;
}

World::~World() {
    if (!name_.empty()) {
        const Lock lock(*shared_);
        if (!shared_->is_whole(size_)) shared_->ended = true;
    }
    files().close(name_);
    shared_->unmap();
}

bool World::is_whole() const {
    const Lock lock(*shared_);
    return shared_->is_whole(size_);
}

bool World::has_lost(int rank) const {
    const Lock lock(*shared_);
    for (int n = 0; n < size_; ++n) {
        if (n != rank && shared_->aborted[static_cast<std::size_t>(n)]) return true;
    }
    return false;
}

void World::await_all(int rank) {
    Lock lock(*shared_);
    lock.hold(rank, [&] { return shared_->is_whole(size_); });
}

void World::start(int rank, const Kind& kind) {
    const auto own = static_cast<std::size_t>(rank);
    Lock lock(*shared_);
    shared_->kinds[own] = kind;
    const std::uint64_t number = ++shared_->started[own];
    lock.wake();
    lock.hold(rank, [&] {
        for (std::size_t n = 0; n < static_cast<std::size_t>(size_); ++n) {
            // Another kind than that of the others never completes.
            if (shared_->started[n] < number || !(shared_->kinds[n] == kind)) return false;
        }
        return true;
    });
}

void World::finish(int rank) {
    const auto own = static_cast<std::size_t>(rank);
    Lock lock(*shared_);
    const std::uint64_t number = ++shared_->finished[own];
    lock.wake();
    lock.hold(rank, [&] {
        const auto end = shared_->finished.begin() + size_;
        return std::all_of(shared_->finished.begin(), end,
                           [&](std::uint64_t each) { return each >= number; });
    });
}

// Passes what can be passed on at once; whether anything was.
bool World::pass(int rank, std::vector<Send>& sends, std::vector<Receive>& receives) {
    const auto own = static_cast<std::size_t>(rank);
    bool passed = false;
    for (Send& send : sends) {
        const auto to = static_cast<std::size_t>(send.to);
        Mail& mail = shared_->mails[own][to];
        if (mail.full || send.bytes == 0) continue;
        mail = {true, std::min(send.bytes, kChunk)};
        std::memcpy(shared_->chunks[own][to].data(), send.data, mail.bytes);
        send.data += mail.bytes;
        send.bytes -= mail.bytes;
        passed = true;
    }
    for (Receive& receive : receives) {
        const auto from = static_cast<std::size_t>(receive.from);
        Mail& mail = shared_->mails[from][own];
        if (!mail.full || receive.bytes == 0 || mail.bytes > receive.bytes) continue;
        take(receive, shared_->chunks[from][own].data(), mail.bytes);
        receive.data += mail.bytes;
        receive.bytes -= mail.bytes;
        mail.full = false;
        passed = true;
    }
    return passed;
}

void World::exchange(int rank, std::vector<Send> sends, std::vector<Receive> receives) {
    for (const Receive& receive : receives) {
        if (receive.sum != kNoSum) std::memset(receive.data, 0, receive.bytes);
    }
    const auto own = static_cast<std::size_t>(rank);
    const auto taken = [&](const Send& send) {
        return send.bytes == 0 && !shared_->mails[own][static_cast<std::size_t>(send.to)].full;
    };
    const auto arrived = [](const Receive& receive) { return receive.bytes == 0; };
    Lock lock(*shared_);
    while (!shared_->aborted[own]) {
        if (pass(rank, sends, receives)) {
            lock.wake();
            continue;
        }
        if (std::ranges::all_of(sends, taken) && std::ranges::all_of(receives, arrived)) return;
        lock.wait();
    }
}

void World::abort(int rank) {
    Lock lock(*shared_);
    shared_->aborted[static_cast<std::size_t>(rank)] = true;
    lock.wake();
}

}  // namespace waywiser::fake::nccl
