/* An application for tests. Its arguments are steps, run in order; "launch=NAME" does what the CUDA driver does: load
 * the injection library at the first use and report the launch to it. */
#include "inject/nvtx_abi.h"
#include "kprof/ctl.h"
#include "sim/nvtx_client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_BEHIND 30 /* launches that follow others, in one batch */

static char **rest; /* the steps after the current one */
static char *self;
/* Of the injection library over the simulated machine. */
static void (*report_launch)(const char *mangled);
static void (*report_profiler)(bool starts);
static void (*set_place)(const char *name, uint32_t number);
static void *(*find_handle)(const char *kind);
static int64_t (*open_batch)(void);
static void (*await_batch)(void);
static void (*let_pass_ms)(int64_t ms);
static bool (*do_on_timeline)(const char *text);

static void init(const char *unused)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library)
        return;
    int (*start)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
    report_launch = (void (*)(const char *))dlsym(library, "kprof_sim_launch");
    report_profiler = (void (*)(bool))dlsym(library, "kprof_sim_profiler");
    set_place = (void (*)(const char *, uint32_t))dlsym(library, "kprof_sim_place");
    find_handle = (void *(*)(const char *))dlsym(library, "kprof_sim_handle");
    open_batch = (int64_t(*)(void))dlsym(library, "kprof_sim_batch");
    await_batch = (void (*)(void))dlsym(library, "kprof_sim_settle");
    let_pass_ms = (void (*)(int64_t))dlsym(library, "kprof_sim_pass_ms");
    do_on_timeline = (bool (*)(const char *))dlsym(library, "kprof_sim_do");
    if (start)
        start();
}

/* "NAME" or "NAME*COUNT" */
static void launch(const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s", text);
    char *star = strchr(name, '*');
    long count = star ? atol(star + 1) : 1;
    if (star)
        *star = '\0';
    if (!report_launch)
        init(NULL);
    for (long i = 0; report_launch && i < count; i++)
        report_launch(name);
}

/* What timeline.c tells, such as "gap:100" */
static void do_something(const char *text)
{
    if (!do_on_timeline)
        init(NULL);
    if (do_on_timeline && !do_on_timeline(text))
        abort();
}

/* "NAME*COUNT": print the processor time of a launch, in ns. */
static void time_launches(const char *text)
{
    struct timespec before, after;
    const long count = atol(strchr(text, '*') + 1);
    launch(text); /* what is done once */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    launch(text);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    printf("%.1f\n",
           ((double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec)) / (double)count);
    fflush(stdout);
}

/* cudaProfilerStart or cudaProfilerStop */
static void call_profiler(const char *call)
{
    if (!report_profiler)
        init(NULL);
    if (report_profiler)
        report_profiler(strcmp(call, "start") == 0);
}

/* "NAME:NUMBER": what later launches tell of themselves, such as "grid:4" */
static void place(const char *text)
{
    char name[64];
    const char *number = strchr(text, ':');
    snprintf(name, sizeof name, "%.*s", (int)(number - text), text);
    if (!set_place)
        init(NULL);
    if (set_place)
        set_place(name, (uint32_t)strtoul(number + 1, NULL, 10));
}

/* Launch a kernel whose name has so many characters: more than one argument can have. */
static void launch_long(const char *length)
{
    size_t count = strtoul(length, NULL, 10);
    char *name = malloc(count + 32);
    if (!name)
        return;
    int start = sprintf(name, "_Z%zu", count);
    memset(name + start, 'k', count);
    strcpy(name + start + count, "v");
    if (!report_launch)
        init(NULL);
    if (report_launch)
        report_launch(name);
    free(name);
}

/* NVTX does this at its first call. */
static void init_nvtx(void)
{
    static bool is_done;
    const char *path = is_done ? NULL : getenv("NVTX_INJECTION64_PATH");
    is_done = true;
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*attach)(kprof_nvtx_get_table *) =
        library ? (int (*)(kprof_nvtx_get_table *))dlsym(library, "InitializeInjectionNvtx2") : NULL;
    if (attach)
        attach(nvtx_get_table);
}

/* "NAME" or "DOMAIN@NAME" */
static void push(const char *text)
{
    char domain[512];
    const char *at = strchr(text, '@');
    kprof_nvtx_event event = nvtx_event(at ? at + 1 : text);
    init_nvtx();
    if (!at) {
        nvtx_push(text);
        return;
    }
    snprintf(domain, sizeof domain, "%.*s", (int)(at - text), text);
    nvtx_domain_push(nvtx_domain(domain), &event);
}

static void mark(const char *name)
{
    init_nvtx();
    nvtx_mark(name);
}

static void pop(const char *domain)
{
    nvtx_domain_pop(*domain ? nvtx_domain(domain) : NULL);
}

/* "stream:NAME" or "context:NAME" */
static void give_name(const char *text)
{
    const bool is_stream = strncmp(text, "stream:", strlen("stream:")) == 0;
    if (!find_handle)
        init(NULL);
    init_nvtx();
    if (find_handle && is_stream)
        nvtx_name_stream(find_handle("stream"), strchr(text, ':') + 1);
    else if (find_handle)
        nvtx_name_context(find_handle("context"), strchr(text, ':') + 1);
}

static uint64_t started;

static void start_range(const char *name)
{
    init_nvtx();
    started = nvtx_start(name);
}

static void end_range(const char *unused)
{
    nvtx_end(started);
}

static void *launch_in_thread(void *name)
{
    push("in thread");
    launch(name);
    return NULL;
}

/* Launch the kernel in another thread, within a range of its own. */
static void run_thread(const char *name)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, launch_in_thread, (void *)(uintptr_t)name) == 0)
        pthread_join(thread, NULL);
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static void say_error(const char *text)
{
    fprintf(stderr, "%s\n", text);
}

static void leave(const char *code)
{
    exit(atoi(code));
}

static void leave_at_once(const char *code)
{
    _exit(atoi(code));
}

/* "FUNCTION:CODE" */
static void leave_by(const char *text)
{
    int code = atoi(strchr(text, ':') + 1);
    if (strncmp(text, "_Exit:", 6) == 0)
        _Exit(code);
    if (strncmp(text, "quick_exit:", 11) == 0)
        quick_exit(code);
    abort();
}

static void leave_in_handler(int number)
{
    _exit(number);
}

static void raise_and_leave(const char *unused)
{
    signal(SIGUSR1, leave_in_handler);
    raise(SIGUSR1);
}

static void raise_signal(const char *number)
{
    signal(atoi(number), SIG_DFL);
    raise(atoi(number));
}

static void wait_ms(const char *text)
{
    long ms = atol(text);
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void fork_and_launch(const char *name)
{
    pid_t pid = fork();
    if (pid == 0) {
        launch(name);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* "COUNT:NAME": start so many processes, one after the other, each of which launches the kernel. */
static void run_processes(const char *text)
{
    const char *name = strchr(text, ':') + 1;
    for (long left = atol(text); left > 0; left--) {
        pid_t pid = fork();
        if (pid == 0) {
            char step[512];
            snprintf(step, sizeof step, "launch=%s", name);
            execl("/proc/self/exe", self, step, (char *)NULL);
            abort();
        }
        waitpid(pid, NULL, 0);
    }
}

/* "COUNT:NAME": fork so many children, each of which launches the kernel and exits. */
static void fork_many(const char *text)
{
    for (long left = atol(text); left > 0; left--)
        if (fork() == 0) {
            launch(strchr(text, ':') + 1);
            exit(0);
        }
    while (wait(NULL) > 0)
        continue;
}

/* "SIGNAL:NAME": two children launch the kernel six times and wait, until this process sends them the signal. */
static void end_workers(const char *text)
{
    for (int i = 0; i < 2; i++) {
        int ready[2], status = 0;
        char byte;
        if (pipe(ready) != 0)
            abort();
        pid_t pid = fork();
        if (pid == 0) {
            for (int left = 6; left > 0; left--)
                launch(strchr(text, ':') + 1);
            if (write(ready[1], "", 1) == 1)
                for (;;)
                    pause();
            _exit(1);
        }
        if (read(ready[0], &byte, 1) != 1 || kill(pid, atoi(text)) != 0 || waitpid(pid, &status, 0) != pid)
            abort();
        printf("worker ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        fflush(stdout);
    }
}

/* By the function that is named. Those that take a list get the program's name and two steps. */
static void exec_rest(const char *function)
{
    static const char own[] = "/proc/self/exe";
    *--rest = self;
    if (strcmp(function, "execl") == 0)
        execl(own, rest[0], rest[1], rest[2], (char *)NULL);
    else if (strcmp(function, "execlp") == 0)
        execlp(own, rest[0], rest[1], rest[2], (char *)NULL);
    else if (strcmp(function, "execle") == 0)
        execle(own, rest[0], rest[1], rest[2], (char *)NULL, environ);
    else if (strcmp(function, "execve") == 0)
        execve(own, rest, environ);
    else if (strcmp(function, "execvp") == 0)
        execvp(own, rest);
    else if (strcmp(function, "execvpe") == 0)
        execvpe(own, rest, environ);
    else if (strcmp(function, "fexecve") == 0)
        fexecve(open(own, O_RDONLY | O_CLOEXEC), rest, environ);
    else if (strcmp(function, "execveat") == 0)
        execveat(AT_FDCWD, own, rest, environ, 0);
    else
        execv(own, rest);
    abort();
}

/* The child shares this process' memory until it calls exec, or without a name _exit. */
static void vfork_and_launch(const char *name)
{
    char step[512];
    snprintf(step, sizeof step, "launch=%s", name);
    pid_t pid = vfork();
    if (pid == 0 && !*name)
        _exit(0);
    if (pid == 0) {
        execl("/proc/self/exe", self, step, (char *)NULL);
        _exit(1);
    }
    waitpid(pid, NULL, 0);
}

static void exec_nothing(const char *unused)
{
    if (execl("/nonesuch", self, (char *)NULL) != 0)
        perror("exec");
}

static void exec_in_handler(int number)
{
    exec_rest("");
}

static void exec_rest_in_handler(const char *unused)
{
    signal(SIGUSR1, exec_in_handler);
    raise(SIGUSR1);
}

static void spawn_rest(const char *unused)
{
    pid_t pid = fork();
    if (pid == 0)
        exec_rest("");
    waitpid(pid, NULL, 0);
    exit(0);
}

static void daemonize_rest(const char *unused)
{
    if (fork() != 0)
        return;
    setsid();
    if (fork() == 0)
        exec_rest("");
    _exit(0);
}

/* Close everything but the standard streams and take the numbers for files of our own in `dir`. */
static void close_files(const char *dir)
{
    for (int file = 3; file < 256; file++)
        close(file);
    for (int file = 3; file < 32; file++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/own-%d", dir, file);
        if (open(path, O_CREAT | O_WRONLY, 0600) != file || write(file, "mine", 4) != 4)
            abort();
    }
}

static void leave_directory(const char *dir)
{
    if (chdir(dir) != 0 || rmdir(dir) != 0)
        abort();
}

static void print_variable(const char *name)
{
    const char *value = getenv(name);
    printf("%s=%s\n", name, value ? value : "(unset)");
    fflush(stdout);
}

static void copy_stdin(const char *unused)
{
    for (int c; (c = getchar()) != EOF;)
        putchar(c);
    fflush(stdout);
}

/* Until stdin ends. */
static void wait_for_end(const char *unused)
{
    while (getchar() != EOF)
        continue;
}

static void run_command(const char *command)
{
    if (system(command) < 0)
        abort();
}

static volatile sig_atomic_t signals_seen;

static void note_signal(int number)
{
    signals_seen++;
    char line[] = "got signal ??\n";
    line[11] = (char)('0' + number / 10);
    line[12] = (char)('0' + number % 10);
    if (write(STDOUT_FILENO, line, sizeof line - 1) < 0)
        _exit(1);
}

/* Print the signals that arrive from now on. */
static void handle_signals(const char *unused)
{
    struct sigaction action = {.sa_handler = note_signal};
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

static void ignore_tick(int number) {}

/* A signal each millisecond from now on, as a profiler of the program has it. */
static void start_ticks(const char *unused)
{
    const struct timeval period = {.tv_usec = 1000};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = ignore_tick, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){period, period}, NULL);
}

static const char *name_action(__sighandler_t handler)
{
    return handler == SIG_DFL       ? "default"
           : handler == SIG_IGN     ? "ignored"
           : handler == SIG_HOLD    ? "held"
           : handler == note_signal ? "handled"
                                    : "something else";
}

static void print_action(const char *what, int number)
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0)
        abort();
    printf("%s: %s, flags %x, mask %d\n", what, name_action(now.sa_handler), (unsigned)now.sa_flags,
           sigismember(&now.sa_mask, SIGUSR2));
    fflush(stdout);
}

static void print_end(const char *what, pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    printf("%s: signal %d\n", what, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fflush(stdout);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs use them all the same */
/* Set actions in all ways that there are, and print what the program can see of them. */
static void print_actions(const char *unused)
{
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_RESTART | SA_NODEFER};
    sigaddset(&action.sa_mask, SIGUSR2);
    print_action("at first", SIGTERM);
    printf("before signal: %s\n", name_action(signal(SIGTERM, note_signal)));
    raise(SIGTERM);
    printf("before sysv_signal: %s\n", name_action(sysv_signal(SIGTERM, note_signal)));
    raise(SIGTERM); /* which resets it */
    print_action("after sysv_signal", SIGTERM);
    printf("before sigaction: %d\n", sigaction(SIGTERM, &action, NULL));
    print_action("default with flags", SIGTERM);
    siginterrupt(SIGTERM, 1);
    print_action("after siginterrupt", SIGTERM);
    sigignore(SIGHUP);
    raise(SIGHUP);
    print_action("after sigignore", SIGHUP);
    signal(SIGHUP, SIG_DFL);
    printf("before it is held: %s\n", name_action(sigset(SIGHUP, SIG_HOLD)));
    printf("when it is held: %s\n", name_action(sigset(SIGHUP, SIG_DFL)));
    printf("after it is held: %s\n", name_action(sigset(SIGHUP, SIG_DFL)));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        print_action("in a child", SIGTERM);
        raise(SIGTERM);
        _exit(0);
    }
    print_end("a child", pid);
    pid = vfork();
    if (pid == 0) {
        signal(SIGHUP, SIG_DFL);
        raise(SIGHUP);
        _exit(0);
    }
    print_end("a child of vfork", pid);
    print_action("at last", SIGHUP);
}
#pragma GCC diagnostic pop

enum { BAD_FLOATS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW };

/* As programs compute that are to end at the first number that is none, and round in their own way. */
static void trap_floats(const char *unused)
{
    feclearexcept(FE_ALL_EXCEPT);
    fesetround(FE_UPWARD);
    feenableexcept(BAD_FLOATS);
}

static void print_floats(const char *unused)
{
    printf("rounds up: %d, traps: %d, flags: %d\n", fegetround() == FE_UPWARD, fegetexcept() == BAD_FLOATS,
           fetestexcept(BAD_FLOATS));
    fflush(stdout);
}

static void leave_group(const char *unused)
{
    if (setpgid(0, 0) != 0)
        abort();
}

/* Until the batch that is open has been closed, after a pause: then kprof has all launches. */
static void settle(const char *unused)
{
    if (await_batch)
        await_batch();
}

/* Let so many ms of the engine's time pass, and none of the user's. */
static void let_pass(const char *ms)
{
    if (let_pass_ms)
        let_pass_ms(atol(ms));
}

/* Launch now and then until a signal has arrived and the open batch is closed; but not more than one batch holds. */
static void launch_until_signal(const char *name)
{
    int64_t open = open_batch();
    for (int count = 0; signals_seen == 0 || (open != 0 && open_batch() == open); count++) {
        if (count < MOST_BEHIND)
            launch(name);
        wait_ms("20");
    }
}

/* Wait for as many signals as asked for, or for one, and a moment longer for one too many. */
static void trap(const char *wanted)
{
    handle_signals(NULL);
    say("ready");
    for (int count = *wanted ? atoi(wanted) : 1; signals_seen < count;)
        wait_ms("10");
    wait_ms("300");
}

/* Take back a soft limit on file sizes that was meant for kprof alone. */
static void lift_limit(const char *unused)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* "start", "start:SET:REPORT" or "stop", as a program tells its kprof from inside. */
static void control(const char *text)
{
    char answer[KPROF_CTL_ANSWER], set[64] = "";
    const char *report = strrchr(text, ':');
    (void)sscanf(text, "start:%63[^:]", set);
    const int code = strcmp(text, "stop") == 0 ? kprof_ctl_stop(answer)
                                               : kprof_ctl_start(*set ? set : NULL, report ? report + 1 : NULL, answer);
    printf("%d %s%s", code, answer, *answer ? "" : "\n");
    fflush(stdout);
}

static const struct {
    const char *name;
    void (*run)(const char *argument);
} steps[] = {{"init", init},
             {"launch", launch},
             {"time", time_launches},
             {"place", place},
             {"name", give_name},
             {"long", launch_long},
             {"say", say},
             {"err", say_error},
             {"exit", leave},
             {"_exit", leave_at_once},
             {"leave", leave_by},
             {"exithandler", raise_and_leave},
             {"raise", raise_signal},
             {"sleep", wait_ms},
             {"settle", settle},
             {"pass", let_pass},
             {"do", do_something},
             {"fork", fork_and_launch},
             {"processes", run_processes},
             {"forks", fork_many},
             {"workers", end_workers},
             {"exec", exec_rest},
             {"execnothing", exec_nothing},
             {"exechandler", exec_rest_in_handler},
             {"vfork", vfork_and_launch},
             {"spawn", spawn_rest},
             {"daemon", daemonize_rest},
             {"closefiles", close_files},
             {"leavedir", leave_directory},
             {"env", print_variable},
             {"cat", copy_stdin},
             {"wait", wait_for_end},
             {"run", run_command},
             {"trap", trap},
             {"handle", handle_signals},
             {"actions", print_actions},
             {"ticks", start_ticks},
             {"trapfloats", trap_floats},
             {"floats", print_floats},
             {"owngroup", leave_group},
             {"until", launch_until_signal},
             {"liftlimit", lift_limit},
             {"profiler", call_profiler},
             {"control", control},
             {"push", push},
             {"mark", mark},
             {"pop", pop},
             {"start", start_range},
             {"end", end_range},
             {"thread", run_thread}};

static void run_step(char *step)
{
    char *argument = strchr(step, '=');
    size_t length = argument ? (size_t)(argument - step) : strlen(step);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strlen(steps[i].name) == length && strncmp(steps[i].name, step, length) == 0) {
            steps[i].run(argument ? argument + 1 : "");
            return;
        }
    }
    fprintf(stderr, "unknown step %s\n", step);
    exit(98);
}

int main(int argc, char **argv)
{
    self = argv[0];
    rest = argv + 1;
    while (*rest)
        run_step(*rest++);
    return 0;
}
