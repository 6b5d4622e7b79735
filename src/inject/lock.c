/* A line is a file with the number of the last ticket given out and of the ticket whose turn it is. A process with a
 * ticket holds a lock of the kernel on the byte of the ticket's number, which goes with the process. Processes that
 * wait sleep in a futex on the file. Nothing but system calls touches the file's bytes, since the application may
 * truncate it. The file is opened anew for each place, since the application may close any descriptor that it did not
 * open. */
#include "inject/lock.h"

#include "core/deadline.h"
#include "core/files.h"
#include "core/monotonic.h"
#include "inject/engine.h"
#include "inject/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS_NS    INT64_C(1000000)
#define MAX_GPUS 64
/* The next in line looks this often whether the one before is still there; others look less often. */
#define LOOK_NS      (20 * MS_NS)
#define MOST_LOOK_NS (2000 * MS_NS)
/* A process that does not take its turn for this long loses it. */
#define TURN_NS     (100 * MS_NS)
#define PROGRESS_NS (50 * MS_NS)
/* Changes of the file take microseconds: a process that takes longer has been stopped. */
#define CHANGE_POLL_NS  200000
#define CHANGE_LIMIT_NS (2000 * MS_NS)
#define MOST_IN_LINE    65536
/* Whoever changes the file locks the first of these bytes, and ticket 0 the second. Both are beyond the file's end. */
#define CHANGE_BYTE  ((off_t)1 << 40)
#define TICKET_BYTES ((off_t)1 << 41)

/* The file. Its beginning is 0, which means the same as no file. */
typedef struct line {
    uint32_t served;   /* the ticket before the one whose turn it is: the futex */
    uint32_t last;     /* the last ticket given out: it is nobody's turn where that is served */
    uint32_t progress; /* changes while the holder makes progress */
    uint32_t stuck;    /* the holder's work may wait for what others do next: 1, else 0 */
    int64_t since_ns;  /* when it became that ticket's turn */
} line;

/* This process' place in the line of the GPU chosen last. */
struct place {
    int fd;           /* of the line's file; -1: no place */
    struct stat file; /* tells whether the number is still ours */
    uint32_t ticket;
    pid_t pid; /* whose place it is: a forked child has a copy */
};

static struct lock {
    char gpus[MAX_GPUS][40]; /* [gpu_count], the UUIDs of those that were chosen */
    size_t gpu_count, gpu;   /* gpu: the one chosen last */
    struct place place;
    int64_t progress_ns; /* when this process last reported progress */
    bool is_stuck;       /* as it last reported */
} the_lock = {.place = {.fd = -1}};

typedef enum place_state { MINE, WAITING, LOST } place_state;

static int open_line(size_t gpu)
{
    const char *reason;
    char name[64];
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    snprintf(name, sizeof name, "gpu.%s.line", the_lock.gpus[gpu]);
    return folder < 0 ? -1 : kprof_folder_open_file(folder, name, O_RDWR | O_CREAT, &reason);
}

/* Is the descriptor still that of the line? */
static bool has_place(const struct place *place)
{
    struct stat now;
    return place->fd >= 0 && fstat(place->fd, &now) == 0 && now.st_dev == place->file.st_dev &&
           now.st_ino == place->file.st_ino;
}

/* Set or remove a lock of this descriptor, without waiting for others. */
static bool set_lock(int fd, short type, off_t start)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Return the type of a lock that another descriptor holds on any of these bytes; F_UNLCK: none. */
static short find_lock(int fd, off_t start, off_t length)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 ? lock.l_type : F_UNLCK;
}

static off_t byte_of(uint32_t ticket)
{
    return TICKET_BYTES + (off_t)ticket;
}

/* If this cannot be the file's content, the application wrote over it: then all who wait stand in line anew. */
static line read_line(int fd)
{
    line now = {0};
    bool is_whole = pread(fd, &now, sizeof now, 0) == (ssize_t)sizeof now;
    return is_whole && now.last - now.served <= MOST_IN_LINE ? now : (line){0};
}

/* Lock the file; false if the file system has no such locks, or if a process that has the lock was stopped. */
static bool begin_change(int fd)
{
    const struct timespec pause = {0, CHANGE_POLL_NS};
    int64_t until_ns = kprof_monotonic_ns() + CHANGE_LIMIT_NS;
    while (!set_lock(fd, F_WRLCK, CHANGE_BYTE)) {
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || kprof_monotonic_ns() > until_ns)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static bool write_line(int fd, const line *now)
{
    return kprof_write_at(fd, now, sizeof *now, 0);
}

static void end_change(int fd)
{
    (void)set_lock(fd, F_UNLCK, CHANGE_BYTE);
}

static place_state look(const struct place *place, const line *now)
{
    const int32_t ahead = (int32_t)(place->ticket - now->served - 1);
    if (!has_place(place) || ahead < 0 || ahead >= (int32_t)(now->last - now->served))
        return LOST;
    return ahead == 0 ? MINE : WAITING;
}

/* Wakes one of 32 who wait. */
static uint32_t wake_bit(uint32_t ticket)
{
    return UINT32_C(1) << (ticket % 32);
}

static uint32_t *map_line(int fd)
{
    void *map = mmap(NULL, sizeof(line), PROT_READ, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

static void wake(int fd, uint32_t bits)
{
    uint32_t *word = map_line(fd);
    if (!word)
        return;
    (void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
    munmap(word, sizeof(line));
}

/* Does a process have the ticket, and is it still there? */
static bool is_taken(int fd, uint32_t ticket)
{
    return ticket == the_lock.place.ticket || find_lock(fd, byte_of(ticket), 1) != F_UNLCK;
}

/* Give the turn to the first ticket behind this one that somebody has. Within a change. */
static void pass_on(int fd, line *now, uint32_t ticket)
{
    while (ticket != now->last && !is_taken(fd, ticket + 1))
        ticket++;
    now->served = ticket;
    now->stuck = 0;
    now->since_ns = kprof_monotonic_ns();
    if (write_line(fd, now) && ticket != now->last)
        wake(fd, wake_bit(ticket + 1));
}

/* Pass over the ticket whose turn it is, if its process is gone or does not take the turn. */
static void pass_over_absent(int fd)
{
    if (!begin_change(fd))
        return;
    line now = read_line(fd);
    short held = now.served + 1 == the_lock.place.ticket ? F_WRLCK : find_lock(fd, byte_of(now.served + 1), 1);
    bool is_late = kprof_monotonic_ns() - now.since_ns >= TURN_NS;
    if (now.served != now.last && (held == F_UNLCK || (held == F_RDLCK && is_late)))
        pass_on(fd, &now, now.served + 1);
    end_change(fd);
}

void kprof_lock_give(void)
{
    struct place *place = &the_lock.place;
    const bool is_valid = has_place(place);
    the_lock.is_stuck = false;
    if (is_valid && place->pid == getpid()) {
        if (begin_change(place->fd)) {
            line now = read_line(place->fd);
            if (look(place, &now) == MINE)
                pass_on(place->fd, &now, place->ticket);
            end_change(place->fd);
        }
        (void)set_lock(place->fd, F_UNLCK, byte_of(place->ticket)); /* a child may have a copy of the descriptor */
    }
    if (is_valid)
        close(place->fd);
    place->fd = -1;
}

void kprof_lock_choose(const char *uuid)
{
    size_t i = KPROF_FIND(k, the_lock.gpu_count, strcmp(the_lock.gpus[k], uuid) == 0);
    if (i == MAX_GPUS)
        i = 0; /* more GPUs than the engine knows share a line */
    else if (i == the_lock.gpu_count)
        snprintf(the_lock.gpus[the_lock.gpu_count++], sizeof the_lock.gpus[0], "%s", uuid);
    if (i == the_lock.gpu)
        return;
    kprof_lock_give();
    the_lock.gpu = i;
}

/* Get the next ticket. */
static bool stand_in_line(void)
{
    struct place *place = &the_lock.place;
    int fd = open_line(the_lock.gpu);
    if (fd < 0)
        return false;
    fd = kprof_fd_move_up(fd); /* the place may be kept for long */
    if (!begin_change(fd)) {
        close(fd);
        return false;
    }
    line now = read_line(fd);
    const uint32_t ticket = now.last + 1;
    if (now.served == now.last)
        now.since_ns = kprof_monotonic_ns();
    now.last = ticket;
    bool is_in = set_lock(fd, F_WRLCK, byte_of(ticket)) && write_line(fd, &now);
    is_in = is_in && read_line(fd).last == ticket; /* else the place would be lost again at once, and for ever */
    end_change(fd);
    if (!is_in) {
        close(fd);
        return false;
    }
    *place = (struct place){.fd = fd, .ticket = ticket, .pid = getpid()};
    (void)fstat(fd, &place->file);
    return true;
}

/* Sleep until the turn may have come, or it is time to look for processes that are gone. */
static void sleep_in_line(const uint32_t *word, const line *seen, int64_t limit_ns)
{
    const struct place *place = &the_lock.place;
    int64_t ns = LOOK_NS * (int64_t)(place->ticket - seen->served - 1);
    ns = ns > MOST_LOOK_NS ? MOST_LOOK_NS : ns;
    const int64_t left_ns = limit_ns - kprof_monotonic_ns();
    const struct timespec until = kprof_deadline_after_ns(ns < left_ns ? ns : left_ns);
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen->served, &until, NULL, wake_bit(place->ticket));
}

static int64_t find_patience_ns(const line *now, unsigned timeout_ms)
{
    const int64_t held_ns = kprof_wait_limit_ns(), limit_ns = timeout_ms * MS_NS;
    return now->stuck && held_ns < limit_ns ? held_ns : limit_ns;
}

/* Wait until the place is the first one, or is lost, or nobody has made progress for the time given. */
static place_state wait_in_line(unsigned timeout_ms)
{
    const struct place *place = &the_lock.place;
    uint32_t *word = map_line(place->fd);
    line before = read_line(place->fd), now = before;
    int64_t changed_ns = kprof_monotonic_ns();
    place_state state = look(place, &now);
    while (word && state == WAITING) {
        const int64_t patience_ns = find_patience_ns(&now, timeout_ms), limit_ns = changed_ns + patience_ns;
        if (kprof_monotonic_ns() >= limit_ns) {
            if (now.stuck)
                kprof_wait_note(patience_ns);
            break;
        }
        sleep_in_line(word, &now, limit_ns);
        state = has_place(place) ? WAITING : LOST;
        if (state == WAITING) {
            pass_over_absent(place->fd);
            now = read_line(place->fd);
            state = look(place, &now);
        }
        if (now.served != before.served || now.progress != before.progress)
            changed_ns = kprof_monotonic_ns();
        before = now;
    }
    if (word)
        munmap(word, sizeof(line));
    return state;
}

/* Return the state of a place that an earlier call has kept. */
static place_state resume(const struct place *place)
{
    if (!has_place(place) || place->pid != getpid() || !set_lock(place->fd, F_WRLCK, byte_of(place->ticket)))
        return LOST;
    const line now = read_line(place->fd);
    return look(place, &now);
}

/* If there is no line, there is nobody to take turns with. */
bool kprof_lock_take(unsigned timeout_ms, void (*before_wait)(void))
{
    struct place *place = &the_lock.place;
    place_state state = resume(place);
    bool has_waited = false;
    while (state != MINE) {
        if (state == LOST) {
            kprof_lock_give();
            if (!stand_in_line())
                return true;
        }
        pass_over_absent(place->fd);
        const line now = read_line(place->fd);
        state = look(place, &now);
        if (state != WAITING)
            continue;
        if (!has_waited && timeout_ms > 0 && before_wait)
            before_wait();
        has_waited = true;
        state = wait_in_line(timeout_ms);
        if (state == WAITING) { /* the time is over */
            (void)set_lock(place->fd, F_RDLCK, byte_of(place->ticket));
            return false;
        }
    }
    return true;
}

void kprof_lock_note_progress(void)
{
    const int64_t now_ns = kprof_monotonic_ns();
    const uint32_t mark = (uint32_t)(now_ns / PROGRESS_NS);
    if (now_ns - the_lock.progress_ns < PROGRESS_NS || !has_place(&the_lock.place))
        return;
    the_lock.progress_ns = now_ns;
    (void)!kprof_write_at(the_lock.place.fd, &mark, sizeof mark, offsetof(line, progress)); /* a change may undo it */
}

void kprof_lock_note_stuck(bool is_stuck)
{
    const struct place *place = &the_lock.place;
    if (is_stuck == the_lock.is_stuck || !has_place(place) || place->pid != getpid() || !begin_change(place->fd))
        return;
    line now = read_line(place->fd);
    now.stuck = is_stuck;
    const bool is_told = look(place, &now) == MINE && write_line(place->fd, &now);
    end_change(place->fd);
    the_lock.is_stuck = is_told ? is_stuck : the_lock.is_stuck;
    if (is_told && is_stuck)
        wake(place->fd, FUTEX_BITSET_MATCH_ANY);
}

bool kprof_lock_is_wanted(void)
{
    bool others = false;
    for (size_t i = 0; i < the_lock.gpu_count && !others; i++) {
        const bool is_in_line = i == the_lock.gpu && has_place(&the_lock.place); /* its own lock does not count */
        int fd = is_in_line ? the_lock.place.fd : open_line(i);
        if (fd < 0)
            return false;
        const line now = read_line(fd);
        others =
            now.last != now.served && find_lock(fd, byte_of(now.served + 1), (off_t)(now.last - now.served)) != F_UNLCK;
        if (!is_in_line)
            close(fd);
    }
    return others;
}

bool kprof_lock_is_asked(void)
{
    const char *reason;
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    return folder >= 0 && faccessat(folder, KPROF_CLOSE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

kprof_owner kprof_lock_owner(bool *is_gone)
{
    const char *reason;
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    *is_gone = folder < 0 && errno == ENOENT;
    return folder < 0 ? KPROF_OWNER_UNKNOWN : kprof_folder_owner(folder);
}
