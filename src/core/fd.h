/* Descriptors inside other people's programs. */
#ifndef KPROF_CORE_FD_H
#define KPROF_CORE_FD_H

/* Move an open file to a high number and return that. Some programs count on getting low numbers, or close the first
 * few hundred. The low number is closed. When the limit on descriptors is low, the file stays where it is. */
int kprof_fd_move_up(int fd);

#endif
