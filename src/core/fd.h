/* Descriptors inside other people's programs. */
#ifndef KPROF_CORE_FD_H
#define KPROF_CORE_FD_H

/* The same open file under a high number, out of the way of programs that count on getting low ones or close the first
 * few hundred; the low number is closed. Where the limit on descriptors is low it stays, and is returned. */
int kprof_fd_move_up(int fd);

#endif
