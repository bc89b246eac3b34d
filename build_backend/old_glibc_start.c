// Starts a program on every glibc: that before 2.34 has no way to run the constructors of a program
// by itself, and the start code of later ones does not pass one.
#if defined(__x86_64__)
__asm__(".symver first_start, __libc_start_main@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver first_start, __libc_start_main@GLIBC_2.17");
#endif

typedef int Main(int, char**, char**);
typedef void Initialise(int, char**, char**);

int first_start(Main*, int, char**, Initialise*, void (*)(void), void (*)(void), void*);

extern Initialise *__preinit_array_start[], *__preinit_array_end[];
extern Initialise *__init_array_start[], *__init_array_end[];
void _init(void);

static void initialise(int count, char** arguments, char** environment) {
    for (Initialise** each = __preinit_array_start; each < __preinit_array_end; ++each) {
        (*each)(count, arguments, environment);
    }
    _init();
    for (Initialise** each = __init_array_start; each < __init_array_end; ++each) {
        (*each)(count, arguments, environment);
    }
}

int __libc_start_main(Main* program, int count, char** arguments, Initialise* none,
                      void (*finish)(void), void (*finish_loader)(void), void* stack_end) {
    (void)none;
    return first_start(program, count, arguments, initialise, finish, finish_loader, stack_end);
}
