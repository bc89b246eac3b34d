#include "child.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace waywiser::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A killed child that does not exit hangs in a driver: the system reaps it later.
constexpr milliseconds kToDie{2000};

// The file actions of the child, prepared before it starts.
class Actions {
public:
    Actions() { posix_spawn_file_actions_init(&actions_); }
    ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
    Actions(const Actions&) = delete;
    Actions& operator=(const Actions&) = delete;
    void give(int ours, int theirs) { posix_spawn_file_actions_adddup2(&actions_, ours, theirs); }
    void silence(int theirs) {
        posix_spawn_file_actions_addopen(&actions_, theirs, "/dev/null", O_WRONLY, 0);
    }
    [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

private:
    posix_spawn_file_actions_t actions_{};
};

[[noreturn]] void no_pipe() {
    throw std::runtime_error(std::string("no pipe can be made: ") + std::strerror(errno));
}

pid_t spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
            int input, int output) {
    Actions actions;
    actions.give(input, STDIN_FILENO);
    actions.give(output, STDOUT_FILENO);
    actions.silence(STDERR_FILENO);
    std::vector<std::string> words{program.string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    const int code =
        posix_spawn(&pid, program.c_str(), actions.get(), nullptr, argv.data(), environ);
    if (code != 0) {
        throw std::runtime_error(program.string() + " does not start: " + std::strerror(code));
    }
    return pid;
}

}  // namespace

void Child::Descriptor::close() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
}

Child::Child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
             milliseconds to_leave)
    : name_(program.filename().string()), to_leave_(to_leave) {
    // A socket, since a write to a closed socket can return an error instead of a signal.
    std::array<int, 2> down{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, down.data()) != 0) no_pipe();
    const Descriptor theirs_in(down[0]);
    input_.adopt(down[1]);
    std::array<int, 2> up{-1, -1};
    if (pipe2(up.data(), O_CLOEXEC) != 0) no_pipe();
    output_.adopt(up[0]);
    const Descriptor theirs_out(up[1]);
    pid_ = spawn(program, arguments, theirs_in.number(), theirs_out.number());
}

Child::~Child() {
    input_.close();
    if (leaves_within(to_leave_)) return;
    kill(pid_, SIGKILL);
    static_cast<void>(leaves_within(kToDie));
}

bool Child::leaves_within(milliseconds patience) const noexcept {
    const auto end = steady_clock::now() + patience;
    for (;;) {
        const pid_t left = waitpid(pid_, nullptr, WNOHANG);
        if (left == pid_ || (left < 0 && errno == ECHILD)) return true;
        if (steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(milliseconds(1));
    }
}

void Child::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = send(input_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) throw std::runtime_error(name_ + " has ended");
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

std::string Child::read(std::size_t bytes, milliseconds patience) {
    const auto end = steady_clock::now() + patience;
    std::string answer;
    while (answer.size() < bytes) {
        const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
        pollfd ready{output_.number(), POLLIN, 0};
        const int came = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
        if (came < 0 && errno == EINTR) continue;
        if (came <= 0) throw std::runtime_error(name_ + " does not answer");
        std::array<char, 4096> part{};
        const ssize_t got =
            ::read(output_.number(), part.data(), std::min(part.size(), bytes - answer.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) throw std::runtime_error(name_ + " ended before it answered");
        answer.append(part.data(), static_cast<std::size_t>(got));
    }
    return answer;
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
    namespace fs = std::filesystem;
    std::error_code none;
    std::vector<fs::path> folders;
    Dl_info self{};
    if (dladdr(reinterpret_cast<const void*>(&find_program), &self) != 0) {
        folders.push_back(fs::absolute(self.dli_fname, none).lexically_normal().parent_path());
    }
    // For an executable, dli_fname is the name that its caller used.
    folders.push_back(fs::read_symlink("/proc/self/exe", none).parent_path());
    for (const fs::path& folder : folders) {
        for (const fs::path& path : {folder / name, folder / "lib" / name}) {
            if (fs::is_regular_file(path, none)) return path;
        }
    }
    return std::nullopt;
}

}  // namespace waywiser::host
